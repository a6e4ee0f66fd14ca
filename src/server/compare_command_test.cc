// weir compare through the command line, without a process.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <weir/policy.h>

#include "server/commands_under_test.h"

namespace weir {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Ran Compare(std::vector<const char*> words, const std::string& input = "") {
  words.insert(words.begin(), {"weir", "compare"});
  return RunWith(words, input);
}

class CompareCommand : public ::testing::Test {
 protected:
  CompareCommand()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string("compare_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CompareCommand() override { std::filesystem::remove_all(folder_); }

  std::string Path(const char* name) const { return (folder_ / name).string(); }
  std::string Write(const char* name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    return Path(name);
  }
  std::string Read(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_;
};

TEST_F(CompareCommand, ShowsEveryAlgorithm) {
  const Ran ran = Compare({"100/s", "--traffic", "boundary"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, StartsWith("100/s by every algorithm\n"));
  for (const char* name : {"token_bucket", "leaky_bucket queue", "fixed_window", "sliding_window",
                           "sliding_window strict", "sliding_log", "concurrency"}) {
    EXPECT_THAT(ran.out, HasSubstr(name));
  }
  // A row is whole on a terminal of 100 columns.
  EXPECT_THAT(ran.out, Not(HasSubstr("…")));
}

TEST_F(CompareCommand, SaysTheSameEveryTime) {
  EXPECT_EQ(Compare({"10/min", "--seed", "5"}).out, Compare({"10/min", "--seed", "5"}).out);
  EXPECT_NE(Compare({"10/min", "--seed", "5"}).out, Compare({"10/min", "--seed", "6"}).out);
}

TEST_F(CompareCommand, WritesAPageAndAPicture) {
  const std::string html = Path("a.html"), svg = Path("a.svg");
  const Ran ran = Compare({"100/s", "--html", html.c_str(), "--svg", svg.c_str()});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(Read("a.html"), HasSubstr("by every algorithm"));
  EXPECT_THAT(Read("a.svg"), HasSubstr("what went ahead in the last 1 s"));
  // What was there before is replaced, also if it was longer.
  Write("a.svg", std::string(1 << 20, 'x'));
  EXPECT_EQ(Compare({"100/s", "--svg", svg.c_str()}).code, kExitOk);
  EXPECT_THAT(Read("a.svg"), Not(HasSubstr("xxxx")));
}

TEST_F(CompareCommand, EndsWithOneIfAFileCannotBeWritten) {
  const std::string path = Path("none/a.html");
  for (const char* option : {"--html", "--svg"}) {
    const Ran ran = Compare({"100/s", "--traffic", "boundary", option, path.c_str()});
    EXPECT_EQ(ran.code, kExitProblems);
    EXPECT_EQ(ran.err,
              "weir compare: " + path + ": cannot be written: No such file or directory\n");
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(Compare({"100/s", "--traffic", "boundary", "--svg", "/dev/full"}).code, kExitProblems);
}

TEST_F(CompareCommand, PrintsJson) {
  const Ran ran = Compare({"100/s", "--burst", "10", "--traffic", "late-window", "--json"});
  EXPECT_EQ(ran.code, kExitOk);
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["limit"]["burst"], 10);
  EXPECT_EQ(json["traffic"]["name"], "late-window");
  EXPECT_GE(json["algorithms"][3]["worst_window"]["of_limit"], 1.95);
  EXPECT_NEAR(json["algorithms"][0]["worst_burst"]["above_rate"].get<double>(), 10, 0.1);
}

TEST_F(CompareCommand, ReadsTrafficFromAFileOrStandardInput) {
  const std::string path = Write("times", "0.5\n0.6 3\n# that was all\n");
  for (const Ran& ran : {Compare({"3/s", "--traffic", path.c_str(), "--json"}),
                         Compare({"3/s", "--traffic", "-", "--json"}, "0.5\n0.6 3\n")}) {
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["traffic"]["requests"], 2);
    EXPECT_EQ(json["traffic"]["cost"], 4);
    EXPECT_EQ(json["algorithms"][5]["denied"], 1);
  }
  EXPECT_THAT(Compare({"3/s", "--traffic", "-"}, "2\n1\n").out, HasSubstr("are not in order"));
}

TEST_F(CompareCommand, ShowsDatesOfATrafficThatHasThem) {
  const Ran ran =
      Compare({"1/min", "--traffic", "-"}, "2026-11-17T09:30:05Z\n2026-11-17T09:30:06Z\n");
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2026-11-17 09:30:05"));
  EXPECT_THAT(ran.out, Not(HasSubstr("…")));
}

TEST_F(CompareCommand, NamesWhatIsWrongWithAFile) {
  const std::string path = Write("times", "0.5\nsoon\n");
  Ran ran = Compare({"3/s", "--traffic", path.c_str()});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, StartsWith("weir compare: " + path + ":2: \"soon\" is no time"));
  ran = Compare({"3/s", "--traffic", "-"}, "\n");
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, StartsWith("weir compare: stdin: there is no request in it"));
  ran = Compare({"3/s", "--traffic", folder_.c_str()});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_EQ(ran.out, "");
  ran = Compare({"3/s", "--traffic", path.c_str(), "--load", "2"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("for traffic that is made up"));
}

TEST_F(CompareCommand, SaysWhichTrafficWasMeant) {
  Ran ran = Compare({"100/s", "--traffic", "possion"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_EQ(ran.err,
            "weir compare: there is neither a traffic nor a file \"possion\"; did you mean "
            "poisson?\n");
  ran = Compare({"100/s", "--traffic", "/nowhere/at/all"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("there are steady, poisson, burst, boundary, late-window and"));
}

TEST_F(CompareCommand, RefusesWhatIsNoLimit) {
  const auto refused = [](std::vector<const char*> words) {
    const Ran ran = Compare(std::move(words));
    EXPECT_EQ(ran.code, kExitUsage);
    EXPECT_EQ(ran.out, "");
    return ran.err;
  };
  EXPECT_EQ(refused({}), "weir compare: which limit? write weir compare 100/s\n");
  EXPECT_THAT(refused({"100/fortnight"}), HasSubstr("unknown period \"fortnight\""));
  EXPECT_THAT(refused({"0/s"}), HasSubstr("\"0\" is not allowed"));
  for (const char* other : {"deny", "unlimited", "20 concurrent"}) {
    EXPECT_THAT(refused({other}),
                HasSubstr("there is nothing to compare; write so many in a time"));
  }
  EXPECT_THAT(refused({"100/month"}), HasSubstr("month"));
  EXPECT_THAT(refused({"100/s burst 5", "--burst", "6"}), HasSubstr("--burst says 6"));
  EXPECT_THAT(refused({"100/s", "--burst", "99999999999999"}), HasSubstr("burst: 99999999999999"));
  EXPECT_THAT(refused({"100/s", "--duration", "soon"}), HasSubstr("\"soon\" is no time"));
  EXPECT_THAT(refused({"100/s", "--duration", "0s"}), HasSubstr("\"0s\" is no time"));
  EXPECT_THAT(refused({"10M/s"}), HasSubstr("take a smaller limit"));
}

TEST_F(CompareCommand, LeavesOutWhatCannotCountTheLimit) {
  const Ran ran = Compare({"70k/s", "--traffic", "boundary"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_THAT(ran.out, HasSubstr("sliding_log: count: 70000 is not allowed"));
}

TEST_F(CompareCommand, AdvisesByTheAnswersItIsGiven) {
  const Ran ran =
      Compare({"--advise", "--answer", "bursts=yes", "--answer", "strict=yes", "--answer",
               "smooth=no", "--answer", "memory=yes", "--answer", "resets=no", "--json"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.err, "");
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["take"], "sliding_window strict");
  EXPECT_EQ(json["wishes"]["memory"], true);
  const PolicyReport report = Policy::Parse(json["policy"].get<std::string>());
  EXPECT_TRUE(report.policy);
  EXPECT_TRUE(report.problems.empty());
}

TEST_F(CompareCommand, DoesNotWriteOverWhatItReadsOrWrites) {
  const std::string traffic = ::testing::TempDir() + "/weir-compare-traffic.txt";
  std::ofstream(traffic) << "1\n2\n";
  Ran ran = Compare({"5/s", "--traffic", traffic.c_str(), "--html", traffic.c_str()});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("it is read, and would be overwritten"));
  const std::string page = ::testing::TempDir() + "/weir-not-there.html";
  const std::string again = ::testing::TempDir() + "/./weir-not-there.html";
  ran = Compare({"5/s", "--html", page.c_str(), "--svg", again.c_str()});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("it would be written twice"));
  EXPECT_EQ(Compare({"5/s", "--html", "-"}).code, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(page));
}

TEST_F(CompareCommand, AsksWhatItWasNotTold) {
  const Ran ran = Compare({"5/s", "--advise", "--answer", "strict=no"}, "\nperhaps\nY\n no\n\n");
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("Take leaky_bucket queue\n"));
  EXPECT_THAT(ran.out, HasSubstr("limit: 5/s\n"));
  EXPECT_THAT(ran.err,
              StartsWith("May a client that was quiet send many requests at once? [Y/n] "));
  EXPECT_THAT(ran.err, HasSubstr("Please answer yes or no.\n"));
  EXPECT_THAT(ran.err, Not(HasSubstr("without exception")));  // That is answered.
}

TEST_F(CompareCommand, SaysWhichQuestionWasNotAnswered) {
  const Ran ran = Compare({"--advise"}, "y\nn\n");
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, EndsWith("weir compare: not answered: smooth; write --answer smooth=yes or "
                                "smooth=no\n"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(CompareCommand, RefusesAnswersToNoQuestion) {
  Ran ran = Compare({"--advise", "--answer", "burst=yes"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("did you mean bursts?"));
  ran = Compare({"100/s", "--answer", "bursts=yes"});
  EXPECT_EQ(ran.code, kExitUsage);
  ran = Compare({"--advise", "--svg", "a.svg"});
  EXPECT_EQ(ran.code, kExitUsage);
}

}  // namespace
}  // namespace weir
