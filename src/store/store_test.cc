#include "store/store.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::seconds;

Decision Allowed(std::string_view rule, std::int64_t remaining, std::int64_t limit,
                 Duration reset_after = Duration(0)) {
  return {.allowed = true,
          .reason = Reason::kOk,
          .rule = rule,
          .limit = limit,
          .remaining = remaining,
          .reset_after = reset_after};
}

Decision Denied(std::string_view rule, Duration retry_after) {
  return {.allowed = false,
          .reason = Reason::kLimited,
          .rule = rule,
          .limit = 10,
          .retry_after = retry_after};
}

// All enforced.
Decision Speaker(const std::vector<Decision>& decisions) {
  return Combine(std::vector<Charge>(decisions.size()), decisions);
}

TEST(Combine, LetsThroughWhatNoRuleLimits) {
  const Decision decision = Combine({}, {});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kNoRule);
  EXPECT_EQ(decision.retry_after, Duration(0));
}

TEST(Combine, SpeaksForTheOnlyRule) {
  const Decision decision = Speaker({Allowed("one", 3, 10, seconds(7))});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.rule, "one");
  EXPECT_EQ(decision.remaining, 3);
  EXPECT_EQ(decision.reset_after, seconds(7));
}

TEST(Combine, SpeaksForTheRuleWithTheLeastLeftInProportionAndNotInUnits) {
  const Decision decision = Speaker({Allowed("small", 3, 4), Allowed("large", 500, 1000)});
  EXPECT_EQ(decision.rule, "large");
}

TEST(Combine, BreaksATieByTheLongestReset) {
  EXPECT_EQ(
      Speaker({Allowed("soon", 5, 10, seconds(1)), Allowed("late", 50, 100, seconds(9))}).rule,
      "late");
  EXPECT_EQ(
      Speaker({Allowed("late", 50, 100, seconds(9)), Allowed("soon", 5, 10, seconds(1))}).rule,
      "late");
}

TEST(Combine, KeepsTheFirstOfEquals) {
  EXPECT_EQ(Speaker({Allowed("first", 5, 10), Allowed("second", 5, 10)}).rule, "first");
  EXPECT_EQ(Speaker({Denied("first", seconds(1)), Denied("second", seconds(1))}).rule, "first");
}

TEST(Combine, LetsOneDenialSpeakHoweverLittleTheOthersHaveLeft) {
  const Decision decision = Speaker({Allowed("empty", 0, 10), Denied("stop", seconds(1))});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.rule, "stop");
}

TEST(Combine, SpeaksForTheDenialWithTheLongestWait) {
  EXPECT_EQ(Speaker({Denied("short", seconds(1)), Denied("long", seconds(60)),
                     Denied("middle", seconds(30))})
                .rule,
            "long");
}

TEST(Combine, CountsNeverAsTheLongestWaitOfAll) {
  Decision never = Denied("never", kNever);
  never.reason = Reason::kNeverFits;
  const Decision decision = Speaker({Denied("long", std::chrono::hours(8'000)), never});
  EXPECT_EQ(decision.reason, Reason::kNeverFits);
  EXPECT_EQ(decision.retry_after, kNever);
}

TEST(Combine, GivesShadowsNoSay) {
  std::array<Charge, 2> charges;
  charges[1].shadow = true;
  const std::array decisions{Allowed("enforced", 9, 10), Denied("shadow", seconds(60))};
  const Decision decision = Combine(charges, decisions);
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.rule, "enforced");
}

TEST(Combine, LetsThroughWhatOnlyShadowsLimit) {
  std::array<Charge, 1> charges;
  charges[0].shadow = true;
  const std::array decisions{Denied("shadow", seconds(60))};
  const Decision decision = Combine(charges, decisions);
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kNoRule);
  EXPECT_EQ(decision.rule, "");
}

TEST(Combine, TellsTheLongestDelayWhoeverSpeaks) {
  Decision slow = Allowed("slow", 9, 10);
  slow.delay = seconds(4);
  Decision tight = Allowed("tight", 1, 10);
  tight.delay = seconds(1);
  const Decision decision = Speaker({slow, tight});
  EXPECT_EQ(decision.rule, "tight");
  EXPECT_EQ(decision.delay, seconds(4));
}

TEST(Combine, LeavesTheDelayOfAShadowOut) {
  std::array<Charge, 2> charges;
  charges[1].shadow = true;
  std::array decisions{Allowed("enforced", 9, 10), Allowed("shadow", 1, 10)};
  decisions[1].delay = seconds(4);
  EXPECT_EQ(Combine(charges, decisions).delay, Duration(0));
}

TEST(Combine, NamesNoDelayInADenial) {
  Decision slow = Allowed("slow", 9, 10);
  slow.delay = seconds(4);
  EXPECT_EQ(Speaker({slow, Denied("stop", seconds(1))}).delay, Duration(0));
}

TEST(IsTighter, ComparesTheLargestCountsWithoutOverflow) {
  const Decision nearly_full = Allowed("", kMaxCount - 1, kMaxCount);
  const Decision full = Allowed("", kMaxCount, kMaxCount);
  EXPECT_TRUE(IsTighter(nearly_full, full));
  EXPECT_FALSE(IsTighter(full, nearly_full));
}

TEST(IsTighter, HoldsForNoDecisionAgainstItself) {
  const Decision decision = Allowed("", 3, 10, seconds(1));
  EXPECT_FALSE(IsTighter(decision, decision));
}

}  // namespace
}  // namespace weir
