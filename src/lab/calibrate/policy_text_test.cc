#include "lab/calibrate/policy_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/policy.h>

#include "policy/yaml_format.h"

namespace weir::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Calibration Learnt(const ClientKey& key) {
  Calibration learnt;
  learnt.key = key.text();
  learnt.key_columns = key.columns();
  learnt.chosen_part = key.chosen_part();
  if (!learnt.chosen_part.empty()) learnt.chosen_values = {"/items/17", "/search"};
  learnt.logs = {{.file = "/var/log/shop.log"}, {.file = "-"}};
  learnt.requests = 12'345;
  learnt.clients = 2'000;
  learnt.abuser_count = 3;
  learnt.abuser_requests = 1'000;
  learnt.rules = {{.name = key.rule_name(),
                   .period = kMinute,
                   .count = 180,
                   .burst = 40,
                   .peak_at_quantile = 120,
                   .burst_at_quantile = 26,
                   .denials = {.normal_requests = 7, .normal_clients = 2}},
                  {.name = key.rule_name() + "-day",
                   .period = kDay,
                   .count = 1'500,
                   .peak_at_quantile = 1'000,
                   .fixed_window = true}};
  return learnt;
}

TEST(PolicyText, IsInFormAndWithoutAdviceWhateverTheKey) {
  for (const char* text : {"ip", "user", "api_key", "org", "tier", "method", "ip+path", "ip+host",
                           "account id", "user+team", "path"}) {
    SCOPED_TRACE(text);
    const ClientKey key = *ClientKey::Parse(text, {});
    const std::string yaml = PolicyTextOf(Learnt(key), key, Comments::kAll);
    EXPECT_EQ(FormatYaml(yaml).text, yaml);
    const PolicyReport report = Policy::Parse(yaml);
    for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
    ASSERT_TRUE(report.policy);
    ASSERT_EQ(report.policy->spec().rules.size(), 2U);
    for (const RuleSpec& rule : report.policy->spec().rules) {
      EXPECT_EQ(rule.mode, RuleMode::kShadow);
      EXPECT_EQ(rule.key, key.spec());
    }
    EXPECT_EQ(report.policy->spec().rules.front().limit, "180/min burst 40");
  }
}

TEST(PolicyText, SaysWhereItsLimitsComeFromAndHowToEnforceThem) {
  const ClientKey key = *ClientKey::Parse("account_id", {});
  const std::string yaml = PolicyTextOf(Learnt(key), key, Comments::kAll);
  std::string flat;  // Lines are broken anywhere.
  for (std::size_t i = 0; i < yaml.size(); ++i) {
    if (yaml.substr(i, 5) == "\n  # ") i += 4;
    if (yaml.substr(i, 3) == "\n# ") i += 2;
    flat += yaml[i];
  }
  EXPECT_THAT(flat, AllOf(HasSubstr("from shop.log, standard input: 12,345 requests"),
                          HasSubstr("1.5 times what 99.9 % of the clients stayed within"),
                          HasSubstr("--column user=account_id"), HasSubstr("enforce_percent: 10"),
                          HasSubstr("denied 7 of 11,345 requests, those of 2 of 1,997 clients"),
                          HasSubstr("need a burst of at most 26")));
  EXPECT_THAT(yaml, Not(HasSubstr("/var/log")));
}

TEST(PolicyText, SaysThatItIsFromAPartOfTheLog) {
  const ClientKey key = *ClientKey::Parse("ip", {});
  Calibration learnt = Learnt(key);
  EXPECT_THAT(PolicyTextOf(learnt, key, Comments::kAll), Not(HasSubstr("not all of the log")));
  learnt.logs.front().cut_short = "the end is missing";
  EXPECT_THAT(PolicyTextOf(learnt, key, Comments::kAll), HasSubstr("not all of the log"));
}

// Names of files and columns come from outside.
TEST(PolicyText, LetsNothingBreakOutOfItsComments) {
  const ClientKey key = *ClientKey::Parse("a\nrules: []", {});
  Calibration learnt = Learnt(key);
  learnt.logs.front().file = "x\nlisten: {}\n";
  const PolicyReport report = Policy::Parse(PolicyTextOf(learnt, key, Comments::kAll));
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  ASSERT_TRUE(report.policy);
  EXPECT_EQ(report.policy->spec().rules.size(), 2U);
}

TEST(PolicyText, ListsOnlyValuesThatStandForThemselves) {
  EXPECT_TRUE(CanBeListed("/items/17"));
  for (const char* value : {"", "/a*", "/{id}", "/a b", "/%2f", "/\"", "/\\", "/\x7f"}) {
    EXPECT_FALSE(CanBeListed(value)) << value;
  }
}

TEST(PolicyText, WritesTimesAndNumbersForPeople) {
  EXPECT_EQ(TextOfTime(WallTime(std::chrono::seconds(1'772'409'600))), "2026-03-02 00:00:00");
  EXPECT_EQ(Grouped(1'234'567), "1,234,567");
  EXPECT_EQ(Grouped(123), "123");
  EXPECT_EQ(TextOfNumber(99.9), "99.9");
  EXPECT_EQ(TextOfNumber(99), "99");
  EXPECT_EQ(Counted(1, "line"), "1 line");
}

}  // namespace
}  // namespace weir::lab
