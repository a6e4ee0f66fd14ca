#include "server/simulate_command.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/embedded.h"

namespace weir {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kScenario = R"(
name: small
duration: 2s
policy: { rules: [{ name: r, key: user, limit: 10/s burst 10 }] }
clients: [{ rate: 20/s, arrivals: steady }]
)";

class SimulateCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "weirXXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(std::string_view name, std::string_view text) {
    const std::string path = folder_ + "/" + std::string(name);
    std::ofstream(path) << text;
    return path;
  }
  std::string ReadBack(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  int Run(const SimulateOptions& options) {
    std::istringstream in;
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunSimulate(options, {.in = in, .out = out, .err = err});
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  std::string folder_;
  std::string out_;
  std::string err_;
};

TEST_F(SimulateCommandTest, TellsWhatHappened) {
  EXPECT_EQ(Run({.scenarios = {File("s.yaml", kScenario)}, .seed = 3}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("all invariants held"));
  EXPECT_THAT(out_, HasSubstr("never more let through than the limit promises"));
  EXPECT_THAT(out_, HasSubstr("--seed 3"));
  EXPECT_THAT(err_, IsEmpty());
}

// Takes a tenth of a second to read.
class SlowClock final : public Clock {
 public:
  Now Read() const noexcept override {
    now_.steady += std::chrono::milliseconds(100);
    return now_;
  }
  void WaitUntil(std::unique_lock<std::mutex>&, std::condition_variable&, SteadyTime) override {}

 private:
  mutable Now now_{};
};

TEST_F(SimulateCommandTest, ShowsOnATerminalHowFarOneRunHasCome) {
  SlowClock clock;
  const SimulateOptions options{.scenarios = {File("s.yaml", kScenario)}, .clock = &clock};
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunSimulate(options, {.in = in, .out = out, .err = err, .err_is_terminal = true}),
            kExitOk);
  EXPECT_THAT(err.str(), HasSubstr(" requests, "));
  EXPECT_THAT(err.str(), HasSubstr("left"));
  EXPECT_EQ(Run(options), kExitOk);
  EXPECT_THAT(err_, IsEmpty());
  EXPECT_EQ(out_, out.str());
}

TEST_F(SimulateCommandTest, RunsManySeedsAndManyScenarios) {
  const std::string one = File("one.yaml", kScenario);
  const std::string two = File("two.yaml", kScenario);
  EXPECT_EQ(Run({.scenarios = {one, two}, .seed = 5, .seeds = 4, .threads = 2}), kExitOk);
  EXPECT_THAT(out_, HasSubstr("5 to 8"));
  EXPECT_THAT(out_, HasSubstr("4 of 4"));
}

TEST_F(SimulateCommandTest, PrintsJson) {
  const std::string file = File("s.yaml", kScenario);
  EXPECT_EQ(Run({.scenarios = {file}, .json = true}), kExitOk);
  const auto one = nlohmann::json::parse(out_);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0]["scenario"], "small");
  EXPECT_EQ(one[0]["all"]["requests"], 40);
  EXPECT_EQ(one[0]["invariants"].size(), 8U);
  EXPECT_EQ(one[0]["clean"], true);
  EXPECT_EQ(Run({.scenarios = {file}, .seeds = 3, .json = true}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out_)[0]["clean"], 3);
}

TEST_F(SimulateCommandTest, WritesAPageAndAPicture) {
  const SimulateOptions options{.scenarios = {File("s.yaml", kScenario)},
                                .html = folder_ + "/page.html",
                                .svg = folder_ + "/picture.svg"};
  EXPECT_EQ(Run(options), kExitOk);
  EXPECT_THAT(ReadBack("picture.svg"), HasSubstr("<svg"));
  const std::string picture = ReadBack("picture.svg");
  EXPECT_FALSE(ReadBack("page.html").empty());
  EXPECT_EQ(Run(options), kExitOk);
  EXPECT_EQ(ReadBack("picture.svg"), picture);
}

TEST_F(SimulateCommandTest, EndsWith1IfAnExpectationIsNotMet) {
  const std::string file =
      File("s.yaml", std::string(kScenario) + "expect: { denied: at most 1 }\n");
  EXPECT_EQ(Run({.scenarios = {file}}), kExitProblems);
  EXPECT_THAT(out_, HasSubstr("denied: at most 1 is expected"));
  EXPECT_EQ(Run({.scenarios = {file}, .seeds = 2}), kExitProblems);
  EXPECT_THAT(out_, HasSubstr("BROKEN small, seed 2, weir "));
  EXPECT_THAT(out_, HasSubstr("weir simulate " + file + " --seed 2"));
}

TEST_F(SimulateCommandTest, SaysWhichBuildBrokeAndHowToSeeItAgain) {
  const std::string file =
      File("it's mine.yaml", std::string(kScenario) + "expect: { denied: at most 1 }\n");
  EXPECT_EQ(Run({.scenarios = {file}, .seeds = 2}), kExitProblems);
  EXPECT_THAT(out_, HasSubstr("weir simulate '" + folder_ + "/it'\\''s mine.yaml' --seed 2"));
  // Built from a tree without a repository it has no commit to name.
  if (!ProgramCommit().empty()) {
    EXPECT_THAT(out_, HasSubstr(", commit " + std::string(ProgramCommit()) + ": weir simulate"));
  }
}

TEST_F(SimulateCommandTest, SaysWhatIsWrongWithAScenarioAndRunsNone) {
  const std::string good = File("good.yaml", kScenario);
  const std::string bad = File("bad.yaml", std::string(kScenario) + "storre: 1\n");
  EXPECT_EQ(Run({.scenarios = {good, bad, folder_ + "/none.yaml"}}), kExitProblems);
  EXPECT_THAT(err_, HasSubstr("bad.yaml:6:1: E010 unknown key \"storre\"; did you mean store?"));
  EXPECT_THAT(err_, HasSubstr("none.yaml: E017 No such file or directory"));
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(SimulateCommandTest, DrawsOneRunAtATime) {
  const std::string file = File("s.yaml", kScenario);
  EXPECT_EQ(Run({.scenarios = {file, file}, .html = folder_ + "/page.html"}), kExitUsage);
  EXPECT_EQ(Run({.scenarios = {file}, .seeds = 2, .svg = folder_ + "/a.svg"}), kExitUsage);
  EXPECT_EQ(Run({.scenarios = {file}, .svg = folder_ + "/no/such/a.svg"}), kExitProblems);
  EXPECT_THAT(err_, HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace weir
