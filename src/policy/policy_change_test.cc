// Which changes look like accidents, and which only almost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/policy.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

PolicySpec WithRules(int count) {
  PolicySpec spec;
  for (int i = 0; i < count; ++i) {
    spec.rules.push_back({.name = std::to_string(i), .key = {"ip"}, .limit = "5/s"});
  }
  return spec;
}

PolicySpec With(RuleSpec rule) {
  PolicySpec spec;
  rule.name = "x";
  rule.key = {"ip"};
  spec.rules.push_back(std::move(rule));
  return spec;
}

std::vector<std::string> Cut(std::string before, std::string after) {
  return WhySuspicious(With({.name = "", .limit = std::move(before)}),
                       With({.name = "", .limit = std::move(after)}));
}

TEST(WhySuspicious, NoRulesAnyMore) {
  EXPECT_THAT(WhySuspicious(WithRules(3), WithRules(0)),
              ElementsAre("there are no rules any more, and there were 3"));
  EXPECT_THAT(WhySuspicious(WithRules(0), WithRules(0)), IsEmpty());
  EXPECT_THAT(WhySuspicious(WithRules(0), WithRules(3)), IsEmpty());
}

TEST(WhySuspicious, TenTimesFewerRules) {
  EXPECT_THAT(WhySuspicious(WithRules(10), WithRules(1)),
              ElementsAre("there is only 1 rule, and there were 10"));
  EXPECT_THAT(WhySuspicious(WithRules(9), WithRules(1)), IsEmpty());
  EXPECT_THAT(WhySuspicious(WithRules(29), WithRules(3)), IsEmpty());
  EXPECT_THAT(WhySuspicious(WithRules(30), WithRules(3)), ElementsAre(HasSubstr("only 3 rules")));
}

TEST(WhySuspicious, ALimitCutMoreThanTenTimes) {
  EXPECT_THAT(
      Cut("100/min", "9/min"),
      ElementsAre("the limit of \"x\" is cut from \"100/min\" to \"9/min\", more than ten times"));
  EXPECT_THAT(Cut("1000/min", "99/min"), ElementsAre(HasSubstr("cut")));
}

TEST(WhySuspicious, ALimitCutJustTenTimesIsNot) {
  // Also where the rates have no end as decimal numbers.
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"100/min", "10/min"},
           {"10/s", "60/min"},
           {"70/min", "7/min"},
           {"100/7s", "10/7s"},
           {"1000000000000000/day", "100000000000000/day"}}) {
    EXPECT_THAT(Cut(before, after), IsEmpty()) << before << " to " << after;
  }
}

TEST(WhySuspicious, ABurstThatIsCutIs) {
  EXPECT_THAT(Cut("600/min", "600/min burst 10"), SizeIs(1));
  EXPECT_THAT(Cut("600/min", "600/min burst 60"), IsEmpty());
}

TEST(WhySuspicious, TheSameRateInOtherUnitsIsNot) {
  EXPECT_THAT(Cut("60/min", "1/s"), IsEmpty());
  EXPECT_THAT(Cut("1/s", "3600/h"), IsEmpty());
  EXPECT_THAT(Cut("1/s", "300/h"), ElementsAre(HasSubstr("cut")));
}

TEST(WhySuspicious, RaisingALimitIsNot) {
  EXPECT_THAT(Cut("5/s", "5000/s"), IsEmpty());
  EXPECT_THAT(Cut("deny", "5/s"), IsEmpty());
  EXPECT_THAT(Cut("5/s", "unlimited"), IsEmpty());
}

TEST(WhySuspicious, DenyingWhatWasAllowed) {
  EXPECT_THAT(Cut("5/s", "deny"), ElementsAre(HasSubstr("to \"deny\"")));
  EXPECT_THAT(Cut("unlimited", "deny"), ElementsAre(HasSubstr("to \"deny\"")));
  EXPECT_THAT(Cut("20 concurrent", "deny"), ElementsAre(HasSubstr("to \"deny\"")));
  EXPECT_THAT(Cut("deny", "deny"), IsEmpty());
}

TEST(WhySuspicious, ALimitWhereThereWasNoneIsNot) {
  EXPECT_THAT(Cut("unlimited", "5/s"), IsEmpty());
}

TEST(WhySuspicious, PlacesAreComparedWithPlacesOnly) {
  EXPECT_THAT(Cut("100 concurrent", "9 concurrent"), ElementsAre(HasSubstr("cut")));
  EXPECT_THAT(Cut("100 concurrent", "10 concurrent"), IsEmpty());
  EXPECT_THAT(Cut("100 concurrent", "1/min"), IsEmpty());
  EXPECT_THAT(Cut("1000/s", "5 concurrent"), IsEmpty());
}

TEST(WhySuspicious, CalendarWindowsAreRatesToo) {
  const auto monthly = [](std::string limit) {
    return With({.name = "",
                 .limit = std::move(limit),
                 .algorithm = Algorithm::kFixedWindow,
                 .align = Align::kCalendar});
  };
  EXPECT_THAT(WhySuspicious(monthly("1000/day"), monthly("31k/month")), IsEmpty());
  EXPECT_THAT(WhySuspicious(monthly("1000/day"), monthly("1000/month")),
              ElementsAre(HasSubstr("cut")));
}

TEST(WhySuspicious, RulesThatAreOffDoNotCount) {
  const PolicySpec before = With({.name = "", .limit = "1000/s"});
  const PolicySpec off = With({.name = "", .limit = "1/s", .mode = RuleMode::kOff});
  EXPECT_THAT(WhySuspicious(before, off), IsEmpty());
  EXPECT_THAT(WhySuspicious(With({.name = "", .limit = "1000/s", .mode = RuleMode::kOff}),
                            With({.name = "", .limit = "1/s"})),
              IsEmpty());
}

TEST(WhySuspicious, ARuleOfAnotherNameIsAnotherRule) {
  PolicySpec after = With({.name = "", .limit = "1/s"});
  after.rules[0].name = "y";
  EXPECT_THAT(WhySuspicious(With({.name = "", .limit = "1000/s"}), after), IsEmpty());
}

TEST(WhySuspicious, TheLimitsOfTiers) {
  PolicySpec before = With({.name = "", .tier_limit = "r"});
  before.tiers = {{"free", {{"r", "100/min"}}}, {"pro", {{"r", "1000/min"}}}};
  PolicySpec after = before;
  after.tiers["free"]["r"] = "10/min";
  after.tiers["new"]["r"] = "1/min";
  EXPECT_THAT(WhySuspicious(before, after), IsEmpty());
  after.tiers["pro"]["r"] = "99/min";
  EXPECT_THAT(WhySuspicious(before, after),
              ElementsAre(HasSubstr("the limit of \"x\" for the tier \"pro\" is cut")));
}

}  // namespace
}  // namespace weir
