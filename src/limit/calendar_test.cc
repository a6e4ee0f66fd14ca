#include "limit/calendar.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::Monday;
using std::chrono::seconds;
using std::chrono::Sunday;
using std::chrono::sys_days;
using std::chrono::year;
using testing::HasSubstr;

std::shared_ptr<const Calendar> Make(CalendarPeriod period, const std::string& zone,
                                     std::chrono::weekday week_start = Monday) {
  auto calendar = Calendar::Make(period, zone, week_start);
  EXPECT_TRUE(calendar.has_value()) << calendar.error().message;
  return *calendar;
}

WallTime Utc(int y, unsigned m, unsigned d, Duration time = Duration(0)) {
  return WallTime(sys_days(year(y) / static_cast<int>(m) / static_cast<int>(d))) + time;
}

Duration LengthOf(const Calendar::Window& window) { return window.end - window.start; }

// What every window must be: around the instant, and touching its neighbours.
void ExpectSound(const Calendar& calendar, WallTime at) {
  const Calendar::Window window = calendar.WindowAt(at);
  EXPECT_LE(window.start, at);
  EXPECT_GT(window.end, at);
  EXPECT_EQ(calendar.WindowAt(window.end).start, window.end);
  EXPECT_EQ(calendar.WindowAt(window.start - Duration(1)).end, window.start);
  EXPECT_EQ(calendar.WindowAt(window.start).end, window.end);
  EXPECT_EQ(calendar.WindowAt(window.end - Duration(1)).start, window.start);
}

TEST(Calendar, HasDaysThatBeginAtMidnight) {
  const auto calendar = Make(CalendarPeriod::kDay, "UTC");
  const Calendar::Window window = calendar->WindowAt(Utc(2025, 3, 14, hours(15)));
  EXPECT_EQ(window.start, Utc(2025, 3, 14));
  EXPECT_EQ(window.end, Utc(2025, 3, 15));
}

TEST(Calendar, GivesTheSameWindowFromItsFirstInstantToItsLast) {
  const auto calendar = Make(CalendarPeriod::kDay, "UTC");
  EXPECT_EQ(calendar->WindowAt(Utc(2025, 3, 14)).start, Utc(2025, 3, 14));
  EXPECT_EQ(calendar->WindowAt(Utc(2025, 3, 15) - Duration(1)).start, Utc(2025, 3, 14));
  EXPECT_EQ(calendar->WindowAt(Utc(2025, 3, 15)).start, Utc(2025, 3, 15));
}

TEST(Calendar, FollowsTheLocalClock) {
  const auto berlin = Make(CalendarPeriod::kDay, "Europe/Berlin");
  EXPECT_EQ(berlin->WindowAt(Utc(2025, 1, 10, hours(23))).start, Utc(2025, 1, 10, hours(23)));
  const auto kathmandu = Make(CalendarPeriod::kDay, "Asia/Kathmandu");
  EXPECT_EQ(kathmandu->WindowAt(Utc(2025, 1, 10, hours(12))).start,
            Utc(2025, 1, 9, hours(18) + minutes(15)));
}

TEST(Calendar, HasAShortDayWhenClocksAreSetForward) {
  const auto calendar = Make(CalendarPeriod::kDay, "Europe/Berlin");
  const Calendar::Window window = calendar->WindowAt(Utc(2025, 3, 30, hours(12)));
  EXPECT_EQ(window.start, Utc(2025, 3, 29, hours(23)));
  EXPECT_EQ(LengthOf(window), hours(23));
}

TEST(Calendar, HasALongDayWhenClocksAreSetBack) {
  const auto calendar = Make(CalendarPeriod::kDay, "Europe/Berlin");
  const Calendar::Window window = calendar->WindowAt(Utc(2025, 10, 26, hours(12)));
  EXPECT_EQ(window.start, Utc(2025, 10, 25, hours(22)));
  EXPECT_EQ(LengthOf(window), hours(25));
}

TEST(Calendar, BeginsADayWithoutMidnightAtItsFirstInstant) {
  // On 2018-11-04 the clocks of Sao Paulo went from 23:59:59 to 01:00:00, which is 03:00 UTC.
  const auto calendar = Make(CalendarPeriod::kDay, "America/Sao_Paulo");
  const Calendar::Window window = calendar->WindowAt(Utc(2018, 11, 4, hours(12)));
  EXPECT_EQ(window.start, Utc(2018, 11, 4, hours(3)));
  EXPECT_EQ(LengthOf(window), hours(23));
}

TEST(Calendar, BeginsADayWithTwoMidnightsAtTheEarlier) {
  // On 2018-11-04 the clocks of Havana went from 01:00 back to 00:00, which is 05:00 UTC.
  const auto havana = Make(CalendarPeriod::kDay, "America/Havana");
  const Calendar::Window window = havana->WindowAt(Utc(2018, 11, 4, hours(12)));
  EXPECT_EQ(window.start, Utc(2018, 11, 4, hours(4)));
  EXPECT_EQ(LengthOf(window), hours(25));
  const auto azores = Make(CalendarPeriod::kDay, "Atlantic/Azores");
  EXPECT_EQ(azores->WindowAt(Utc(2018, 10, 28, hours(12))).start, Utc(2018, 10, 28));
}

TEST(Calendar, CountsAnEveningThatIsRepeatedAfterMidnightToTheNewDay) {
  // On 1987-10-25 the clocks of St. John's went from 00:01 back to 23:01, which is 02:31 UTC.
  const auto calendar = Make(CalendarPeriod::kDay, "America/St_Johns");
  const WallTime midnight = Utc(1987, 10, 25, hours(2) + minutes(30));
  const Calendar::Window window = calendar->WindowAt(midnight + minutes(20));
  EXPECT_EQ(window.start, midnight);
  EXPECT_EQ(LengthOf(window), hours(25));
  ExpectSound(*calendar, midnight + minutes(20));
}

TEST(Calendar, LeavesOutADayThatALandLeftOut) {
  // Samoa crossed the date line and had no 30 December 2011.
  const auto calendar = Make(CalendarPeriod::kDay, "Pacific/Apia");
  const WallTime change = Utc(2011, 12, 30, hours(10));
  EXPECT_EQ(calendar->WindowAt(change).start, change);
  EXPECT_EQ(LengthOf(calendar->WindowAt(change)), hours(24));
  EXPECT_EQ(LengthOf(calendar->WindowAt(change - Duration(1))), hours(24));
  ExpectSound(*calendar, change);
}

TEST(Calendar, HasWeeksThatBeginOnMondayOrWhenTold) {
  const WallTime wednesday = Utc(2025, 6, 18, hours(9));
  const auto monday = Make(CalendarPeriod::kWeek, "UTC");
  EXPECT_EQ(monday->WindowAt(wednesday).start, Utc(2025, 6, 16));
  EXPECT_EQ(monday->WindowAt(wednesday).end, Utc(2025, 6, 23));
  EXPECT_EQ(monday->WindowAt(Utc(2025, 6, 22, hours(23))).start, Utc(2025, 6, 16));
  const auto sunday = Make(CalendarPeriod::kWeek, "UTC", Sunday);
  EXPECT_EQ(sunday->WindowAt(wednesday).start, Utc(2025, 6, 15));
  EXPECT_EQ(sunday->WindowAt(Utc(2025, 6, 22)).start, Utc(2025, 6, 22));
}

TEST(Calendar, HasMonthsOfTheirOwnLengths) {
  const auto calendar = Make(CalendarPeriod::kMonth, "UTC");
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2025, 1, 31))), days(31));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2025, 4, 1))), days(30));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2025, 2, 28))), days(28));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2024, 2, 29))), days(29));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2000, 2, 29))), days(29));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2100, 2, 28))), days(28));
  EXPECT_EQ(calendar->WindowAt(Utc(2025, 12, 31, hours(23))).end, Utc(2026, 1, 1));
}

TEST(Calendar, HasYearsOf365And366Days) {
  const auto calendar = Make(CalendarPeriod::kYear, "UTC");
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2024, 12, 31, hours(23)))), days(366));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2025, 1, 1))), days(365));
  const auto berlin = Make(CalendarPeriod::kYear, "Europe/Berlin");
  EXPECT_EQ(berlin->WindowAt(Utc(2025, 7, 1)).start, Utc(2024, 12, 31, hours(23)));
  EXPECT_EQ(LengthOf(berlin->WindowAt(Utc(2025, 7, 1))), days(365));
}

TEST(Calendar, KnowsOfSummerTimeBeyondTheYearsThatTimeZoneFilesList) {
  const auto calendar = Make(CalendarPeriod::kDay, "Europe/Berlin");
  EXPECT_EQ(calendar->WindowAt(Utc(2050, 7, 1, hours(12))).start, Utc(2050, 6, 30, hours(22)));
  EXPECT_EQ(LengthOf(calendar->WindowAt(Utc(2199, 3, 31, hours(12)))), hours(23));
}

TEST(Calendar, StandsStillOutsideTheYears1970To2200) {
  const auto calendar = Make(CalendarPeriod::kYear, "UTC");
  EXPECT_EQ(calendar->WindowAt(WallTime::min()).start, Utc(1970, 1, 1));
  EXPECT_EQ(calendar->WindowAt(Utc(1970, 1, 1)).start, Utc(1970, 1, 1));
  EXPECT_EQ(calendar->WindowAt(WallTime::max()).end, Utc(2201, 1, 1));
  EXPECT_EQ(calendar->WindowAt(Utc(2200, 12, 31)).end, Utc(2201, 1, 1));
  const auto honolulu = Make(CalendarPeriod::kYear, "Pacific/Honolulu");
  EXPECT_EQ(honolulu->WindowAt(WallTime::min()).start, Utc(1969, 1, 1, hours(10)));
  EXPECT_EQ(honolulu->WindowAt(WallTime::max()).end, Utc(2201, 1, 1, hours(10)));
}

TEST(Calendar, HasWindowsThatNeitherOverlapNorLeaveGaps) {
  const std::vector<std::string> zones = {
      "UTC",
      "Europe/Berlin",
      "Europe/Dublin",
      "America/New_York",
      "America/Havana",
      "America/Sao_Paulo",
      "America/Santiago",
      "America/St_Johns",
      "Asia/Kathmandu",
      "Asia/Gaza",
      "Asia/Tehran",
      "Africa/Cairo",
      "Africa/Casablanca",
      "Antarctica/Troll",
      "Australia/Lord_Howe",
      "Pacific/Apia",
      "Pacific/Chatham",
      "Pacific/Kiritimati",
      "Antarctica/Casey",
      "America/Nuuk",
  };
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int64_t> second(
      Utc(1971, 1, 1).time_since_epoch() / seconds(1),
      Utc(2199, 1, 1).time_since_epoch() / seconds(1));
  for (const std::string& zone : zones) {
    SCOPED_TRACE(zone);
    for (const CalendarPeriod period : {CalendarPeriod::kDay, CalendarPeriod::kWeek,
                                        CalendarPeriod::kMonth, CalendarPeriod::kYear}) {
      const auto calendar = Make(period, zone);
      for (int i = 0; i < 200; ++i) ExpectSound(*calendar, WallTime(seconds(second(random))));
    }
  }
}

TEST(Calendar, NamesAZoneThatDoesNotExist) {
  const auto calendar = Calendar::Make(CalendarPeriod::kDay, "Mars/Phobos", Monday);
  ASSERT_FALSE(calendar.has_value());
  EXPECT_EQ(calendar.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(calendar.error().message, HasSubstr("zone: \"Mars/Phobos\" is not known"));
  EXPECT_FALSE(Calendar::Make(CalendarPeriod::kDay, "", Monday).has_value());
  EXPECT_FALSE(Calendar::Make(CalendarPeriod::kDay, "../../../etc/passwd", Monday).has_value());
}

TEST(Calendar, RefusesNoPeriodAndNoWeekday) {
  const auto none = Calendar::Make(CalendarPeriod::kNone, "UTC", Monday);
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(none.error().message, HasSubstr("calendar: none"));
  const auto no_day = Calendar::Make(CalendarPeriod::kWeek, "UTC", std::chrono::weekday(9));
  ASSERT_FALSE(no_day.has_value());
  EXPECT_THAT(no_day.error().message, HasSubstr("week_start"));
}

}  // namespace
}  // namespace weir
