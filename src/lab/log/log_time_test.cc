#include "lab/log/log_time.h"

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

std::int64_t Nanoseconds(std::string_view text) {
  const std::optional<WallTime> time = ParseTime(text);
  return time ? time->time_since_epoch().count() : -1;
}

TEST(LogTime, ReadsTheTimeOfNginxAndApacheWithAnyOffset) {
  EXPECT_EQ(Nanoseconds("10/Oct/2000:13:55:36 -0700"), 971'211'336'000'000'000);
  EXPECT_EQ(Nanoseconds("10/Oct/2000:20:55:36 +0000"), 971'211'336'000'000'000);
  EXPECT_EQ(Nanoseconds("11/Oct/2000:02:40:36 +0545"), 971'211'336'000'000'000);
}

TEST(LogTime, KnowsLeapDaysAndLeapSeconds) {
  EXPECT_EQ(Nanoseconds("29/Feb/2024:12:00:00 +0000"), 1'709'208'000'000'000'000);
  EXPECT_EQ(Nanoseconds("29/Feb/2023:12:00:00 +0000"), -1);
  EXPECT_EQ(Nanoseconds("31/Dec/2016:23:59:60 +0000"), Nanoseconds("2017-01-01T00:00:00Z"));
}

TEST(LogTime, ReadsEveryMonth) {
  int month = 1;
  for (const char* const name :
       {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}) {
    const std::string number = (month < 10 ? "0" : "") + std::to_string(month);
    EXPECT_EQ(Nanoseconds(std::string("07/") + name + "/2025:01:02:03 +0000"),
              Nanoseconds("2025-" + number + "-07T01:02:03Z"));
    EXPECT_NE(Nanoseconds("2025-" + number + "-07T01:02:03Z"), -1);
    ++month;
  }
}

TEST(LogTime, ReadsDatesInAllUsualForms) {
  constexpr std::int64_t kWhole = 1'767'323'045'000'000'000;
  for (const char* const text :
       {"2026-01-02T03:04:05Z", "2026-01-02 03:04:05", "2026-01-02t03:04:05z",
        "2026-01-02T04:04:05+01:00", "2026-01-02T04:04:05+01", "2026-01-01T22:04:05-0500",
        "2026/01/02 03:04:05", "2026-01-02 03:04:05 UTC", "2026-01-02T03:04:05.000Z"}) {
    EXPECT_EQ(Nanoseconds(text), kWhole) << text;
  }
  EXPECT_EQ(Nanoseconds("2026-01-02 03:04:05,678"), kWhole + 678'000'000);
  EXPECT_EQ(Nanoseconds("2026-01-02T03:04:05.123456789Z"), kWhole + 123'456'789);
  EXPECT_EQ(Nanoseconds("2026-01-02T03:04:05.1234567899Z"), kWhole + 123'456'789);
  EXPECT_EQ(Nanoseconds("2026-01-02T03:04Z"), kWhole - 5'000'000'000);
  EXPECT_EQ(Nanoseconds("2026-01-02"), Nanoseconds("2026-01-02T00:00:00Z"));
}

TEST(LogTime, TellsUnitsOfNumbersApartByTheirSize) {
  EXPECT_EQ(Nanoseconds("1767323045"), 1'767'323'045'000'000'000);
  EXPECT_EQ(Nanoseconds("1767323045.25"), 1'767'323'045'250'000'000);
  EXPECT_EQ(Nanoseconds("1767323045250"), 1'767'323'045'250'000'000);
  EXPECT_EQ(Nanoseconds("1767323045250.5"), 1'767'323'045'250'500'000);
  EXPECT_EQ(Nanoseconds("1767323045250001"), 1'767'323'045'250'001'000);
  EXPECT_EQ(Nanoseconds("1767323045250001002"), 1'767'323'045'250'001'002);
}

TEST(LogTime, RefusesWhatIsNoTime) {
  for (const char* const text : {"",
                                 "-",
                                 "now",
                                 "10/Oct/2000:13:55:36",
                                 "10/Okt/2000:13:55:36 -0700",
                                 "32/Oct/2000:13:55:36 -0700",
                                 "10/Oct/2000:24:00:00 -0700",
                                 "10/Oct/2000:13:55:36 *0700",
                                 "2026-13-02T03:04:05Z",
                                 "2026-00-02T03:04:05Z",
                                 "2026-01-02X03:04:05Z",
                                 "2026-01-02T03:04:05.Z",
                                 "2026-01-02T03:04:0",
                                 "2026-01-02T03:04:",
                                 "2026-01-02T03:04:05+1",
                                 "2026-01-02T03:04:05 CET",
                                 "1969-12-31T23:59:59Z",
                                 "2262-01-01T00:00:00Z",
                                 "9214646400",
                                 "9223372036854775800",
                                 "1.",
                                 ".5",
                                 "1e9",
                                 "-5",
                                 "99999999999999999999",
                                 "9999999999999999999",
                                 "1767323045x"}) {
    EXPECT_EQ(Nanoseconds(text), -1) << text;
  }
}

}  // namespace
}  // namespace weir::lab
