// Times as access logs write them, exact to what they say.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <weir/time.h>

namespace weir::lab {

// 10/Oct/2000:13:55:36 -0700, which is how nginx and Apache write it. Exactly so long.
inline constexpr std::size_t kLocalTimeBytes = 26;
std::optional<WallTime> ParseLocalTime(std::string_view text);

// Any of: the above; RFC 3339 and its relatives (2026-01-02T03:04:05.678+01:00, a blank for the T,
// a comma for the point, no zone: UTC, no time: midnight); and a number of seconds, milliseconds,
// microseconds or nanoseconds since 1970, told apart by its size, perhaps with a fraction. None if
// it is something else, or before 1970 or after 2261.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace weir::lab
