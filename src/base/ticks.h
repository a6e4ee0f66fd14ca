// The time the algorithms count in: sixteenths of a nanosecond since a store's origin.
//
// A nanosecond is too coarse: at 10 million a second it would be off by one percent. At a
// sixteenth the interval between two units is off by at most 6.3e-4 of the rate there, and 62 bits
// still hold nine years.
#pragma once

#include <algorithm>
#include <cstdint>

#include <weir/time.h>

namespace weir {

using Ticks = std::chrono::duration<std::int64_t, std::ratio<1, 16'000'000'000>>;

inline constexpr std::int64_t kTicksPerNanosecond = 16;

// A wait in ticks as a Duration, rounded up so that nobody is told to come back too early.
constexpr Duration ToDuration(Ticks ticks) noexcept {
  return Duration((ticks.count() + (kTicksPerNanosecond - 1)) >> 4);
}

constexpr Ticks ToTicks(Duration duration) noexcept {
  return Ticks(duration.count() * kTicksPerNanosecond);
}

// A Now as an algorithm sees it.
struct Instant {
  Ticks now;        // Steady time since the origin.
  WallTime wall;    // What the calendar says; only calendar windows look at it.
  WallTime origin;  // The wall time at tick 0; fixes where windows begin.
};

// Turns a Now into ticks. The origin lies a year before the store's start, so that a clock that
// steps back has somewhere to go; at both ends of the range time stands still. A Now may come from
// anybody, so every one is good, the earliest and the latest that can be written included.
class Timeline {
 public:
  explicit Timeline(Now start) noexcept
      : steady_origin_(YearBefore(start.steady)),
        steady_latest_(std::min(steady_origin_, SteadyTime::max() - kLatest) + kLatest),
        wall_origin_(YearBefore(start.wall)) {}

  Instant At(Now now) const noexcept {
    return {.now = TicksAt(now.steady), .wall = now.wall, .origin = wall_origin_};
  }
  Ticks TicksAt(SteadyTime steady) const noexcept {
    return ToTicks(std::clamp(steady, steady_origin_, steady_latest_) - steady_origin_);
  }

  // For so long after the start time goes on.
  static constexpr Duration kLasts = std::chrono::hours(24 * 366 * 5);

  WallTime wall_origin() const noexcept { return wall_origin_; }
  // Where windows begin is fixed by the wall time at tick 0: for one that goes on with windows of
  // another.
  void AlignTo(WallTime origin) noexcept { wall_origin_ = origin; }

 private:
  static constexpr Duration kBeforeStart = std::chrono::hours(24 * 366);
  // Leaves room above for the furthest state: twice the longest burst and the longest wait.
  static constexpr Duration kLatest = kBeforeStart + kLasts;

  template <typename Time>
  static constexpr Time YearBefore(Time start) noexcept {
    return std::max(start, Time::min() + kBeforeStart) - kBeforeStart;
  }

  SteadyTime steady_origin_;
  SteadyTime steady_latest_;
  WallTime wall_origin_;
};

}  // namespace weir
