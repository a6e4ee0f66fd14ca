#include "algorithm/fixed_window.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

LimitSpec Fixed() {
  LimitSpec spec;
  spec.algorithm = Algorithm::kFixedWindow;
  return spec;
}
DrivenKey FixedWindowKey(std::string_view text, const LimitSpec& defaults = Fixed()) {
  return DrivenKey(Limit::Parse(text, defaults).value());
}
DrivenKey OverdrawnFixedWindowKey(std::string_view text) {
  LimitSpec defaults = Fixed();
  defaults.overdraft = true;
  return FixedWindowKey(text, defaults);
}
DrivenKey OfCalendar(std::int64_t count, CalendarPeriod period, const std::string& zone,
                     WallTime start) {
  LimitSpec spec = Fixed();
  spec.count = count;
  spec.align = Align::kCalendar;
  spec.calendar = period;
  spec.zone = zone;
  return DrivenKey(Limit::Make(spec).value(), {SteadyTime(1h), start});
}

constexpr WallTime On(int year, unsigned month, unsigned day) {
  return WallTime(std::chrono::sys_days(std::chrono::year(year) / std::chrono::month(month) /
                                        std::chrono::day(day)));
}

TEST(FixedWindow, DeniesOneMoreThanItsLimitUntilTheWindowIsOver) {
  DrivenKey key = FixedWindowKey("3/min");
  key.Advance(20s);
  EXPECT_EQ(key.Check().remaining, 2);
  EXPECT_EQ(key.Check(2).remaining, 0);
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.limit, 3);
  EXPECT_EQ(denial.retry_after, 40s);
  EXPECT_EQ(denial.reset_after, 40s);
  key.Advance(40s - Duration(1));
  EXPECT_FALSE(key.Check().allowed);
  key.Advance(Duration(1));
  EXPECT_TRUE(key.Check(3).allowed);
}

TEST(FixedWindow, PassesTwiceItsLimitAcrossABoundaryAndNoMore) {
  DrivenKey key = FixedWindowKey("100/min");
  key.Advance(12h + 59s);
  EXPECT_EQ(TakeAll(key), 100);
  key.Advance(1s);
  EXPECT_EQ(TakeAll(key), 100);
  key.Advance(59s);
  EXPECT_EQ(TakeAll(key), 0);
}

TEST(FixedWindow, IsAlignedToTheEpochWhateverTheStart) {
  LimitSpec spec = Fixed();
  spec.count = 1;
  spec.period = 7s;
  const Limit limit = Limit::Make(spec).value();
  for (const Duration start : {0s, 1s, 6s, 7s, 700'000'003s}) {
    DrivenKey key(limit, {SteadyTime(5h), WallTime(start)});
    EXPECT_EQ(key.Check().reset_after, 7s - start % 7s);
  }
}

TEST(FixedWindow, IsAlignedToTheEpochBeforeItToo) {
  LimitSpec spec = Fixed();
  spec.count = 1;
  spec.period = 7s;
  DrivenKey key(Limit::Make(spec).value(), {SteadyTime(5h), WallTime(-3s)});
  EXPECT_EQ(key.Check().reset_after, 3s);
}

TEST(FixedWindow, IsAlignedToTheEpochAtTheVeryOriginOfTime) {
  const Instant origin{.now = Ticks(0), .wall = WallTime(-3s), .origin = WallTime(-3s)};
  EXPECT_EQ(EpochWindowEnd(ToTicks(7s).count(), origin), ToTicks(3s));
}

TEST(FixedWindow, IsFreshBeforeAnythingIsCounted) {
  DrivenKey key = FixedWindowKey("3/min");
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(key.Check(0).remaining, 3);
}

TEST(FixedWindow, DistinguishesNeverFromNotNow) {
  DrivenKey key = FixedWindowKey("3/min");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check(3).reason, Reason::kLimited);
  for (const std::int64_t cost : {std::int64_t{4}, kHuge}) {
    const Decision never = key.Check(cost);
    EXPECT_EQ(never.reason, Reason::kNeverFits);
    EXPECT_EQ(never.retry_after, kNever);
    EXPECT_EQ(never.remaining, 1);
    EXPECT_EQ(never.reset_after, 60s);
  }
}

// upstash/ratelimit took tokens for requests it rejected.
TEST(FixedWindow, LeavesTheStateAsItWasWhenItDeniesOrIsOnlyAsked) {
  DrivenKey key = FixedWindowKey("3/min");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_FALSE(key.Check(2).allowed);
  EXPECT_TRUE(key.Peek(1).allowed);
  EXPECT_TRUE(key.Check(0).allowed);
  EXPECT_EQ(key.fixed.count, 2);
  const std::int64_t end = key.fixed.end;
  key.Advance(2min);
  EXPECT_TRUE(key.Peek(3).allowed);
  EXPECT_FALSE(key.Check(4).allowed);
  EXPECT_EQ(key.fixed.end, end);
}

// A question asked by a thread whose clock was a little ahead must not open the window before it
// again to the others.
TEST(FixedWindow, HandsOutNothingToAnEarlierClockAfterALaterOneAsked) {
  DrivenKey key = FixedWindowKey("3/min");
  key.Advance(59s);
  EXPECT_EQ(TakeAll(key), 3);
  key.Advance(1s);
  EXPECT_TRUE(key.Peek().allowed);
  EXPECT_TRUE(key.Check(0).allowed);
  EXPECT_FALSE(key.Check(4).allowed);
  key.Advance(-1ns);
  EXPECT_EQ(TakeAll(key), 0);
}

TEST(FixedWindow, HandsOutNothingToAnEarlierClockAfterALaterOneWasRefunded) {
  DrivenKey key = FixedWindowKey("3/min");
  key.Advance(59s);
  EXPECT_EQ(TakeAll(key), 3);
  key.Advance(1s);
  EXPECT_TRUE(key.Check().allowed);
  key.Refund(1);
  key.Advance(-1ns);
  // Whatever is admitted now counts in the window that has begun already.
  EXPECT_EQ(TakeAll(key), 3);
  key.Advance(1s);
  EXPECT_EQ(TakeAll(key), 0);
}

TEST(FixedWindow, GoesOnWithAStoredWindowThatIsLaterThanTheClock) {
  DrivenKey key = FixedWindowKey("3/min");
  key.Advance(60s);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(-1s);
  EXPECT_EQ(key.Check(2).retry_after, 61s);
  const Decision last = key.Check();
  EXPECT_EQ(last.remaining, 0);
  EXPECT_EQ(last.reset_after, 61s);
  key.Advance(61s);
  EXPECT_EQ(TakeAll(key), 3);
}

TEST(FixedWindow, TakesOverTheCountOfAWindowMoreThanOnePeriodLater) {
  DrivenKey key = FixedWindowKey("3/min");
  key.Advance(2min);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(-90s);
  EXPECT_EQ(key.Peek().remaining, 1);
  EXPECT_EQ(key.Peek().reset_after, 30s);
  key.Advance(30s);
  EXPECT_EQ(TakeAll(key), 3);
}

TEST(FixedWindow, ShutsNobodyOutForLongerThanAWindowWhenTheClockStepsBack) {
  DrivenKey key = FixedWindowKey("3/min");
  key.Advance(24h * 300);
  EXPECT_EQ(TakeAll(key), 3);
  key.Advance(-24h * 300);
  // Denied all the time, and yet let in again once the window is over.
  for (int second = 0; second < 60; ++second) {
    EXPECT_FALSE(key.Check().allowed);
    key.Advance(1s);
  }
  EXPECT_TRUE(key.Check().allowed);
}

TEST(FixedWindow, NeverGoesPastFreshWhenItIsRefunded) {
  DrivenKey key = FixedWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  EXPECT_EQ(key.Refund(1).remaining, 7);
  EXPECT_EQ(key.Refund(kHuge).remaining, 10);
  EXPECT_EQ(key.Peek().reset_after, 0s);
}

TEST(FixedWindow, IgnoresARefundOfAWindowThatIsOver) {
  DrivenKey key = FixedWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(60s);
  EXPECT_TRUE(key.Check(5).allowed);
  EXPECT_EQ(key.Cancel(receipt).remaining, 5);
  key.Advance(60s);
  EXPECT_EQ(key.Refund(7).remaining, 10);
}

TEST(FixedWindow, ChargesWhatAReservationTurnedOutToCost) {
  DrivenKey key = FixedWindowKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  EXPECT_EQ(receipt.charged, 4);
  DrivenKey same = key;
  EXPECT_EQ(same.Settle(receipt, 4).remaining, 6);
  DrivenKey less = key;
  EXPECT_EQ(less.Settle(receipt, 1).remaining, 9);
  DrivenKey nothing = key;
  EXPECT_EQ(nothing.Cancel(receipt).remaining, 10);
  DrivenKey unbooked = key;
  EXPECT_EQ(unbooked.Unbook(receipt).remaining, 10);
  DrivenKey more = key;
  EXPECT_EQ(more.Settle(receipt, kHuge).remaining, 0);
  EXPECT_EQ(more.fixed.count, 20);
}

TEST(FixedWindow, OverdraftAllowsAsLongAsAnythingIsLeftAndChargesUpToTwiceTheLimit) {
  DrivenKey key = OverdrawnFixedWindowKey("10/min");
  EXPECT_TRUE(key.Check(9).allowed);
  EXPECT_TRUE(key.Check(6).allowed);
  EXPECT_EQ(key.receipt().charged, 6);
  EXPECT_EQ(key.Check().reason, Reason::kLimited);
  key.Advance(60s);
  EXPECT_TRUE(key.Check(kHuge).allowed);
  EXPECT_EQ(key.receipt().charged, 20);
}

TEST(FixedWindow, PenaltyIsChargedWhetherItFitsOrNot) {
  DrivenKey key = FixedWindowKey("10/min");
  EXPECT_EQ(key.Penalize(3).remaining, 7);
  EXPECT_EQ(key.Penalize(kHuge).remaining, 0);
  EXPECT_EQ(key.fixed.count, 20);
  EXPECT_EQ(key.Check().retry_after, 60s);
}

TEST(FixedWindow, IsFreshAfterAResetByWhateverClock) {
  DrivenKey key = FixedWindowKey("10/min");
  key.Advance(60s);
  EXPECT_EQ(key.Penalize(kHuge).remaining, 0);
  key.Advance(-1s);
  EXPECT_EQ(key.Reset().remaining, 10);
  EXPECT_EQ(key.Check(10).reset_after, 1s);
}

TEST(FixedWindow, KnowsWhenItsKeyCanBeForgotten) {
  DrivenKey key = FixedWindowKey("10/min");
  key.Advance(15s);
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_EQ(key.fixed.fresh_at, key.instant().now + ToTicks(45s));
}

TEST(FixedWindow, KeepsItsCountInProportionRoundedUpUnderANewLimit) {
  DrivenKey key = FixedWindowKey("100/min");
  EXPECT_TRUE(key.Check(51).allowed);
  key.ChangeTo(FixedWindowKey("10/min").limit());
  EXPECT_EQ(key.Peek().remaining, 4);
  key.ChangeTo(FixedWindowKey("1/min").limit());
  EXPECT_EQ(key.Peek().remaining, 0);
  EXPECT_EQ(key.Peek().reset_after, 60s);
}

TEST(FixedWindow, OfTheCalendarEndsAtLocalMidnight) {
  // 23:00 UTC is midnight in Berlin in winter.
  DrivenKey key = OfCalendar(3, CalendarPeriod::kDay, "Europe/Berlin", On(2025, 1, 10) + 22h);
  EXPECT_EQ(TakeAll(key), 3);
  EXPECT_EQ(key.Check().retry_after, 1h);
  // An hour, and the longest day.
  EXPECT_EQ(key.fixed.fresh_at, key.instant().now + ToTicks(1h + 27h));
  key.Advance(1h);
  EXPECT_EQ(TakeAll(key), 3);
  EXPECT_EQ(key.Check().retry_after, 24h);
}

TEST(FixedWindow, OfTheCalendarFollowsTheWallClockWhenItIsSet) {
  DrivenKey key = OfCalendar(3, CalendarPeriod::kDay, "UTC", On(2025, 1, 10) + 22h);
  EXPECT_EQ(TakeAll(key), 3);
  key.SetWall(On(2025, 1, 11));
  EXPECT_EQ(TakeAll(key), 3);
}

TEST(FixedWindow, OfTheCalendarIsKeptLongerByADenialOnceTheWallClockWasSetBack) {
  DrivenKey key = OfCalendar(3, CalendarPeriod::kDay, "UTC", On(2025, 1, 10) + 23h + 50min);
  EXPECT_EQ(TakeAll(key), 3);
  const Ticks fresh_at = key.fixed.fresh_at;
  key.SetWall(On(2025, 1, 10) + 5h);
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_EQ(key.fixed.fresh_at, fresh_at + ToTicks(18h + 50min));
  EXPECT_EQ(key.fixed.count, 3);
  // Set forward it may well be set back again.
  key.SetWall(On(2025, 1, 10) + 23h);
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_EQ(key.fixed.fresh_at, fresh_at + ToTicks(18h + 50min));
}

// A month may be shorter than the next: that alone is no clock damage, or a thread whose clock is
// still in February would throw away what others have used of March.
TEST(FixedWindow, OfTheCalendarGoesOnWithTheNextMonthWhenTheClockIsStillInAShortOne) {
  DrivenKey key = OfCalendar(3, CalendarPeriod::kMonth, "UTC", On(2025, 3, 1));
  EXPECT_EQ(TakeAll(key), 3);
  key.Advance(-1ns);
  EXPECT_EQ(key.Check().retry_after, 24h * 31 + 1ns);
  key.Advance(1ns);
  EXPECT_EQ(TakeAll(key), 0);
}

TEST(FixedWindow, OfTheCalendarTakesOverTheCountOfAWindowMoreThanOnePeriodLater) {
  DrivenKey key = OfCalendar(3, CalendarPeriod::kMonth, "UTC", On(2025, 4, 1));
  EXPECT_TRUE(key.Check(2).allowed);
  key.SetWall(On(2025, 2, 28));
  EXPECT_EQ(key.Peek().remaining, 1);
  EXPECT_EQ(key.Peek().reset_after, 24h);
}

TEST(FixedWindow, OfTheCalendarCountsTimesBefore1970AsItsFirstWindow) {
  for (const WallTime start : {WallTime::min(), On(1900, 6, 1) + 5h, On(1969, 12, 31) + 23h}) {
    DrivenKey key = OfCalendar(3, CalendarPeriod::kDay, "UTC", start);
    EXPECT_EQ(TakeAll(key), 3);
    EXPECT_EQ(key.Check().retry_after, 24h);
    key.SetWall(On(1970, 1, 1) + 23h);
    EXPECT_EQ(key.Check().retry_after, 1h);
    key.SetWall(On(1970, 1, 2));
    EXPECT_EQ(TakeAll(key), 3);
  }
}

TEST(FixedWindow, OfTheCalendarCountsTimesAfter2200AsItsLastWindow) {
  DrivenKey early = OfCalendar(3, CalendarPeriod::kYear, "UTC", On(2199, 12, 31) + 23h);
  EXPECT_EQ(TakeAll(early), 3);
  EXPECT_EQ(early.Check().retry_after, 1h);
  early.Advance(1h);
  EXPECT_EQ(TakeAll(early), 3);
  for (const WallTime wall : {On(2200, 12, 31), On(2201, 1, 1), On(2201, 7, 1), WallTime::max()}) {
    early.SetWall(wall);
    EXPECT_EQ(TakeAll(early), 0);
    // WallTime ends in 2262; a key may begin there just as well.
    for (const WallTime start : {On(2201, 1, 1), On(2261, 1, 1), WallTime::max()}) {
      DrivenKey key = OfCalendar(3, CalendarPeriod::kDay, "Europe/Berlin", start);
      EXPECT_EQ(TakeAll(key), 3);
      EXPECT_GT(key.Check().retry_after, 0s);
      EXPECT_LE(key.Check().retry_after, 24h);
      key.SetWall(wall);
      if (wall > On(2200, 12, 31)) {
        EXPECT_EQ(TakeAll(key), 0);
      }
    }
  }
}

TEST(FixedWindow, AddsUpWhatWasCountedInTwoPlaces) {
  DrivenKey one = FixedWindowKey("10/min");
  EXPECT_TRUE(one.Check(4).allowed);
  DrivenKey other = FixedWindowKey("10/min");
  EXPECT_TRUE(other.Check(3).allowed);
  const auto merge = [&] {
    return MergeFixedWindows(one.limit(), one.fixed, other.fixed, one.instant());
  };
  EXPECT_EQ(merge().count, 7);
  EXPECT_EQ(merge().end, one.fixed.end);
  EXPECT_EQ(merge().fresh_at, one.fixed.fresh_at);
  // Another's clock was ahead: the later window goes on, with the count of both.
  other.Advance(1min);
  EXPECT_TRUE(other.Check(5).allowed);
  EXPECT_EQ(merge().count, 9);
  EXPECT_EQ(merge().end, other.fixed.end);
  EXPECT_EQ(merge().fresh_at, other.fixed.fresh_at);
  one.Advance(1min);
  EXPECT_EQ(merge().count, 5);  // The first is over.
  one.Penalize(kHuge);
  EXPECT_EQ(merge().count, 20);
}

// A store gives no place to a key that is left fresh, so the step must not tell the two apart.
TEST(FixedWindow, BeginsNoWindowWithNothing) {
  DrivenKey key = FixedWindowKey("3/min");
  EXPECT_EQ(key.Refund(2).remaining, 3);
  EXPECT_EQ(key.Settle({.charged = 2, .at = key.instant().now}, 1).remaining, 3);
  EXPECT_EQ(key.Penalize(0).remaining, 3);
  EXPECT_EQ(key.fixed.end, 0);
  EXPECT_EQ(TakeAll(key), 3);
  const auto used_up = key.fixed.end;
  // A clock that is ahead gives nothing to those who are behind.
  key.Advance(3min);
  EXPECT_EQ(key.Refund(2).remaining, 3);
  EXPECT_EQ(key.fixed.end, used_up);
  key.Advance(-3min);
  EXPECT_EQ(TakeAll(key), 0);
  EXPECT_EQ(key.Refund(3).remaining, 3);
  EXPECT_EQ(TakeAll(key), 3);
}

}  // namespace
}  // namespace weir
