#include "lab/log/log_time.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>

namespace weir::lab {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Nanoseconds in 64 bits end in the next.
constexpr int kLastYear = 2261;

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

// The number in `count` digits from `at` on; -1 if they are none.
int Digits(std::string_view text, std::size_t at, std::size_t count) noexcept {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (!IsDigit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

int MonthOf(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 12> kNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<int>(i) + 1;
  }
  return -1;
}

struct Civil {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  nanoseconds fraction{0};
  minutes offset{0};  // Of the zone, east of Greenwich.
};

std::optional<WallTime> Join(const Civil& at) {
  if (at.year < 1970 || at.year > kLastYear) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(at.year),
                                         std::chrono::month(static_cast<unsigned>(at.month)),
                                         std::chrono::day(static_cast<unsigned>(at.day))};
  // A 60th second is a leap second, which the count of seconds since 1970 leaves out.
  const bool right = at.month >= 1 && at.day >= 1 && date.ok() && at.hour >= 0 && at.hour <= 23 &&
                     at.minute >= 0 && at.minute <= 59 && at.second >= 0 && at.second <= 60;
  if (!right) return std::nullopt;
  const auto whole = std::chrono::sys_days(date) + hours(at.hour) + minutes(at.minute) +
                     seconds(at.second) - at.offset;
  const WallTime time = WallTime(whole) + at.fraction;
  if (time < WallTime()) return std::nullopt;
  return time;
}

// +0100, +01:00, +01, Z. None if it is no zone.
std::optional<minutes> ParseZone(std::string_view text) {
  if (text == "Z" || text == "z") return minutes(0);
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const int hour = Digits(text, 1, 2);
  int minute = 0;
  if (text.size() == 5) {
    minute = Digits(text, 3, 2);
  } else if (text.size() == 6 && text[3] == ':') {
    minute = Digits(text, 4, 2);
  } else if (text.size() != 3) {
    return std::nullopt;
  }
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59) return std::nullopt;
  const minutes offset = hours(hour) + minutes(minute);
  return text[0] == '-' ? -offset : offset;
}

// The digits from `at` on as a fraction of a second; what is finer than a nanosecond is cut off.
// Moves `at` behind them. None if there are none.
std::optional<nanoseconds> ParseFraction(std::string_view text, std::size_t& at) {
  const std::size_t from = at;
  std::int64_t value = 0;
  std::int64_t unit = 1'000'000'000;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (unit == 1) continue;
    unit /= 10;
    value += (text[at] - '0') * unit;
  }
  if (at == from) return std::nullopt;
  return nanoseconds(value);
}

// 2026-01-02T03:04:05.678Z and its relatives.
std::optional<WallTime> ParseDate(std::string_view text) {
  const char between = text[4];
  if ((between != '-' && between != '/') || text.size() < 10 || text[7] != between) {
    return std::nullopt;
  }
  Civil at{.year = Digits(text, 0, 4), .month = Digits(text, 5, 2), .day = Digits(text, 8, 2)};
  if (text.size() == 10) return Join(at);
  if (text[10] != 'T' && text[10] != 't' && text[10] != ' ') return std::nullopt;
  if (text.size() < 16 || text[13] != ':') return std::nullopt;
  at.hour = Digits(text, 11, 2);
  at.minute = Digits(text, 14, 2);
  std::size_t next = 16;
  if (next < text.size() && text[next] == ':') {
    at.second = Digits(text, 17, 2);
    next = 19;
    if (next < text.size() && (text[next] == '.' || text[next] == ',')) {
      const std::optional<nanoseconds> fraction = ParseFraction(text, ++next);
      if (!fraction) return std::nullopt;
      at.fraction = *fraction;
    }
  }
  if (next > text.size()) return std::nullopt;
  while (next < text.size() && text[next] == ' ') ++next;
  const std::string_view zone = text.substr(next);
  if (!zone.empty() && zone != "UTC" && zone != "GMT") {
    const std::optional<minutes> offset = ParseZone(zone);
    if (!offset) return std::nullopt;
    at.offset = *offset;
  }
  return Join(at);
}

// A number since 1970: seconds up to the year 5138, milliseconds, microseconds or nanoseconds
// above.
std::optional<WallTime> ParseNumber(std::string_view text) {
  std::int64_t whole = 0;
  std::size_t at = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (whole > (std::numeric_limits<std::int64_t>::max() - 9) / 10) return std::nullopt;
    whole = whole * 10 + (text[at] - '0');
  }
  if (at == 0) return std::nullopt;
  std::int64_t unit = 1;  // In nanoseconds.
  if (whole < 100'000'000'000) {
    unit = 1'000'000'000;
  } else if (whole < 100'000'000'000'000) {
    unit = 1'000'000;
  } else if (whole < 100'000'000'000'000'000) {
    unit = 1'000;
  }
  if (whole > (std::numeric_limits<std::int64_t>::max() - unit) / unit) return std::nullopt;
  nanoseconds fraction{0};
  if (at < text.size()) {
    if (text[at] != '.') return std::nullopt;
    const std::optional<nanoseconds> part = ParseFraction(text, ++at);
    if (!part || at != text.size()) return std::nullopt;
    fraction = *part / (1'000'000'000 / unit);
  }
  const auto time = WallTime(nanoseconds(whole * unit) + fraction);
  if (time >= WallTime(std::chrono::sys_days(std::chrono::year(kLastYear + 1) / 1 / 1))) {
    return std::nullopt;
  }
  return time;
}

}  // namespace

std::optional<WallTime> ParseLocalTime(std::string_view text) {
  const bool formed = text.size() == kLocalTimeBytes && text[2] == '/' && text[6] == '/' &&
                      text[11] == ':' && text[14] == ':' && text[17] == ':' && text[20] == ' ';
  if (!formed) return std::nullopt;
  const std::optional<minutes> offset = ParseZone(text.substr(21));
  if (!offset) return std::nullopt;
  return Join({.year = Digits(text, 7, 4),
               .month = MonthOf(text.substr(3, 3)),
               .day = Digits(text, 0, 2),
               .hour = Digits(text, 12, 2),
               .minute = Digits(text, 15, 2),
               .second = Digits(text, 18, 2),
               .offset = *offset});
}

std::optional<WallTime> ParseTime(std::string_view text) {
  if (text.size() == kLocalTimeBytes && text[2] == '/') return ParseLocalTime(text);
  if (text.size() > 4 && (text[4] == '-' || text[4] == '/')) return ParseDate(text);
  return ParseNumber(text);
}

}  // namespace weir::lab
