#include "limit/zone_rule.h"

#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

sys_seconds UtcSeconds(int y, int m, int d, seconds time) {
  return sys_days(year(y) / m / d) + time;
}

TEST(ZoneRule, SwitchesOnTheLastSundayOfAMonth) {
  const auto rule = ZoneRule::Parse("CET-1CEST,M3.5.0,M10.5.0/3");
  ASSERT_TRUE(rule.has_value());
  const auto [spring, autumn] = rule->SwitchesIn(year(2040));
  EXPECT_EQ(spring.at, UtcSeconds(2040, 3, 25, hours(1)));
  EXPECT_EQ(spring.offset, hours(2));
  EXPECT_EQ(autumn.at, UtcSeconds(2040, 10, 28, hours(1)));
  EXPECT_EQ(autumn.offset, hours(1));
}

TEST(ZoneRule, SwitchesInTheOtherOrderInTheSouth) {
  const auto rule = ZoneRule::Parse("<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45");
  ASSERT_TRUE(rule.has_value());
  const auto [autumn, spring] = rule->SwitchesIn(year(2040));
  EXPECT_EQ(autumn.at, UtcSeconds(2040, 3, 31, hours(14)));
  EXPECT_EQ(autumn.offset, hours(12) + minutes(45));
  EXPECT_EQ(spring.at, UtcSeconds(2040, 9, 29, hours(14)));
  EXPECT_EQ(spring.offset, hours(13) + minutes(45));
}

TEST(ZoneRule, TakesTimesBeforeAndBeyondTheDay) {
  const auto nuuk = ZoneRule::Parse("<-02>2<-01>,M3.5.0/-1,M10.5.0/0");
  ASSERT_TRUE(nuuk.has_value());
  EXPECT_EQ(nuuk->SwitchesIn(year(2040))[0].at, UtcSeconds(2040, 3, 25, hours(1)));
  const auto gaza = ZoneRule::Parse("EET-2EEST,M3.4.4/50,M10.4.4/50");
  ASSERT_TRUE(gaza.has_value());
  EXPECT_EQ(gaza->SwitchesIn(year(2040))[0].at, UtcSeconds(2040, 3, 24, hours(0)));
}

TEST(ZoneRule, TakesAnOffsetOfDaylightSavingTimeAndSeconds) {
  // In Dublin it is winter time that is called the exception.
  const auto dublin = ZoneRule::Parse("IST-1GMT0,M10.5.0,M3.5.0/1");
  ASSERT_TRUE(dublin.has_value());
  EXPECT_EQ(dublin->SwitchesIn(year(2040))[0].offset, hours(1));
  EXPECT_EQ(dublin->SwitchesIn(year(2040))[1].offset, hours(0));
  const auto odd = ZoneRule::Parse("AAA+1:02:03BBB,M1.1.1,M12.2.6");
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->SwitchesIn(year(2040))[1].offset, -(hours(1) + minutes(2) + seconds(3)));
}

TEST(ZoneRule, IsNothingWhereThereIsNoDaylightSavingTime) {
  EXPECT_FALSE(ZoneRule::Parse("UTC0").has_value());
  EXPECT_FALSE(ZoneRule::Parse("<+0545>-5:45").has_value());
}

TEST(ZoneRule, IsNothingIfItIsNotUnderstood) {
  for (const std::string text : {"",
                                 "CET",
                                 "<CET",
                                 "CET-1CEST",
                                 "CET-x",
                                 "CET-1:xCEST",
                                 "CET-1:1:xCEST",
                                 "CET-1CEST,",
                                 "CET-1CEST,M3.5.0",
                                 "CET-1CEST,J60,J300",
                                 "CET-1CEST,59,299",
                                 "CET-1CEST,M13.5.0,M10.5.0",
                                 "CET-1CEST,M3.0.0,M10.5.0",
                                 "CET-1CEST,M3.6.0,M10.5.0",
                                 "CET-1CEST,M3.5.7,M10.5.0",
                                 "CET-1CEST,M3.5.0/,M10.5.0",
                                 "CET-1CEST,M3.5,M10.5.0",
                                 "CET-1CEST,M3,M10.5.0",
                                 "CET-1CEST,M,M10.5.0",
                                 "CET-1CEST,M3.5.0,M10.5.0x",
                                 "CET-999CEST,M3.5.0,M10.5.0"}) {
    EXPECT_FALSE(ZoneRule::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace weir
