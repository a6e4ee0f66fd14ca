// Policies from files, and the files of overrides that they name.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/policy.h>

#include "policy/compiled_policy.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMany = 100'000;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int kMany = 100'000;
#else
constexpr int kMany = 1'000'000;
#endif
#else
constexpr int kMany = 1'000'000;
#endif

class PolicyLoad : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "weir_policy_XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // A policy with one rule.
  PolicyReport LoadRule(const std::string& settings) const {
    return Policy::Load(Write("weir.yaml", "rules:\n  - name: x\n" + settings));
  }

  static std::vector<std::string> Said(const PolicyReport& report) {
    std::vector<std::string> said;
    for (const Problem& problem : report.problems) said.push_back(problem.ToString());
    return said;
  }

  // The limit under which a request is counted.
  static std::string LimitOf(const PolicyReport& report, const Request& request) {
    if (!report.policy) return "no policy: " + testing::PrintToString(Said(report));
    const CompiledPolicy& policy = report.policy->compiled();
    const CompiledRule& rule = policy.rules.at(0);
    SubjectWriter writer;
    writer.Begin();
    policy.keys[rule.key].Write(Facts(request), policy.MatchOf(0), *policy.hash, writer);
    const auto chosen = policy.ChooseLimit(rule, writer.Finish(), policy.default_tier);
    return rule.limits[chosen.number].ToString();
  }

  std::filesystem::path folder_;
};

TEST_F(PolicyLoad, TellsWhyAFileCannotBeRead) {
  const PolicyReport missing = Policy::Load(folder_ / "none.yaml");
  EXPECT_FALSE(missing.policy.has_value());
  ASSERT_EQ(missing.problems.size(), 1U);
  EXPECT_EQ(missing.problems[0].code, "E017");
  EXPECT_EQ(missing.problems[0].file, folder_ / "none.yaml");
  EXPECT_THAT(missing.problems[0].message, HasSubstr("No such file"));

  const PolicyReport folder = Policy::Load(folder_);
  ASSERT_EQ(folder.problems.size(), 1U);
  EXPECT_EQ(folder.problems[0].code, "E017");
  EXPECT_THAT(folder.problems[0].message, HasSubstr("directory"));
}

TEST_F(PolicyLoad, FindsFilesBesideThePolicy) {
  const std::string csv = Write("more/users.csv", "user,limit\nann,7/s\n");
  const std::string json = Write("users.jsonl", "{\"user\":\"bob\",\"limit\":\"8/s\"}\n");
  const PolicyReport report = LoadRule(
      "    match: { user: present }\n    key: user\n    limit: 5/s\n"
      "    overrides: [{ file: more/users.csv }, { file: " +
      json + " }, { user: cid, limit: 9/s }]\n");
  EXPECT_THAT(Said(report), ElementsAre());
  EXPECT_EQ(LimitOf(report, {.user = "ann"}), "7/s");
  EXPECT_EQ(LimitOf(report, {.user = "bob"}), "8/s");
  EXPECT_EQ(LimitOf(report, {.user = "cid"}), "9/s");
  EXPECT_EQ(LimitOf(report, {.user = "dan"}), "5/s");
  ASSERT_TRUE(report.policy.has_value());
  EXPECT_THAT(report.policy->files(), ElementsAre(csv, json));
}

TEST_F(PolicyLoad, FindsTheSecretBesideThePolicy) {
  Write("secret", "0123456789abcdef");
  EXPECT_THAT(Said(Policy::Load(Write("weir.yaml",
                                      "store: redis://x\nhash_secret: file:secret\nrules:\n"
                                      "  - { name: y, key: ip, limit: 50/s }\n"
                                      "  - { name: x, key: fingerprint, limit: 5/s }\n"))),
              ElementsAre());
  Write("secret", "short");
  const PolicyReport report =
      Policy::Load(Write("weir.yaml", "hash_secret: file:secret\nrules: []\n"));
  EXPECT_THAT(Said(report), ElementsAre(HasSubstr(":1:14: E121")));
}

TEST_F(PolicyLoad, TellsOfRowsByTheirOwnFileAndLine) {
  const std::string path = Write("users.csv",
                                 "user,limit\n"
                                 "ann,7/s\n"
                                 "\n"
                                 "bob,nonsense\n"
                                 "ann,8/s\n"
                                 "cid,5 concurrent\n"
                                 "dan\n");
  const PolicyReport report =
      LoadRule("    key: user\n    limit: 5/s\n    unidentified: skip\n    overrides: users.csv\n");
  EXPECT_FALSE(report.policy.has_value());
  EXPECT_THAT(Said(report),
              ElementsAre(HasSubstr(path + ":4:1: E101 limit \"nonsense\""),
                          HasSubstr(path + ":5:1: E114 row 2 is for the same key"),
                          HasSubstr(path + ":6:1: E111 \"5 concurrent\" counts in another way"),
                          HasSubstr(path + ":7:4: E115 the row has 1 values")));
  EXPECT_EQ(report.problems[0].where, "rules[0].overrides");
}

TEST_F(PolicyLoad, TellsOfFilesThatAreNotThereWhereTheyAreNamed) {
  const PolicyReport report =
      LoadRule("    key: user\n    limit: 5/s\n    unidentified: skip\n    overrides: none.csv\n");
  EXPECT_THAT(Said(report), ElementsAre(HasSubstr("weir.yaml:6:16: E017")));
}

TEST_F(PolicyLoad, DoesNotDrownInARuinedFile) {
  std::string rows = "user,limit\n";
  for (int i = 0; i < 1000; ++i) rows += "u" + std::to_string(i) + ",no\n";
  Write("users.csv", rows);
  const PolicyReport report =
      LoadRule("    key: user\n    limit: 5/s\n    unidentified: skip\n    overrides: users.csv\n");
  EXPECT_EQ(report.problems.size(), 20U);
}

TEST_F(PolicyLoad, TakesKeysOfSeveralAttributesInAnyOrder) {
  Write("teams.csv", "limit,header.X-Team,org\n9/s,search,acme\n");
  const PolicyReport report = LoadRule(
      "    key: [org, header.x-team]\n    limit: 5/s\n    unidentified: skip\n"
      "    overrides: [{ file: teams.csv }, { org: acme, header.X-TEAM: ads, limit: 8/s }]\n");
  const std::vector<NamedValue> search = {{"x-team", "search"}};
  const std::vector<NamedValue> ads = {{"X-Team", "ads"}};
  EXPECT_EQ(LimitOf(report, {.org = "acme", .headers = search}), "9/s");
  EXPECT_EQ(LimitOf(report, {.org = "acme", .headers = ads}), "8/s");
  EXPECT_EQ(LimitOf(report, {.org = "other", .headers = ads}), "5/s");
}

TEST_F(PolicyLoad, TakesOneOfSeveralAttributesPerRow) {
  Write("both.csv", "org,user,limit\nacme,,9/s\n,ann,8/s\n");
  const PolicyReport report =
      LoadRule("    key: { first_of: [org, user, ip] }\n    limit: 5/s\n    overrides: both.csv\n");
  EXPECT_THAT(Said(report), ElementsAre());
  EXPECT_EQ(LimitOf(report, {.user = "ann", .org = "acme"}), "9/s");
  EXPECT_EQ(LimitOf(report, {.user = "ann"}), "8/s");
  EXPECT_EQ(LimitOf(report, {.user = "ann", .org = "other"}), "5/s");
}

TEST_F(PolicyLoad, CountsAddressesInOneForm) {
  const PolicyReport report = LoadRule(
      "    key: { ip: { v4: 24, v6: 48 } }\n    limit: 5/s\n"
      "    overrides: { 10.1.2.3: 9/s, '2001:DB8:0:5::1': 8/s }\n");
  EXPECT_THAT(Said(report), ElementsAre());
  EXPECT_EQ(LimitOf(report, {.ip = "10.1.2.99"}), "9/s");
  EXPECT_EQ(LimitOf(report, {.ip = "::ffff:10.1.2.1"}), "9/s");
  EXPECT_EQ(LimitOf(report, {.ip = "10.1.3.3"}), "5/s");
  EXPECT_EQ(LimitOf(report, {.ip = "2001:db8:0:ffff::7"}), "8/s");
}

TEST_F(PolicyLoad, HashesKeysOfOverridesAsThoseOfRequests) {
  const PolicyReport report = LoadRule(
      "    match: { api_key: present }\n    key: { api_key: { hash: true } }\n    limit: 5/s\n"
      "    overrides: { secret-1: unlimited, secret-2: deny }\n");
  EXPECT_THAT(Said(report), ElementsAre());
  EXPECT_EQ(LimitOf(report, {.api_key = "secret-1"}), "unlimited");
  EXPECT_EQ(LimitOf(report, {.api_key = "secret-2"}), "deny");
  EXPECT_EQ(LimitOf(report, {.api_key = "secret-3"}), "5/s");
}

TEST_F(PolicyLoad, ChangesOnlyWhatKeepsTheCount) {
  const auto load = [&](const std::string& algorithm, const std::string& limit) {
    return LoadRule("    key: ip\n    limit: 5/min\n    algorithm: " + algorithm +
                    "\n    overrides: { 10.0.0.1: " + limit + " }\n")
        .policy.has_value();
  };
  EXPECT_TRUE(load("token_bucket", "7/h burst 9"));
  EXPECT_FALSE(load("token_bucket", "7 concurrent"));
  EXPECT_TRUE(load("sliding_window", "7/min"));
  EXPECT_FALSE(load("sliding_window", "7/h"));
  EXPECT_TRUE(load("sliding_log", "deny"));
}

TEST_F(PolicyLoad, TakesVeryManyOverrides) {
  std::string rows = "user,limit\n";
  for (int i = 0; i < kMany; ++i) {
    rows += "customer-" + std::to_string(i) + "," + std::to_string(i % 100 + 6) + "/s\n";
  }
  Write("users.csv", rows);
  const PolicyReport report =
      LoadRule("    key: user\n    limit: 5/s\n    unidentified: skip\n    overrides: users.csv\n");
  EXPECT_THAT(Said(report), ElementsAre());
  EXPECT_EQ(LimitOf(report, {.user = "customer-0"}), "6/s");
  EXPECT_EQ(LimitOf(report, {.user = "customer-" + std::to_string(kMany - 1)}), "105/s");
  EXPECT_EQ(LimitOf(report, {.user = "customer-x"}), "5/s");
  ASSERT_TRUE(report.policy.has_value());
  const CompiledRule& rule = report.policy->compiled().rules.at(0);
  EXPECT_EQ(rule.overrides->size(), static_cast<std::size_t>(kMany));
  EXPECT_LE(rule.overrides->bytes(), static_cast<std::size_t>(kMany) * 40);
  EXPECT_EQ(rule.limits.size(), 101U);
}

}  // namespace
}  // namespace weir
