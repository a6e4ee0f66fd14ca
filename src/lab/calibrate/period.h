// The lengths of time over which clients are watched.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

#include <weir/time.h>

namespace weir::lab {

struct Period {
  Duration length;
  std::string_view word;       // "minute"
  std::string_view adverb;     // "per minute"
  std::string_view in_limits;  // "min", as limits have it.
  std::string_view in_json;    // "1min"
};

inline constexpr std::size_t kPeriods = 4;
inline constexpr std::size_t kSecond = 0;
inline constexpr std::size_t kMinute = 1;
inline constexpr std::size_t kHour = 2;
inline constexpr std::size_t kDay = 3;

// The shortest first.
inline constexpr std::array<Period, kPeriods> kAllPeriods = {{
    {std::chrono::seconds(1), "second", "per second", "s", "second"},
    {std::chrono::minutes(1), "minute", "per minute", "min", "minute"},
    {std::chrono::hours(1), "hour", "per hour", "h", "hour"},
    {std::chrono::hours(24), "day", "per day", "day", "day"},
}};

}  // namespace weir::lab
