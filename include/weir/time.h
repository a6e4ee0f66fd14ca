// Time as Weir speaks of it: three types that cannot be mixed up, and one rounding rule.
//
// A Duration is a length, a SteadyTime a point on a clock that never steps back by itself, a
// WallTime a point on the calendar. Every decision is made for a Now, which holds one of each
// instant, so that one reading of the clock can serve many decisions.
#pragma once

#include <chrono>
#include <cstdint>

namespace weir {

using Duration = std::chrono::nanoseconds;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, Duration>;
using WallTime = std::chrono::sys_time<Duration>;

// One reading of the clock.
struct Now {
  SteadyTime steady;
  WallTime wall;
};

// "Never": the retry_after of a request that no amount of waiting would let through.
inline constexpr Duration kNever = Duration::max();

// Rounds a wait up to whole units, because a client that comes back early is denied again.
template <typename Unit>
constexpr std::int64_t RoundUpTo(Duration wait) {
  return std::chrono::ceil<Unit>(wait).count();
}

}  // namespace weir
