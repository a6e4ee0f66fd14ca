#include <weir/limit.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/clock.h>

#include "base/ticks.h"

namespace weir {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

LimitSpec Spec(Algorithm algorithm, std::int64_t count, Duration period) {
  return {.algorithm = algorithm, .count = count, .period = period};
}

LimitSpec Bucket(std::int64_t count, Duration period, std::int64_t burst = 0) {
  LimitSpec spec = Spec(Algorithm::kTokenBucket, count, period);
  spec.burst = burst;
  return spec;
}

LimitSpec Strict(std::int64_t count, Duration period, int sub_windows) {
  LimitSpec spec = Spec(Algorithm::kSlidingWindow, count, period);
  spec.strict = true;
  spec.sub_windows = sub_windows;
  return spec;
}

LimitSpec OfCalendar(CalendarPeriod period, const std::string& zone = "UTC") {
  LimitSpec spec = Spec(Algorithm::kFixedWindow, 100, Duration(0));
  spec.align = Align::kCalendar;
  spec.calendar = period;
  spec.zone = zone;
  return spec;
}

LimitSpec Concurrent(std::int64_t count, Duration lease) {
  LimitSpec spec = Spec(Algorithm::kConcurrency, count, Duration(0));
  spec.lease = lease;
  return spec;
}

LimitSpec With(LimitSpec spec, const std::function<void(LimitSpec&)>& change) {
  change(spec);
  return spec;
}

Limit Make(const LimitSpec& spec) {
  Result<Limit> limit = Limit::Make(spec);
  EXPECT_TRUE(limit.has_value()) << limit.error().message;
  return *limit;
}

std::string ProblemOf(const LimitSpec& spec) {
  const Result<Limit> limit = Limit::Make(spec);
  if (limit.has_value()) return "none";
  EXPECT_EQ(limit.error().code, ErrorCode::kInvalidArgument);
  return limit.error().message;
}

std::int64_t TicksOf(Duration duration) { return ToTicks(duration).count(); }

TEST(Limit, OfABucketHasAnIntervalAndATolerance) {
  const Limit limit = Make(Bucket(10, seconds(1), 50));
  EXPECT_EQ(limit.kind(), LimitKind::kCounted);
  EXPECT_EQ(limit.algorithm(), Algorithm::kTokenBucket);
  EXPECT_EQ(limit.emission_interval(), TicksOf(milliseconds(100)));
  EXPECT_EQ(limit.burst_tolerance(), TicksOf(seconds(5)));
  EXPECT_EQ(limit.capacity(), 50);
  EXPECT_EQ(limit.max_wait(), TicksOf(seconds(60)));
  EXPECT_EQ(limit.time_to_fresh(), seconds(2 * 5 + 60));
  EXPECT_EQ(limit.calendar(), nullptr);
}

TEST(Limit, HasABurstOfTheCountUnlessToldOtherwise) {
  EXPECT_EQ(Make(Bucket(10, seconds(1))).capacity(), 10);
  EXPECT_EQ(Make(Spec(Algorithm::kLeakyBucket, 10, seconds(1))).capacity(), 10);
}

TEST(Limit, RoundsTheIntervalUpSoThatTheRateIsNeverAboveWhatWasSaid) {
  EXPECT_EQ(Make(Bucket(3, Duration(1000))).emission_interval(), 5334);  // 16000 / 3
  EXPECT_EQ(Make(Bucket(1, Duration(1000))).emission_interval(), 16000);
}

TEST(Limit, OfAWindowHasItsLength) {
  const Limit fixed = Make(Spec(Algorithm::kFixedWindow, 100, minutes(1)));
  EXPECT_EQ(fixed.window(), TicksOf(minutes(1)));
  EXPECT_EQ(fixed.capacity(), 100);
  EXPECT_EQ(fixed.time_to_fresh(), minutes(1));
  EXPECT_EQ(Make(Spec(Algorithm::kSlidingLog, 100, minutes(1))).time_to_fresh(), minutes(1));
  EXPECT_EQ(Make(Spec(Algorithm::kSlidingWindow, 100, minutes(1))).time_to_fresh(), minutes(2));
}

TEST(Limit, OfAStrictWindowHasSubWindowsRoundedUp) {
  const Limit limit = Make(Strict(100, minutes(1), 6));
  EXPECT_EQ(limit.sub_window(), TicksOf(seconds(10)));
  EXPECT_EQ(limit.time_to_fresh(), seconds(70));
  EXPECT_EQ(Make(Strict(100, milliseconds(1), 7)).sub_window(), 2'285'715);  // 16000000 / 7
}

TEST(Limit, OfTheCalendarIsFreshAfterTheLongestSuchPeriod) {
  const Limit day = Make(OfCalendar(CalendarPeriod::kDay, "Europe/Berlin"));
  EXPECT_NE(day.calendar(), nullptr);
  EXPECT_EQ(day.window(), 0);
  EXPECT_EQ(day.capacity(), 100);
  EXPECT_EQ(day.time_to_fresh(), days(1) + hours(3));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kWeek)).time_to_fresh(), days(7) + hours(3));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kMonth)).time_to_fresh(), days(31) + hours(3));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kYear)).time_to_fresh(), days(366) + hours(3));
}

TEST(Limit, SaysHowLongItsWholeCapacityTakesToComeBack) {
  EXPECT_EQ(Make(Bucket(10, seconds(1), 50)).refill_time(), seconds(5));
  EXPECT_EQ(Make(Bucket(3, Duration(1000))).refill_time(), Duration(1001));  // Rounded up.
  EXPECT_EQ(Make(Spec(Algorithm::kLeakyBucket, 10, seconds(1))).refill_time(), seconds(1));
  EXPECT_EQ(Make(Spec(Algorithm::kFixedWindow, 100, minutes(1))).refill_time(), minutes(1));
  EXPECT_EQ(Make(Spec(Algorithm::kSlidingWindow, 100, minutes(1))).refill_time(), minutes(1));
  EXPECT_EQ(Make(Strict(100, minutes(1), 6)).refill_time(), minutes(1));
  EXPECT_EQ(Make(Spec(Algorithm::kSlidingLog, 100, minutes(1))).refill_time(), minutes(1));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kDay, "Europe/Berlin")).refill_time(), days(1));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kWeek)).refill_time(), days(7));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kMonth)).refill_time(), days(31));
  EXPECT_EQ(Make(OfCalendar(CalendarPeriod::kYear)).refill_time(), days(366));
  EXPECT_EQ(Make(Concurrent(20, seconds(45))).refill_time(), Duration(0));
  EXPECT_EQ(Make({.kind = LimitKind::kUnlimited}).refill_time(), Duration(0));
}

TEST(Limit, OfConcurrencyIsFreshAfterALease) {
  const Limit limit = Make(Concurrent(20, seconds(45)));
  EXPECT_EQ(limit.capacity(), 20);
  EXPECT_EQ(limit.time_to_fresh(), seconds(45));
}

TEST(Limit, OfUnlimitedAndDenyNeedsNothingElse) {
  const Limit unlimited = Make({.kind = LimitKind::kUnlimited});
  EXPECT_EQ(unlimited.capacity(), kMaxCount);
  EXPECT_EQ(unlimited.time_to_fresh(), Duration(0));
  EXPECT_EQ(Make({.kind = LimitKind::kDeny}).capacity(), 0);
}

TEST(Limit, TakesEveryExtremeThatItAllows) {
  EXPECT_EQ(Make(Bucket(kMaxBucketRate, seconds(1))).emission_interval(), 1600);
  // Does not divide, so T is rounded up; the whole count may come at once all the same.
  EXPECT_EQ(Make(Bucket(7, kMaxPeriod)).capacity(), 7);
  const Limit widest = Make(Bucket(316'224'000'000'000, kMaxPeriod));
  EXPECT_LT(2 * widest.burst_tolerance() + widest.max_wait(), std::int64_t{1} << 61);
  EXPECT_EQ(Make(Spec(Algorithm::kFixedWindow, kMaxCount, milliseconds(1))).capacity(), kMaxCount);
  EXPECT_EQ(Make(Spec(Algorithm::kSlidingLog, kMaxLogEntries, kMaxPeriod)).capacity(),
            kMaxLogEntries);
  EXPECT_EQ(Make(Concurrent(kMaxLogEntries, kMaxPeriod)).capacity(), kMaxLogEntries);
  EXPECT_GT(Make(Strict(1, kMaxPeriod, kMaxSubWindows)).sub_window(), 0);
  EXPECT_EQ(Make(With(Bucket(1, seconds(1)), [](LimitSpec& s) { s.max_wait = Duration(0); }))
                .time_to_fresh(),
            seconds(2));
}

TEST(Limit, RefusesACountOutOfRange) {
  EXPECT_EQ(ProblemOf(Bucket(0, seconds(1))),
            "count: 0 is not allowed; write 1 to 1000000000000000, or the limit \"deny\"");
  EXPECT_EQ(ProblemOf(Bucket(-5, seconds(1))),
            "count: -5 is not allowed; write 1 to 1000000000000000");
  EXPECT_EQ(ProblemOf(Spec(Algorithm::kFixedWindow, kMaxCount + 1, hours(1))),
            "count: 1000000000000001 is not allowed; write 1 to 1000000000000000");
  EXPECT_EQ(ProblemOf(Spec(Algorithm::kSlidingLog, 65'537, hours(1))),
            "count: 65537 is not allowed; write 1 to 65536 (sliding_log)");
  EXPECT_EQ(ProblemOf(Concurrent(65'537, seconds(1))),
            "count: 65537 is not allowed; write 1 to 65536 (concurrency)");
}

TEST(Limit, RefusesAPeriodOutOfRange) {
  EXPECT_EQ(ProblemOf(Bucket(1, Duration(0))), "period: 0s is not allowed; write 1ns to 366day");
  EXPECT_EQ(ProblemOf(Bucket(1, -seconds(2))), "period: -2s is not allowed; write 1ns to 366day");
  EXPECT_EQ(ProblemOf(Bucket(1, days(367))), "period: 367day is not allowed; write 1ns to 366day");
  EXPECT_EQ(ProblemOf(Spec(Algorithm::kFixedWindow, 1, Duration(999'999))),
            "period: 999999ns is not allowed; write 1ms to 366day");
  EXPECT_EQ(ProblemOf(With(Concurrent(1, seconds(1)), [](LimitSpec& s) { s.period = hours(1); })),
            "period: 1h is not allowed; write 0, or as text \"20 concurrent\": concurrency counts "
            "how many at once");
}

TEST(Limit, RefusesARateThatABucketCannotCount) {
  EXPECT_EQ(ProblemOf(Bucket(10'000'001, seconds(1))),
            "count: 10000001 in 1s is not allowed; write at most 10000000 in 1s");
  EXPECT_EQ(ProblemOf(Spec(Algorithm::kFixedWindow, 10'000'001, seconds(1))), "none");
}

TEST(Limit, RefusesABurstOutOfRange) {
  EXPECT_EQ(ProblemOf(Bucket(1, days(1), 367)),
            "burst: 367 is not allowed; write 1 to 366, which takes at most 366day to fill");
  EXPECT_EQ(ProblemOf(Bucket(1, days(1), 366)), "none");
  EXPECT_THAT(ProblemOf(Bucket(1, days(1), -1)), HasSubstr("burst: -1 is not allowed"));
  EXPECT_THAT(ProblemOf(Bucket(kMaxBucketRate, seconds(1), kMaxCount)),
              HasSubstr("write 1 to 316224000000000,"));
  EXPECT_EQ(ProblemOf(With(Spec(Algorithm::kFixedWindow, 10, hours(1)),
                           [](LimitSpec& s) { s.burst = 10; })),
            "burst: fixed_window takes none; token_bucket and leaky_bucket do");
}

TEST(Limit, RefusesOptionsOfOtherAlgorithms) {
  const LimitSpec bucket = Bucket(10, seconds(1));
  EXPECT_EQ(ProblemOf(With(bucket, [](LimitSpec& s) { s.queue = true; })),
            "queue: token_bucket has none; leaky_bucket does");
  EXPECT_EQ(ProblemOf(With(bucket, [](LimitSpec& s) { s.strict = true; })),
            "strict: token_bucket does not take it; sliding_window does");
  EXPECT_EQ(ProblemOf(With(bucket, [](LimitSpec& s) { s.sub_windows = 5; })),
            "sub_windows: only a sliding_window with strict: true has them");
  EXPECT_EQ(ProblemOf(With(bucket,
                           [](LimitSpec& s) {
                             s.algorithm = Algorithm::kLeakyBucket;
                             s.queue = true;
                             s.overdraft = true;
                           })),
            "overdraft: not with queue: true");
  EXPECT_EQ(ProblemOf(With(Concurrent(1, seconds(1)), [](LimitSpec& s) { s.overdraft = true; })),
            "overdraft: not with concurrency");
}

TEST(Limit, RefusesOptionsOutOfRange) {
  EXPECT_EQ(ProblemOf(Strict(10, seconds(1), 1)), "sub_windows: 1 is not allowed; write 2 to 60");
  EXPECT_EQ(ProblemOf(Strict(10, seconds(1), 61)), "sub_windows: 61 is not allowed; write 2 to 60");
  EXPECT_EQ(ProblemOf(Concurrent(1, Duration(0))), "lease: 0s is not allowed; write 1ns to 366day");
  EXPECT_EQ(ProblemOf(With(Bucket(1, seconds(1)), [](LimitSpec& s) { s.max_wait = hours(2); })),
            "max_wait: 2h is not allowed; write 0s to 1h");
  EXPECT_EQ(ProblemOf(With(Bucket(1, seconds(1)), [](LimitSpec& s) { s.max_wait = Duration(-1); })),
            "max_wait: -1ns is not allowed; write 0s to 1h");
  for (const LimitKind kind : {LimitKind::kUnlimited, LimitKind::kDeny}) {
    EXPECT_EQ(ProblemOf({.kind = kind, .max_wait = seconds(-1)}),
              "max_wait: -1s is not allowed; write 0s to 1h");
  }
}

TEST(Limit, RefusesCalendarWindowsThatMakeNoSense) {
  EXPECT_EQ(ProblemOf(With(OfCalendar(CalendarPeriod::kDay),
                           [](LimitSpec& s) { s.algorithm = Algorithm::kSlidingLog; })),
            "align: calendar windows are counted by fixed_window, not by sliding_log");
  EXPECT_EQ(ProblemOf(OfCalendar(CalendarPeriod::kNone)),
            "calendar: none is not allowed with align: calendar; write day, week, month or year");
  EXPECT_EQ(
      ProblemOf(With(OfCalendar(CalendarPeriod::kDay), [](LimitSpec& s) { s.period = days(1); })),
      "period: 1day is not allowed; write 0, because align: calendar sets it");
  EXPECT_EQ(ProblemOf(With(Spec(Algorithm::kFixedWindow, 1, days(1)),
                           [](LimitSpec& s) { s.calendar = CalendarPeriod::kMonth; })),
            "calendar: month is not allowed; write none, or align: calendar");
  EXPECT_THAT(ProblemOf(OfCalendar(CalendarPeriod::kDay, "Mars/Phobos")),
              HasSubstr("zone: \"Mars/Phobos\""));
}

TEST(StateSalt, IsTheSameForLimitsThatCanGoOnWithEachOthersState) {
  const auto salt = [](const LimitSpec& spec) { return Make(spec).state_salt(); };
  EXPECT_EQ(salt(Bucket(10, seconds(1))), salt(Bucket(99, hours(1), 7)));
  EXPECT_EQ(salt(Spec(Algorithm::kFixedWindow, 10, seconds(1))),
            salt(Spec(Algorithm::kFixedWindow, 20, seconds(1))));
  EXPECT_EQ(salt(OfCalendar(CalendarPeriod::kDay)),
            salt(With(OfCalendar(CalendarPeriod::kDay),
                      [](LimitSpec& s) { s.week_start = std::chrono::Sunday; })));
}

TEST(StateSalt, SetsStatesApartThatMeanDifferentThings) {
  const std::vector<LimitSpec> specs = {
      Bucket(10, seconds(1)),
      Spec(Algorithm::kLeakyBucket, 10, seconds(1)),
      With(Spec(Algorithm::kLeakyBucket, 10, seconds(1)), [](LimitSpec& s) { s.queue = true; }),
      Spec(Algorithm::kFixedWindow, 10, seconds(1)),
      Spec(Algorithm::kFixedWindow, 10, seconds(2)),
      Spec(Algorithm::kSlidingWindow, 10, seconds(1)),
      Spec(Algorithm::kSlidingLog, 10, seconds(1)),
      Strict(10, seconds(1), 10),
      Strict(10, seconds(1), 11),
      Concurrent(10, seconds(1)),
      Concurrent(10, seconds(2)),
      OfCalendar(CalendarPeriod::kDay),
      OfCalendar(CalendarPeriod::kDay, "Europe/Berlin"),
      OfCalendar(CalendarPeriod::kWeek),
      With(OfCalendar(CalendarPeriod::kWeek),
           [](LimitSpec& s) { s.week_start = std::chrono::Sunday; }),
  };
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_NE(Make(specs[i]).state_salt(), Make(specs[j]).state_salt()) << i << " and " << j;
    }
  }
}

TEST(SharedStore, CountsBucketsInWholeNanosecondsRoundedUp) {
  const Limit limit = *Make(Bucket(3, Duration(10'000), 5)).ForSharedStore();  // 3333.3 ns
  EXPECT_EQ(limit.emission_interval(), TicksOf(Duration(3'334)));
  EXPECT_EQ(limit.burst_tolerance(), TicksOf(Duration(5 * 3'334)));
  EXPECT_EQ(limit.capacity(), 5);
  EXPECT_EQ(limit.refill_time(), Duration(5 * 3'334));
  EXPECT_EQ(limit.emission_reciprocal(),
            ~std::uint64_t{0} / static_cast<std::uint64_t>(limit.emission_interval()));
  EXPECT_EQ(limit.spec(), Make(Bucket(3, Duration(10'000), 5)).spec());
}

TEST(SharedStore, LeavesWhatIsWholeAlready) {
  for (const LimitSpec& spec :
       {Bucket(10, seconds(1)), Spec(Algorithm::kFixedWindow, 100, minutes(1)),
        Strict(100, minutes(1), 6), Spec(Algorithm::kSlidingLog, 10'000, minutes(1)),
        OfCalendar(CalendarPeriod::kDay), Concurrent(20, seconds(45))}) {
    const Limit before = Make(spec);
    const Limit after = *before.ForSharedStore();
    EXPECT_EQ(after.emission_interval(), before.emission_interval());
    EXPECT_EQ(after.capacity(), before.capacity());
    EXPECT_EQ(after.state_salt(), before.state_salt());
    EXPECT_EQ(after.family(), before.family());
    EXPECT_EQ(after.time_to_fresh(), before.time_to_fresh());
  }
}

TEST(SharedStore, TakesUpToAMillionASecond) {
  EXPECT_TRUE(Make(Bucket(1'000'000, seconds(1))).ForSharedStore().has_value());
  const Result<Limit> above = Make(Bucket(1'000'001, seconds(1))).ForSharedStore();
  ASSERT_FALSE(above.has_value());
  EXPECT_EQ(above.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(above.error().message, HasSubstr("1000000 a second"));
  // Windows count exactly, however many.
  EXPECT_TRUE(Make(Spec(Algorithm::kFixedWindow, 100'000'000, seconds(1))).ForSharedStore());
}

TEST(SharedStore, KeepsAtMostTenThousandEntries) {
  EXPECT_TRUE(Make(Spec(Algorithm::kSlidingLog, 10'000, seconds(1))).ForSharedStore());
  EXPECT_TRUE(Make(Concurrent(10'000, seconds(1))).ForSharedStore());
  for (const LimitSpec& spec :
       {Spec(Algorithm::kSlidingLog, 10'001, seconds(1)), Concurrent(10'001, seconds(1))}) {
    const Result<Limit> above = Make(spec).ForSharedStore();
    ASSERT_FALSE(above.has_value());
    EXPECT_THAT(above.error().message, HasSubstr("10000"));
  }
}

TEST(SharedStore, TakesWhatCountsNothing) {
  EXPECT_TRUE(Make({.kind = LimitKind::kDeny}).ForSharedStore());
  EXPECT_TRUE(Make({.kind = LimitKind::kUnlimited}).ForSharedStore());
}

TEST(SharedStore, KeepsWhatOthersLeaveOnSharedKeys) {
  Limit limits[] = {Make(Bucket(10, seconds(1))), Make(Bucket(1, hours(1)))};
  Limit::ShareKeys(limits);
  ASSERT_EQ(limits[0].furthest(), limits[1].furthest());
  EXPECT_GE(limits[0].ForSharedStore()->furthest(), limits[1].ForSharedStore()->furthest());
}

TEST(Family, IsTheSameForEqualLimitsInEveryProcess) {
  EXPECT_EQ(Make(Bucket(10, seconds(1))).family(), Make(Bucket(10, seconds(1))).family());
  EXPECT_EQ(Make(Bucket(10, seconds(1))).family(), Make(Bucket(10, seconds(1), 10)).family());
}

TEST(Family, DiffersWithWhatCountsAreScaledBy) {
  std::set<std::uint32_t> families;
  const std::vector<LimitSpec> specs{
      Bucket(10, seconds(1)),
      Bucket(11, seconds(1)),
      Bucket(10, seconds(2)),
      Bucket(10, seconds(1), 20),
      Spec(Algorithm::kFixedWindow, 10, seconds(1)),
      Spec(Algorithm::kFixedWindow, 20, seconds(1)),
      Spec(Algorithm::kSlidingWindow, 10, seconds(1)),
      Strict(10, seconds(1), 10),
      Concurrent(10, seconds(1)),
  };
  for (const LimitSpec& spec : specs) families.insert(Make(spec).family());
  EXPECT_EQ(families.size(), specs.size());
}

TEST(Family, DoesNotDependOnWhatWasBefore) {
  const ManualClock clock;
  const Limit before = Make(Spec(Algorithm::kFixedWindow, 10, seconds(1)));
  const Limit after = Make(Spec(Algorithm::kFixedWindow, 20, seconds(1)));
  EXPECT_EQ(after.Replacing(before, clock.Read()).family(), after.family());
}

TEST(Family, IsOneForLimitsThatShareTheirKeys) {
  Limit limits[] = {Make(Spec(Algorithm::kFixedWindow, 10, seconds(1))),
                    Make(Spec(Algorithm::kFixedWindow, 20, seconds(1)))};
  const std::uint32_t alone = limits[0].family();
  Limit::ShareKeys(limits);
  EXPECT_EQ(limits[0].family(), limits[1].family());
  EXPECT_NE(limits[0].family(), alone);
  EXPECT_EQ(limits[0].ForSharedStore()->family(), limits[0].family());
}

class LiveChange : public testing::Test {
 protected:
  Limit Replace(const Limit& before, const LimitSpec& after) {
    return Make(after).Replacing(before, clock_.Read());
  }
  ManualClock clock_;
};

TEST_F(LiveChange, ToAnEqualLimitIsNone) {
  const Limit first = Make(Bucket(10, seconds(1)));
  const Limit second = Replace(first, Bucket(20, seconds(1)));
  const Limit same = Replace(second, Bucket(20, seconds(1)));
  EXPECT_EQ(same.state_salt(), second.state_salt());
  EXPECT_EQ(same.predecessor(), second.predecessor());
}

TEST_F(LiveChange, OfTheRateRemembersTheLimitBeforeUntilNothingOfItIsLeft) {
  const Limit before = Make(Bucket(10, seconds(1)));
  const Limit after = Replace(before, Bucket(20, minutes(1), 5));
  ASSERT_NE(after.predecessor(), nullptr);
  EXPECT_EQ(after.predecessor()->spec(), before.spec());
  EXPECT_EQ(after.predecessor()->state_salt(), before.state_salt());
  EXPECT_EQ(after.predecessor_until(), clock_.Read().steady + before.time_to_fresh());
  EXPECT_NE(after.state_salt(), before.state_salt());
  EXPECT_EQ(after.capacity(), 5);
}

TEST_F(LiveChange, OfTheNumberOfPlacesGoesOnWithTheSameState) {
  const Limit first = *Limit::Parse("5 concurrent lease 10s");
  const Limit more = Replace(first, Limit::Parse("9 concurrent lease 10s")->spec());
  EXPECT_EQ(more.state_salt(), first.state_salt());
  EXPECT_EQ(more.predecessor(), nullptr);
  EXPECT_EQ(more.capacity(), 9);
  const Limit longer = Replace(more, Limit::Parse("9 concurrent lease 20s")->spec());
  EXPECT_NE(longer.state_salt(), first.state_salt());
  const Limit back = Replace(longer, first.spec());
  EXPECT_NE(back.state_salt(), first.state_salt());
  EXPECT_NE(back.state_salt(), longer.state_salt());
}

TEST_F(LiveChange, OfAlgorithmOrWindowStartsAnew) {
  const Limit before = Make(Spec(Algorithm::kFixedWindow, 10, seconds(1)));
  for (const LimitSpec& spec :
       {Bucket(10, seconds(1)), Spec(Algorithm::kFixedWindow, 10, seconds(2)),
        OfCalendar(CalendarPeriod::kDay)}) {
    const Limit after = Replace(before, spec);
    EXPECT_EQ(after.predecessor(), nullptr);
    // And does not meet what was left behind when the same change was made earlier.
    EXPECT_NE(after.state_salt(), Make(spec).state_salt());
    EXPECT_NE(Replace(after, before.spec()).state_salt(), before.state_salt());
  }
}

TEST_F(LiveChange, FromOrToALimitThatDoesNotCountStartsAnew) {
  const Limit counted = Make(Bucket(10, seconds(1)));
  const Limit deny = Replace(counted, {.kind = LimitKind::kDeny});
  EXPECT_EQ(deny.predecessor(), nullptr);
  const Limit again = Replace(deny, counted.spec());
  EXPECT_EQ(again.predecessor(), nullptr);
  EXPECT_NE(again.state_salt(), counted.state_salt());
}

TEST_F(LiveChange, DropsWhatIsLongOver) {
  const Limit first = Make(Bucket(10, seconds(1)));
  const Limit second = Replace(first, Bucket(20, seconds(1)));
  clock_.Advance(first.time_to_fresh());
  const Limit third = Replace(second, Bucket(30, seconds(1)));
  ASSERT_NE(third.predecessor(), nullptr);
  EXPECT_EQ(third.predecessor()->predecessor(), nullptr);
}

TEST_F(LiveChange, KeepsALongLivedLimitBehindAShortLivedOne) {
  const Limit slow = Make(Bucket(10, days(1)));
  const Limit quick = Replace(slow, Bucket(10, seconds(1)));
  const SteadyTime slow_until = quick.predecessor_until();
  clock_.Advance(hours(1));
  const Limit third = Replace(quick, Bucket(30, seconds(1)));
  ASSERT_NE(third.predecessor(), nullptr);
  ASSERT_NE(third.predecessor()->predecessor(), nullptr);
  EXPECT_EQ(third.predecessor()->predecessor()->spec(), slow.spec());
  EXPECT_EQ(third.predecessor_until(), slow_until);
}

TEST_F(LiveChange, RemembersNoMoreThanEightLimits) {
  Limit limit = Make(Bucket(1, days(1)));
  for (int count = 2; count <= 50; ++count) limit = Replace(limit, Bucket(count, days(1)));
  int remembered = 0;
  for (const Limit* at = limit.predecessor(); at != nullptr; at = at->predecessor()) ++remembered;
  EXPECT_EQ(remembered, 8);
  EXPECT_EQ(limit.predecessor()->spec().count, 49);
}

}  // namespace
}  // namespace weir
