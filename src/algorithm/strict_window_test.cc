#include "algorithm/strict_window.h"

#include <deque>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

LimitSpec Strict(int sub_windows = 10) {
  LimitSpec spec;
  spec.algorithm = Algorithm::kSlidingWindow;
  spec.strict = true;
  spec.sub_windows = sub_windows;
  return spec;
}
DrivenKey StrictWindowKey(std::string_view text, const LimitSpec& defaults = Strict()) {
  return DrivenKey(Limit::Parse(text, defaults).value());
}
DrivenKey ExactLogKey(std::string_view text) {
  LimitSpec defaults;
  defaults.algorithm = Algorithm::kSlidingLog;
  return DrivenKey(Limit::Parse(text, defaults).value());
}

TEST(StrictWindow, DoesNotPassAHundredOneSecondAfterAHundred) {
  DrivenKey key = StrictWindowKey("100/min");
  key.Advance(12h + 59s);
  EXPECT_TRUE(key.Check(100).allowed);
  key.Advance(1s);
  const Decision denial = key.Check(100);
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.remaining, 0);
  EXPECT_EQ(denial.retry_after, 60s);
  EXPECT_EQ(denial.reset_after, 60s);
  EXPECT_EQ(TakeAll(key), 0);
}

TEST(StrictWindow, NeverPassesItsLimitInAnyWindowHoweverTheBurstsFall) {
  for (const int sub_windows : {2, 3, 10, 60}) {
    DrivenKey key = StrictWindowKey("20/s", Strict(sub_windows));
    std::deque<Duration> admitted;
    Duration now{0};
    for (int i = 0; i < 20'000; ++i) {
      const Duration step = i % 3 == 0 ? Duration(0) : Duration(i * 7'919'717LL % 90'000'000);
      key.Advance(step);
      now += step;
      if (key.Check().allowed) admitted.push_back(now);
      while (!admitted.empty() && admitted.front() <= now - 1s) admitted.pop_front();
      ASSERT_LE(admitted.size(), 20U);
    }
  }
}

TEST(StrictWindow, RefusesAtMostOneSubWindowLongerThanTheLog) {
  for (const int sub_windows : {2, 7, 10, 60}) {
    for (int i = 0; i < 100; ++i) {
      DrivenKey strict = StrictWindowKey("5/s", Strict(sub_windows));
      DrivenKey log = ExactLogKey("5/s");
      const Duration start(i * 17'171'717LL);
      strict.Advance(start);
      log.Advance(start);
      EXPECT_TRUE(strict.Check(5).allowed);
      EXPECT_TRUE(log.Check(5).allowed);
      const Duration longer = strict.Check().retry_after - log.Check().retry_after;
      EXPECT_GE(longer, 0s);
      EXPECT_LE(longer, Duration(1s) / sub_windows + 1ns);
    }
  }
}

TEST(StrictWindow, SaysToTheNanosecondWhenARequestWillPass) {
  DrivenKey key = StrictWindowKey("10/7s", Strict(3));
  EXPECT_TRUE(key.Check(3).allowed);
  key.Advance(3s);
  EXPECT_TRUE(key.Check(4).allowed);
  key.Advance(3s);
  EXPECT_TRUE(key.Check(3).allowed);
  for (const std::int64_t cost : {1, 3, 4, 7, 8, 10}) {
    const Duration wait = key.Check(cost).retry_after;
    DrivenKey early = key;
    early.Advance(wait - Duration(1));
    EXPECT_FALSE(early.Check(cost).allowed) << cost;
    DrivenKey then = key;
    then.Advance(wait);
    EXPECT_TRUE(then.Check(cost).allowed) << cost;
  }
}

TEST(StrictWindow, AlignsItsSubWindowsToTheEpoch) {
  LimitSpec spec = Strict(4);
  spec.count = 1;
  spec.period = 28s;
  const Limit limit = Limit::Make(spec).value();
  for (const Duration start : {-10s, -7s, -3s, 0s, 3s, 7s, 700'000'003s}) {
    DrivenKey key(limit, {SteadyTime(5h), WallTime(start)});
    const Duration into = (start % 7s + 7s) % 7s;
    EXPECT_EQ(key.Check().reset_after, 28s + 7s - into);
  }
}

TEST(StrictWindow, KeepsItsPromiseWhenSubWindowsAreNoWholeNumberOfNanoseconds) {
  LimitSpec spec = Strict(60);
  spec.count = 1;
  spec.period = 1ms + 1ns;
  DrivenKey key(Limit::Make(spec).value());
  EXPECT_GE(key.limit().sub_window() * 60, key.limit().window());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(key.Check().allowed);
    const Duration wait = key.Check().retry_after;
    EXPECT_GE(wait, spec.period);
    EXPECT_LE(wait, spec.period + spec.period / 60 + 10ns);
    key.Advance(wait);
  }
}

TEST(StrictWindow, IsFreshBeforeAnythingIsCountedAndOnceAllIsOver) {
  DrivenKey key = StrictWindowKey("10/min");
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(FreshAt(key.limit(), key.strict), Ticks(0));
  EXPECT_EQ(key.Check().reset_after, 66s);
  key.Advance(66s - Duration(1));
  EXPECT_EQ(key.Peek().remaining, 9);
  key.Advance(Duration(1));
  EXPECT_EQ(key.Peek().remaining, 10);
  EXPECT_EQ(key.Peek().reset_after, 0s);
}

TEST(StrictWindow, ForgetsEverythingAfterAJumpForward) {
  DrivenKey key = StrictWindowKey("10/min");
  EXPECT_EQ(TakeAll(key), 10);
  key.Advance(24h * 365);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(StrictWindow, DistinguishesNeverFromNotNow) {
  DrivenKey key = StrictWindowKey("3/min");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check(3).reason, Reason::kLimited);
  EXPECT_EQ(key.Check(4).reason, Reason::kNeverFits);
  EXPECT_EQ(key.Check(kHuge).retry_after, kNever);
}

TEST(StrictWindow, LeavesTheStateAsItWasWhenItDeniesOrIsOnlyAsked) {
  DrivenKey key = StrictWindowKey("3/min");
  EXPECT_TRUE(key.Check(3).allowed);
  const StrictWindowState before = key.strict;
  key.Advance(30s);
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_FALSE(key.Peek().allowed);
  key.Advance(24h);
  EXPECT_TRUE(key.Peek(3).allowed);
  EXPECT_TRUE(key.Check(0).allowed);
  EXPECT_FALSE(key.Check(4).allowed);
  EXPECT_EQ(key.strict.end, before.end);
  EXPECT_EQ(key.strict.counts, before.counts);
}

// A question asked by a thread whose clock was ahead must not drop what still counts for others.
TEST(StrictWindow, HandsOutNothingToAnEarlierClockAfterALaterOneAsked) {
  DrivenKey key = StrictWindowKey("3/min");
  EXPECT_EQ(TakeAll(key), 3);
  key.Advance(66s);
  EXPECT_TRUE(key.Peek(3).allowed);
  key.Advance(-1ns);
  EXPECT_EQ(TakeAll(key), 0);
}

TEST(StrictWindow, GoesOnWithStoredSubWindowsThatAreLaterThanTheClock) {
  DrivenKey key = StrictWindowKey("4/min");
  key.Advance(60s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Advance(-60s);
  EXPECT_EQ(key.Peek().remaining, 1);
  EXPECT_EQ(key.Check().reset_after, 126s);
  EXPECT_FALSE(key.Check().allowed);
}

TEST(StrictWindow, TakesOverTheCountsOfSubWindowsMoreThanOnePeriodLater) {
  DrivenKey key = StrictWindowKey("4/min");
  key.Advance(24h);
  EXPECT_TRUE(key.Check(1).allowed);
  key.Advance(6s);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(-24h);
  EXPECT_EQ(key.Check(2).retry_after, 60s);
  EXPECT_EQ(key.Check(2).reset_after, 66s);
}

TEST(StrictWindow, ShutsNobodyOutForLongerThanItsWindowsWhenTheClockStepsBack) {
  DrivenKey key = StrictWindowKey("3/min");
  key.Advance(24h * 300);
  key.Penalize(kHuge);
  key.Advance(-24h * 300);
  int denied = 0;
  for (; !key.Check().allowed; ++denied) key.Advance(1s);
  EXPECT_EQ(denied, 66);
}

TEST(StrictWindow, RefundsTheOldestFirst) {
  DrivenKey key = StrictWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  key.Advance(6s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Refund(5);
  EXPECT_EQ(key.strict.counts[1], 0);
  EXPECT_EQ(key.strict.counts[0], 2);
  EXPECT_EQ(key.Refund(kHuge).remaining, 10);
}

TEST(StrictWindow, RefundsAReservationWhereItWasCharged) {
  DrivenKey key = StrictWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt first = key.receipt();
  EXPECT_EQ(first.charged, 4);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Settle(first, 1);
  EXPECT_EQ(key.strict.counts[10], 1);
  EXPECT_EQ(key.strict.counts[0], 3);
  DrivenKey unbooked = key;
  EXPECT_EQ(unbooked.Unbook({1, first.at}).remaining, 7);
  key.Advance(6s);
  key.Cancel({1, first.at});  // It no longer counts.
  EXPECT_EQ(key.Peek().remaining, 7);
}

// After clock damage nobody knows where the charge is: taking it from another's would over-admit.
TEST(StrictWindow, IgnoresAReceiptFromBeforeClockDamageWasMended) {
  DrivenKey key = StrictWindowKey("10/min");
  key.Advance(24h);
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(-24h);
  EXPECT_TRUE(key.Check(5).allowed);
  EXPECT_EQ(key.Cancel(receipt).remaining, 1);
}

TEST(StrictWindow, CommitAboveWhatWasReservedGoesIntoDebtUpToTwiceTheLimit) {
  DrivenKey key = StrictWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  EXPECT_EQ(key.Settle(receipt, 4).remaining, 6);
  key.Advance(6s);
  EXPECT_EQ(key.Settle(receipt, 9).remaining, 1);
  EXPECT_EQ(key.Settle(receipt, kHuge).remaining, 0);
  EXPECT_EQ(key.strict.counts[0], 16);
  EXPECT_EQ(key.Penalize(5).remaining, 0);
  EXPECT_EQ(key.strict.counts[0], 16);
}

TEST(StrictWindow, OverdraftAllowsAsLongAsAnythingIsLeft) {
  LimitSpec defaults = Strict();
  defaults.overdraft = true;
  DrivenKey key = StrictWindowKey("10/min", defaults);
  EXPECT_TRUE(key.Check(9).allowed);
  EXPECT_TRUE(key.Check(kHuge).allowed);
  EXPECT_EQ(key.receipt().charged, 11);
  EXPECT_EQ(key.Check(5).retry_after, 66s);
  EXPECT_EQ(key.Check(5).reason, Reason::kLimited);
}

TEST(StrictWindow, IsFreshAfterAReset) {
  DrivenKey key = StrictWindowKey("10/min");
  key.Penalize(kHuge);
  EXPECT_EQ(key.Reset().remaining, 10);
  EXPECT_EQ(key.Reset().reset_after, 0s);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(StrictWindow, KeepsItsCountInProportionRoundedUpUnderANewLimit) {
  DrivenKey key = StrictWindowKey("100/min");
  for (int i = 0; i < 11; ++i) {
    EXPECT_TRUE(key.Check(1).allowed);
    key.Advance(6s);
  }
  key.Advance(-6s);
  key.ChangeTo(StrictWindowKey("10/min").limit());
  EXPECT_EQ(key.Peek().remaining, 8);  // Eleven hundredths are two tenths, rounded up.
  key.Advance(6s);
  EXPECT_EQ(key.Peek().remaining, 9);  // And ten hundredths are one.
  key.Advance(54s);
  EXPECT_EQ(key.Peek().remaining, 9);
  key.Advance(6s);
  EXPECT_EQ(key.Peek().remaining, 10);
}

TEST(StrictWindow, AddsUpWhatWasCountedInTwoPlaces) {
  DrivenKey one = StrictWindowKey("10/min");
  EXPECT_TRUE(one.Check(4).allowed);
  DrivenKey other = StrictWindowKey("10/min");
  EXPECT_TRUE(other.Check(3).allowed);
  const auto merge = [&](const DrivenKey& a, const DrivenKey& b) {
    return MergeStrictWindows(one.limit(), a.strict, b.strict, one.instant());
  };
  EXPECT_EQ(merge(one, other).counts[0], 7);
  // Another's clock was ahead: the later sub-window goes on.
  other.Advance(6s);
  EXPECT_TRUE(other.Check(1).allowed);
  for (const auto& [a, b] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    EXPECT_EQ(merge(*a, *b).end, other.strict.end);
    EXPECT_EQ(merge(*a, *b).counts[0], 1);
    EXPECT_EQ(merge(*a, *b).counts[1], 7);
  }
  // More than twice the limit is forgiven, the oldest first.
  one.Penalize(kHuge);
  EXPECT_EQ(merge(one, other).counts[0], 1);
  EXPECT_EQ(merge(one, other).counts[1], 19);
}

// A store gives no place to a key that is left fresh, so the step must not tell the two apart.
TEST(StrictWindow, BeginsNoWindowWithNothing) {
  DrivenKey key = StrictWindowKey("3/min");
  EXPECT_EQ(key.Refund(2).remaining, 3);
  EXPECT_EQ(key.Settle({.charged = 2, .at = key.instant().now}, 1).remaining, 3);
  EXPECT_EQ(key.Penalize(0).remaining, 3);
  EXPECT_EQ(key.strict.end, Ticks(0));
  EXPECT_EQ(TakeAll(key), 3);
  const auto used_up = key.strict.end;
  // A clock that is ahead gives nothing to those who are behind.
  key.Advance(3min);
  EXPECT_EQ(key.Refund(2).remaining, 3);
  EXPECT_EQ(key.strict.end, used_up);
  key.Advance(-3min);
  EXPECT_EQ(TakeAll(key), 0);
  EXPECT_EQ(key.Refund(3).remaining, 3);
  EXPECT_EQ(TakeAll(key), 3);
}

}  // namespace
}  // namespace weir
