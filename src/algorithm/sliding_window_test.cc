#include "algorithm/sliding_window.h"

#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

LimitSpec Sliding() {
  LimitSpec spec;
  spec.algorithm = Algorithm::kSlidingWindow;
  return spec;
}
DrivenKey SlidingWindowKey(std::string_view text, const LimitSpec& defaults = Sliding()) {
  return DrivenKey(Limit::Parse(text, defaults).value());
}
DrivenKey OverdrawnSlidingWindowKey(std::string_view text) {
  LimitSpec defaults = Sliding();
  defaults.overdraft = true;
  return SlidingWindowKey(text, defaults);
}

TEST(SlidingWindow, CountsEightyBeforeAndThirtyNowAsNinetyAQuarterThrough) {
  DrivenKey key = SlidingWindowKey("100/min");
  EXPECT_TRUE(key.Check(80).allowed);
  key.Advance(60s + 15s);
  const Decision decision = key.Check(30);
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.remaining, 100 - 90);
}

TEST(SlidingWindow, CountsEightyBeforeAndFortyNowAsEightyHalfwayThrough) {
  DrivenKey key = SlidingWindowKey("100/min");
  EXPECT_TRUE(key.Check(80).allowed);
  key.Advance(60s + 30s);
  EXPECT_EQ(key.Check(40).remaining, 100 - 80);
}

TEST(SlidingWindow, RoundsItsEstimateDown) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_TRUE(key.Check(1).allowed);
  key.Advance(60s);
  EXPECT_EQ(key.Peek().remaining, 9);
  key.Advance(1ns);
  EXPECT_EQ(key.Peek().remaining, 10);
}

TEST(SlidingWindow, SaysToTheNanosecondWhenARequestWillPass) {
  for (const std::int64_t before : {3, 7, 10}) {
    for (const std::int64_t now : {0, 1, 2, 5, 9}) {
      for (const std::int64_t cost : {1, 2, 9, 10}) {
        DrivenKey key = SlidingWindowKey("10/7s");
        EXPECT_TRUE(key.Check(before).allowed);
        key.Advance(key.Peek().reset_after - 7s);  // To the next window.
        key.Advance(1s);
        key.Penalize(now);
        const Decision denial = key.Check(cost);
        if (denial.allowed) continue;
        DrivenKey early = key;
        early.Advance(denial.retry_after - Duration(1));
        EXPECT_FALSE(early.Check(cost).allowed) << before << " " << now << " " << cost;
        DrivenKey then = key;
        then.Advance(denial.retry_after);
        EXPECT_TRUE(then.Check(cost).allowed) << before << " " << now << " " << cost;
      }
    }
  }
}

// The estimate takes the previous window's requests for evenly spread. Who sends them all late gets
// close to twice the limit within one window's length, and never above limit + ceil(limit t / W).
TEST(SlidingWindow, LetsABurstLateInAWindowReachNearlyTwiceTheLimitAndNeverPassItsPromise) {
  for (const int limit : {1, 2, 10, 100, 1000}) {
    DrivenKey key = SlidingWindowKey(std::to_string(limit) + "/s");
    key.Advance(1s - 1ms);
    EXPECT_EQ(TakeAll(key), limit);
    int admitted = limit;
    for (int t = 1; t <= 1000; ++t) {
      key.Advance(1ms);
      admitted += TakeAll(key);
      EXPECT_LE(admitted, limit + (limit * t + 999) / 1000) << limit << " after " << t << " ms";
    }
    EXPECT_GE(admitted, 2 * limit - 1 - limit / 1000) << limit;
    EXPECT_LE(admitted, 2 * limit) << limit;
  }
}

TEST(SlidingWindow, DoesNotPassAHundredOneSecondAfterAHundred) {
  DrivenKey key = SlidingWindowKey("100/min");
  key.Advance(12h + 59s);
  EXPECT_TRUE(key.Check(100).allowed);
  key.Advance(1s);
  EXPECT_FALSE(key.Check(100).allowed);
}

TEST(SlidingWindow, IsFreshOnceBothWindowsAreOver) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(key.Check().reset_after, 120s);
  key.Advance(70s);
  EXPECT_EQ(key.Peek().reset_after, 50s);
  key.Advance(50s);
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(key.Peek(10).remaining, 10);
}

TEST(SlidingWindow, ForgetsBothWindowsAfterAJumpForward) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_EQ(TakeAll(key), 10);
  key.Advance(24h * 365);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(SlidingWindow, DistinguishesNeverFromNotNow) {
  DrivenKey key = SlidingWindowKey("3/min");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check(3).reason, Reason::kLimited);
  EXPECT_EQ(key.Check(4).reason, Reason::kNeverFits);
  EXPECT_EQ(key.Check(kHuge).retry_after, kNever);
}

TEST(SlidingWindow, LeavesTheStateAsItWasWhenItDeniesOrIsOnlyAsked) {
  DrivenKey key = SlidingWindowKey("3/min");
  EXPECT_TRUE(key.Check(3).allowed);
  const Ticks end = key.sliding.end;
  key.Advance(59s);
  EXPECT_FALSE(key.Check().allowed);
  key.Advance(1s);
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_FALSE(key.Peek().allowed);
  EXPECT_FALSE(key.Check(0).allowed);
  key.Advance(24h);
  EXPECT_TRUE(key.Peek().allowed);
  EXPECT_FALSE(key.Check(4).allowed);
  EXPECT_EQ(key.sliding.end, end);
  EXPECT_EQ(key.sliding.current, 3);
}

TEST(SlidingWindow, GoesOnWithAStoredWindowThatIsLaterThanTheClock) {
  DrivenKey key = SlidingWindowKey("4/min");
  EXPECT_TRUE(key.Check(1).allowed);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(-30s);
  // Before its window has begun all of the previous one still counts.
  EXPECT_EQ(key.Peek().remaining, 1);
  EXPECT_EQ(key.Check(2).retry_after, 30s + 1ns);
  EXPECT_EQ(key.Check().reset_after, 150s);
}

TEST(SlidingWindow, TakesOverTheCountsOfAWindowMoreThanOnePeriodLater) {
  DrivenKey key = SlidingWindowKey("4/min");
  key.Advance(60s);
  EXPECT_TRUE(key.Check(1).allowed);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(-90s);
  EXPECT_EQ(key.Peek().remaining, 2);  // Half of one is rounded down.
  EXPECT_EQ(key.Peek().reset_after, 90s);
}

TEST(SlidingWindow, ShutsNobodyOutForLongerThanTwoWindowsWhenTheClockStepsBack) {
  DrivenKey key = SlidingWindowKey("3/min");
  key.Advance(24h * 300);
  key.Penalize(kHuge);
  key.Advance(-24h * 300);
  int denied = 0;
  for (; !key.Check().allowed; ++denied) key.Advance(1s);
  EXPECT_LE(denied, 120);
}

TEST(SlidingWindow, RefundsTheOldestFirst) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Refund(5);
  EXPECT_EQ(key.sliding.previous, 0);
  EXPECT_EQ(key.sliding.current, 2);
  EXPECT_EQ(key.Refund(kHuge).remaining, 10);
}

TEST(SlidingWindow, RefundsAReservationWhereItWasCharged) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt first = key.receipt();
  DrivenKey at_once = key;
  at_once.Settle(first, 1);
  EXPECT_EQ(at_once.sliding.current, 1);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Settle(first, 2);
  EXPECT_EQ(key.sliding.previous, 2);
  EXPECT_EQ(key.sliding.current, 3);
  DrivenKey unbooked = key;
  unbooked.Unbook({2, first.at});
  EXPECT_EQ(unbooked.sliding.previous, 0);
  key.Advance(60s);
  key.Cancel({2, first.at});  // Its window is over.
  EXPECT_EQ(key.sliding.previous, 3);
}

TEST(SlidingWindow, CommitAboveWhatWasReservedGoesIntoDebt) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  EXPECT_EQ(key.Settle(receipt, 4).remaining, 6);
  EXPECT_EQ(key.Settle(receipt, 12).remaining, 0);
  EXPECT_EQ(key.sliding.current, 12);
}

TEST(SlidingWindow, DebtEndsAtTwiceTheLimitWithWhatIsLeftOfTheWindowBefore) {
  DrivenKey key = SlidingWindowKey("10/min");
  EXPECT_TRUE(key.Check(10).allowed);
  key.Advance(90s);
  key.Penalize(kHuge);
  EXPECT_EQ(key.sliding.current, 15);
  EXPECT_EQ(key.sliding.previous, 10);
  key.Reset();
  EXPECT_TRUE(key.Check(10).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(60s);
  key.Settle(receipt, kHuge);
  EXPECT_EQ(key.sliding.current + key.sliding.previous / 2, 20);
}

TEST(SlidingWindow, OverdraftAllowsAsLongAsAnythingIsLeft) {
  DrivenKey key = OverdrawnSlidingWindowKey("10/min");
  EXPECT_TRUE(key.Check(9).allowed);
  EXPECT_TRUE(key.Check(kHuge).allowed);
  EXPECT_EQ(key.receipt().charged, 11);
  const Decision denial = key.Check(5);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  key.Advance(denial.retry_after - Duration(1));
  EXPECT_FALSE(key.Check(5).allowed);
  key.Advance(Duration(1));
  EXPECT_TRUE(key.Check(5).allowed);
}

TEST(SlidingWindow, IsFreshAfterAReset) {
  DrivenKey key = SlidingWindowKey("10/min");
  key.Penalize(kHuge);
  EXPECT_EQ(key.Reset().remaining, 10);
  EXPECT_EQ(key.Reset().reset_after, 0s);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(SlidingWindow, KeepsItsCountsInProportionRoundedUpUnderANewLimit) {
  DrivenKey key = SlidingWindowKey("100/min");
  EXPECT_TRUE(key.Check(41).allowed);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(22).allowed);
  key.ChangeTo(SlidingWindowKey("10/min").limit());
  EXPECT_EQ(key.sliding.previous, 5);
  EXPECT_EQ(key.sliding.current, 3);
}

TEST(SlidingWindow, AddsUpWhatWasCountedInTwoPlaces) {
  DrivenKey one = SlidingWindowKey("10/min");
  EXPECT_TRUE(one.Check(4).allowed);
  DrivenKey other = SlidingWindowKey("10/min");
  EXPECT_TRUE(other.Check(3).allowed);
  const auto merge = [&](const DrivenKey& a, const DrivenKey& b) {
    return MergeSlidingWindows(one.limit(), a.sliding, b.sliding, one.instant());
  };
  EXPECT_EQ(merge(one, other).current, 7);
  EXPECT_EQ(merge(one, other).previous, 0);
  // Another's clock was ahead: the later window goes on.
  other.Advance(1min);
  EXPECT_TRUE(other.Check(1).allowed);
  for (const auto& [a, b] : {std::pair(&one, &other), std::pair(&other, &one)}) {
    EXPECT_EQ(merge(*a, *b).end, other.sliding.end);
    EXPECT_EQ(merge(*a, *b).previous, 7);
    EXPECT_EQ(merge(*a, *b).current, 1);
  }
  one.Penalize(kHuge);
  other.Advance(-1min);
  EXPECT_EQ(merge(one, one).current, 20);
}

// A store gives no place to a key that is left fresh, so the step must not tell the two apart.
TEST(SlidingWindow, BeginsNoWindowWithNothing) {
  DrivenKey key = SlidingWindowKey("3/min");
  EXPECT_EQ(key.Refund(2).remaining, 3);
  EXPECT_EQ(key.Settle({.charged = 2, .at = key.instant().now}, 1).remaining, 3);
  EXPECT_EQ(key.Penalize(0).remaining, 3);
  EXPECT_EQ(key.sliding.end, Ticks(0));
  EXPECT_EQ(TakeAll(key), 3);
  const auto used_up = key.sliding.end;
  // A clock that is ahead gives nothing to those who are behind.
  key.Advance(3min);
  EXPECT_EQ(key.Refund(2).remaining, 3);
  EXPECT_EQ(key.sliding.end, used_up);
  key.Advance(-3min);
  EXPECT_EQ(TakeAll(key), 0);
  EXPECT_EQ(key.Refund(3).remaining, 3);
  EXPECT_EQ(TakeAll(key), 3);
}

}  // namespace
}  // namespace weir
