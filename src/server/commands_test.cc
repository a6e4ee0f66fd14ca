// The commands through the command line, without a process.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <streambuf>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "server/commands_under_test.h"
#include "server/replace_file.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Ran Weir(std::vector<const char*> words, const std::string& input = "") {
  words.insert(words.begin(), "weir");
  return RunWith(words, input);
}

// Input that does not end.
class Endless : public std::streambuf {
 protected:
  int_type underflow() override {
    setg(line_.data(), line_.data(), line_.data() + line_.size());
    return traits_type::to_int_type(line_.front());
  }

 private:
  std::string line_ = std::string(4'095, '#') + "\n";
};

Ran WeirWithEndlessInput(std::vector<const char*> words) {
  words.insert(words.begin(), "weir");
  Endless endless;
  std::istream in(&endless);
  std::ostringstream out, err;
  const int code = RunCommandLine(words, {.in = in, .out = out, .err = err});
  return {.code = code, .out = out.str(), .err = err.str()};
}

class Commands : public ::testing::Test {
 protected:
  Commands()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Commands() override { std::filesystem::remove_all(folder_); }

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

constexpr const char* kPolicy = R"(rules:
  - name: all
    key: ip
    limit: 5/min
)";

TEST_F(Commands, SayWhatWasMeant) {
  const Ran ran = Weir({"chek-config", "x"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("did you mean check-config?"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(Commands, AreListedInTheHelp) {
  const Ran ran = Weir({"--help"});
  EXPECT_EQ(ran.code, kExitOk);
  for (const char* command : {"check-config", "explain", "fmt", "schema", "serve"}) {
    EXPECT_THAT(ran.out, HasSubstr(command));
  }
  EXPECT_EQ(Weir({}).code, kExitUsage);
  EXPECT_THAT(Weir({"--version"}).out, StartsWith("weir "));
}

TEST_F(Commands, EndWithTwoIfCalledWrongly) {
  EXPECT_EQ(Weir({"check-config"}).code, kExitUsage);
  EXPECT_EQ(Weir({"check-config", "a", "--nonsense"}).code, kExitUsage);
  EXPECT_EQ(Weir({"explain", "-c", "a"}).code, kExitUsage);
  EXPECT_EQ(Weir({"explain", "-c", "-", "--request", "-"}).code, kExitUsage);
  EXPECT_EQ(Weir({"fmt", "a", "--check", "--stdout"}).code, kExitUsage);
}

TEST_F(Commands, TakeNoOtherNumberThanTheOneGiven) {
  const auto refused = [](std::vector<const char*> words, const char* option, const char* number,
                          const char* advice) {
    words.insert(words.end(), {option, number});
    const Ran ran = Weir(words);
    EXPECT_EQ(ran.code, kExitUsage) << option << ' ' << number;
    EXPECT_THAT(ran.err, HasSubstr(std::string(number) + " is not allowed; write a " + advice));
  };
  for (const char* number : {"0", "-1", "1.5", "many", "99999999999999999999"}) {
    refused({"compare", "1/s"}, "--burst", number, "whole number from 1 to 1000000000000000");
    refused({"simulate", "s.yaml"}, "--seeds", number, "whole number from 1 to 1000000000");
  }
  for (const char* number : {"-1", "18446744073709551616"}) {
    refused({"compare", "1/s"}, "--seed", number, "whole number from 0 to 18446744073709551615");
    refused({"simulate", "s.yaml"}, "--seed", number, "whole number from 0 to");
  }
  for (const char* number : {"0", "-1", "nan", "inf", "1e999"}) {
    refused({"compare", "1/s"}, "--load", number, "number above 0");
  }
}

TEST_F(Commands, GuessNothingForAWordThatResemblesNone) {
  const Ran ran = Weir({"completely-else"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("there is no command \"completely-else\"\n"));
}

TEST_F(Commands, DoNotEndWellIfTheirOutputIsLost) {
  std::istringstream in;
  std::ostream out(nullptr);
  std::ostringstream err;
  const std::vector<const char*> words = {"weir", "schema"};
  EXPECT_EQ(RunCommandLine(words, {.in = in, .out = out, .err = err}), kExitProblems);
  EXPECT_EQ(err.str(), "weir: the output cannot be written\n");
}

TEST_F(Commands, ReadNoMoreFromStandardInputThanTheyCanUse) {
  const Ran check = WeirWithEndlessInput({"check-config", "-"});
  EXPECT_EQ(check.code, kExitProblems);
  EXPECT_THAT(check.out, StartsWith("stdin:1:1: E0"));
  EXPECT_THAT(check.out, HasSubstr("there is more than 67108864 bytes\n"));
  EXPECT_THAT(check.out, HasSubstr("stdin: 1 error, 0 warnings\n"));

  const std::string policy = Write("weir.yaml", kPolicy);
  const Ran explain = WeirWithEndlessInput({"explain", "-c", policy.c_str(), "--request", "-"});
  EXPECT_EQ(explain.code, kExitUsage);
  EXPECT_EQ(explain.err, "there is more than 16777216 bytes\n");
  EXPECT_EQ(explain.out, "");

  const Ran format = WeirWithEndlessInput({"fmt", "-"});
  EXPECT_EQ(format.code, kExitProblems);
  EXPECT_EQ(format.err, "there is more than 67108864 bytes\n");
  EXPECT_EQ(format.out, "");
}

TEST_F(Commands, CheckConfigReadsStandardInput) {
  const Ran ran = Weir({"check-config", "-"}, kPolicy);
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.out, "stdin: ok, 1 rule\n");
}

TEST_F(Commands, CheckConfigPrintsProblemsAsJson) {
  const Ran ran = Weir({"check-config", "--json", "-"}, "rules:\n  - nme: a\n");
  EXPECT_EQ(ran.code, kExitProblems);
  const auto problems = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_TRUE(problems.is_array());
  ASSERT_FALSE(problems.empty());
  bool found = false;
  for (const auto& problem : problems) {
    if (problem["code"] != "E010") continue;
    found = true;
    EXPECT_EQ(problem["severity"], "error");
    EXPECT_EQ(problem["line"], 2);
    EXPECT_EQ(problem["column"], 5);
    EXPECT_EQ(problem["where"], "rules[0].nme");
  }
  EXPECT_TRUE(found) << ran.out;
}

TEST_F(Commands, CheckConfigMindsAdviceOnlyIfStrict) {
  const std::string nothing = "rules: []\n";
  EXPECT_EQ(Weir({"check-config", "-"}, nothing).code, kExitOk);
  EXPECT_THAT(Weir({"check-config", "-"}, nothing).out, HasSubstr("stdin: 0 errors, 1 warning\n"));
  EXPECT_EQ(Weir({"check-config", "--strict", "-"}, nothing).code, kExitProblems);
}

TEST_F(Commands, CheckConfigSaysThatAFileIsMissing) {
  const Ran ran = Weir({"check-config", "/nowhere/weir.yaml"});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.out, HasSubstr("E017"));
}

TEST_F(Commands, ExplainSaysWhatDecides) {
  const std::string policy = Write("weir.yaml", std::string("deny: { user: eve }\n") + kPolicy);
  const auto explain = [&](const char* request) {
    return Weir({"explain", "-c", policy.c_str(), "--request", request}).out;
  };
  EXPECT_THAT(explain(R"({"ip": "192.0.2.1"})"),
              StartsWith("allowed: nearest to its limit is all, 4 of 5 left\n"));
  EXPECT_THAT(explain(R"({"ip": "192.0.2.1", "user": "eve"})"), StartsWith("denied by deny[0]\n"));
  EXPECT_THAT(explain(R"({"ip": "192.0.2.1", "cost": 6})"),
              StartsWith("denied by all: it costs 6, and the limit never holds more than 5\n"));
}

TEST_F(Commands, ExplainSaysThatAListLetsThrough) {
  const std::string policy =
      Write("weir.yaml", std::string("allow: [{ user: root }, { ip: 192.0.2.1 }]\n") + kPolicy);
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--request", R"({"ip": "192.0.2.1"})"});
  EXPECT_THAT(ran.out, StartsWith("allowed by allow[1], without being counted\n"));
}

TEST_F(Commands, ExplainSaysThatARuleRefuses) {
  const std::string policy = Write("weir.yaml", R"(rules:
  - name: closed
    key: ip
    limit: deny
    message: Closed until further notice.
  - name: known
    match: { path: /known }
    key: user
    limit: 5/min
    unidentified: deny
)");
  const Ran closed = Weir({"explain", "-c", policy.c_str(), "--request", R"({"ip": "192.0.2.1"})"});
  EXPECT_EQ(closed.code, kExitOk);
  EXPECT_THAT(closed.out, StartsWith("denied by closed: the rule refuses it, whatever was counted\n"
                                     "message: Closed until further notice.\n"));
  const Ran known = Weir(
      {"explain", "-c", policy.c_str(), "--request", R"({"path": "/known", "rules": ["known"]})"});
  EXPECT_THAT(known.out,
              StartsWith("denied by known: the rule refuses it, whatever was counted\n"));
  EXPECT_THAT(known.out, HasSubstr("from unidentified: deny"));
  EXPECT_THAT(known.out, HasSubstr("closed: does not apply: the request asks for other rules\n"));
}

TEST_F(Commands, ExplainSaysThatTooManyRulesMatch) {
  std::string text = "rules:\n";
  for (int number = 0; number < 65; ++number) {
    text += "  - { name: r" + std::to_string(number) +
            ", match: { user: present }, key: ip, limit: 5/min }\n";
  }
  const std::string policy = Write("weir.yaml", text);
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--request", R"({"user": "ann"})"});
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_THAT(ran.out, StartsWith("denied: too many rules match\n"));
}

TEST_F(Commands, ExplainHasNothingToSayAboutAPolicyThatIsWrong) {
  const Ran ran = Weir({"explain", "-c", "-", "--request", "{}"}, "rules:\n  - nme: a\n");
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, HasSubstr("stdin:2:5: E010"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(Commands, ExplainSaysThatTheFileOfTheRequestIsMissing) {
  const std::string policy = Write("weir.yaml", kPolicy);
  const std::string file = "@" + Path("none.json");
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--request", file.c_str()});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, StartsWith(Path("none.json") + ": "));
  EXPECT_EQ(ran.out, "");
}

TEST_F(Commands, ExplainTakesTheRequestFromAFileOrStandardInput) {
  const std::string policy = Write("weir.yaml", kPolicy);
  const std::string file = "@" + Write("request.json", R"({"ip": "192.0.2.1"})");
  for (const Ran& ran :
       {Weir({"explain", "-c", policy.c_str(), "--request", file.c_str()}),
        Weir({"explain", "-c", policy.c_str(), "--request", "-"}, R"({"ip": "192.0.2.1"})")}) {
    EXPECT_EQ(ran.code, kExitOk) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("key        ip=192.0.2.1\n"));
  }
}

TEST_F(Commands, ExplainFindsWhoIsAskingBehindAPeer) {
  const std::string policy = Write("weir.yaml", std::string(R"(trusted_proxies: [10.0.0.0/8]
identity:
  user: { header: x-user }
  api_key: { header: x-api-key, from: anyone, hash: true }
)") + kPolicy);
  const auto explain = [&](const std::string& peer) {
    const std::string request =
        R"({"peer": ")" + peer +
        R"(", "headers": {"x-user": "ann", "x-api-key": "sk-12345", "x-forwarded-for": "192.0.2.9"}})";
    return Weir({"explain", "-c", policy.c_str(), "--request", request.c_str()}).out;
  };
  EXPECT_THAT(explain("10.0.0.7"), HasSubstr("peer: \"10.0.0.7\", trusted\n"));
  EXPECT_THAT(explain("10.0.0.7"), HasSubstr("user       \"ann\"\n"));
  EXPECT_THAT(explain("10.0.0.7"), HasSubstr("key        ip=192.0.2.9\n"));
  EXPECT_THAT(explain("192.0.2.1"), HasSubstr("not trusted"));
  EXPECT_THAT(explain("192.0.2.1"), HasSubstr("user       absent\n"));
  EXPECT_THAT(explain("192.0.2.1"), HasSubstr("key        ip=192.0.2.1\n"));
  EXPECT_THAT(explain("192.0.2.1"), HasSubstr("api_key    \"sk…\"\n"));
  EXPECT_THAT(explain("192.0.2.1"), Not(HasSubstr("12345")));
}

TEST_F(Commands, ExplainNamesAPeerOnAUnixSocket) {
  const std::string policy = Write("weir.yaml", kPolicy);
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--request", R"({"peer": ""})"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\npeer: a unix socket, not trusted: "));
  EXPECT_THAT(ran.out, HasSubstr("ip         absent\n"));
}

TEST_F(Commands, ExplainSaysInJsonWhoIsAsking) {
  const std::string policy = Write(
      "weir.yaml", std::string("identity: { user: { header: x-user, from: anyone } }\n") + kPolicy);
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--json", "--request",
                        R"({"peer": "192.0.2.1", "headers": {"x-user": "ann"}})"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  const auto json = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["identity"]["peer"], "192.0.2.1");
  EXPECT_EQ(json["identity"]["trusted"], false);
  EXPECT_EQ(json["identity"]["ip"], "192.0.2.1");
  EXPECT_EQ(json["identity"]["user"], "ann");
  EXPECT_TRUE(json["identity"]["org"].is_null());
}

TEST_F(Commands, ExplainShowsNoSecretsInJsonEither) {
  const std::string policy = Write("weir.yaml", R"(rules:
  - name: one
    match: { api_key: sk-other }
    key: ip
    limit: 5/min
  - name: two
    match: { header.authorization: { not: Bearer* } }
    key: api_key
    limit: 5/min
  - name: three
    key: api_key
    limit: 5/min
)");
  const Ran ran =
      Weir({"explain", "-c", policy.c_str(), "--json", "--request",
            R"({"api_key": "sk-12345", "headers": {"authorization": "Bearer 98765"}})"});
  ASSERT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, Not(HasSubstr("12345")));
  EXPECT_THAT(ran.out, Not(HasSubstr("98765")));
  EXPECT_THAT(ran.out, Not(HasSubstr("other")));
  const auto json = nlohmann::json::parse(ran.out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["decision"]["allowed"], true);
  EXPECT_EQ(json["decision"]["rule"], "three");
  EXPECT_EQ(json["rules"][0]["matches"], false);
  EXPECT_EQ(json["rules"][2]["decision"]["remaining"], 4);
}

TEST_F(Commands, ExplainTakesPoliciesForAnyStore) {
  Write("more.csv", "user,limit\nann,9/min\n");
  const std::string policy = Write("weir.yaml", R"(store: redis://127.0.0.1:6379
rules:
  - name: one
    match: { user: present }
    key: user
    limit: 5/min
    overrides: more.csv
)");
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--request", R"({"user": "ann"})"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("limit      9/min"));
}

TEST_F(Commands, ExplainNamesRulesThatThereAreNot) {
  const std::string policy = Write("weir.yaml", kPolicy);
  const Ran ran = Weir({"explain", "-c", policy.c_str(), "--request", R"({"rules": ["none"]})"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_THAT(ran.err, HasSubstr("there is no rule \"none\""));
}

constexpr const char* kUntidy = "# Kept.\nrules:   # Kept, too.\n    - name:   all\n";

TEST_F(Commands, FormatChangesOnlyWhatIsOutOfForm) {
  const std::string untidy = Write("untidy.yaml", kUntidy);
  ASSERT_EQ(chmod(untidy.c_str(), 0640), 0);
  EXPECT_EQ(Weir({"fmt", "--check", untidy.c_str()}).code, kExitProblems);
  EXPECT_EQ(Read("untidy.yaml"), kUntidy);
  EXPECT_EQ(Weir({"fmt", untidy.c_str()}).out, untidy + "\n");
  EXPECT_THAT(Read("untidy.yaml"), HasSubstr("# Kept.\n"));
  EXPECT_THAT(Read("untidy.yaml"), HasSubstr("# Kept, too."));
  struct stat status{};
  ASSERT_EQ(stat(untidy.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  const Ran again = Weir({"fmt", untidy.c_str()});
  EXPECT_EQ(again.code, kExitOk);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(Weir({"fmt", "--check", untidy.c_str()}).code, kExitOk);
}

TEST_F(Commands, FormatPrintsRatherThanChangesIfAsked) {
  const std::string untidy = Write("untidy.yaml", kUntidy);
  const Ran to_stdout = Weir({"fmt", "--stdout", untidy.c_str()});
  EXPECT_EQ(Weir({"fmt", "-"}, kUntidy).out, to_stdout.out);
  EXPECT_THAT(to_stdout.out, HasSubstr("- name: all\n"));
  EXPECT_EQ(Read("untidy.yaml"), kUntidy);
}

TEST_F(Commands, FormatGoesOnAfterAFileThatIsNoYaml) {
  const std::string broken = Write("broken.yaml", "a: [1\n");
  const std::string untidy = Write("untidy.yaml", kUntidy);
  const Ran ran = Weir({"fmt", broken.c_str(), untidy.c_str()});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, HasSubstr(broken + ":"));
  EXPECT_THAT(ran.err, HasSubstr(" E0"));
  EXPECT_EQ(ran.out, untidy + "\n");
  EXPECT_EQ(Read("broken.yaml"), "a: [1\n");
}

TEST_F(Commands, FormatGoesOnAfterAFileThatCannotBeRead) {
  const std::string none = Path("none.yaml");
  const std::string untidy = Write("untidy.yaml", kUntidy);
  const std::string folder = folder_.string();
  const Ran ran = Weir({"fmt", none.c_str(), folder.c_str(), untidy.c_str()});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, StartsWith(none + ": "));
  EXPECT_THAT(ran.err, HasSubstr("\n" + folder + ": is a directory, not a file\n"));
  EXPECT_EQ(ran.out, untidy + "\n");
}

// Even root, who may write everywhere, cannot make a file with such a name.
TEST_F(Commands, FormatLeavesAFileAsItIsIfNoOtherCanBeMadeBesideIt) {
  const std::string name = std::string(250, 'a');
  const std::string untidy = Write(name.c_str(), kUntidy);
  const Ran ran = Weir({"fmt", untidy.c_str()});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, StartsWith(untidy + ": no file can be made beside it: "));
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(Read(name.c_str()), kUntidy);
}

TEST_F(Commands, FormatLeavesAFileThatIsReadOnly) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const std::string untidy = Write("untidy.yaml", kUntidy);
  ASSERT_EQ(chmod(untidy.c_str(), 0440), 0);
  const Ran ran = Weir({"fmt", untidy.c_str()});
  EXPECT_EQ(ran.code, kExitProblems);
  EXPECT_THAT(ran.err, StartsWith(untidy + ": cannot be written: "));
  EXPECT_EQ(Read("untidy.yaml"), kUntidy);
}

TEST_F(Commands, ServeDoesNotStartWithoutAPolicyOrAStore) {
  const Ran missing = Weir({"serve", "-c", "/nowhere/weir.yaml"});
  EXPECT_EQ(missing.code, kExitProblems);
  EXPECT_THAT(missing.err, HasSubstr("E017"));
  EXPECT_EQ(missing.out, "");

  // A store that cannot be reached is no reason; one that nobody could ever reach is.
  const std::string policy = Write(
      "weir.yaml", std::string("store: redis://:env:WEIR_HAS_NO_SUCH@127.0.0.1:6379\n") + kPolicy);
  const Ran no_password = Weir({"serve", "-c", policy.c_str()});
  EXPECT_EQ(no_password.code, kExitProblems);
  EXPECT_THAT(no_password.err, StartsWith(policy + ": store: "));
  EXPECT_THAT(no_password.err, HasSubstr("WEIR_HAS_NO_SUCH"));
  EXPECT_EQ(no_password.out, "");
}

TEST_F(Commands, NeverTellThePasswordOfAStore) {
  for (const std::string store : {"redis://ann:s3cr3t@127.0.0.1:99999", "redis://ann:s3cr3t@",
                                  "rediss://ann:s3cr3t@127.0.0.1:6379?what=1", "redys://:s3cr3t@a",
                                  "redis://ann:s3cr3t@127.0.0.1:6379"}) {
    const std::string policy = Write("weir.yaml", "store: \"" + store + "\"\n" + kPolicy);
    const Ran checked = Weir({"check-config", policy.c_str()});
    EXPECT_THAT(checked.out + checked.err, Not(HasSubstr("s3cr3t"))) << store;
    const Ran listed = Weir({"check-config", "--json", policy.c_str()});
    EXPECT_THAT(listed.out + listed.err, Not(HasSubstr("s3cr3t"))) << store;
    const Ran explained =
        Weir({"explain", "-c", policy.c_str(), "--request", R"({"user": "ann"})"});
    EXPECT_THAT(explained.out + explained.err, Not(HasSubstr("s3cr3t"))) << store;
  }
}

TEST_F(Commands, ReplacingAFileKeepsALinkToIt) {
  Write("target.yaml", "old");
  std::filesystem::create_symlink("target.yaml", Path("link.yaml"));
  ASSERT_TRUE(ReplaceFile(Path("link.yaml"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.yaml")));
  EXPECT_EQ(Read("target.yaml"), "new");
  // Nothing else is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(Commands, ReplacingAFileThatIsNotThereIsAnError) {
  EXPECT_FALSE(ReplaceFile(Path("none.yaml"), "new"));
  EXPECT_FALSE(std::filesystem::exists(Path("none.yaml")));
}

}  // namespace
}  // namespace weir
