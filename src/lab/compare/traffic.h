// Requests to try a limit on: when each comes and what it costs. Made-up traffic has a shape and is
// measured in the limit's own terms (so many times its count, so many of its periods), so that
// 5/day is shown as well as 10k/s. The same seed makes the same requests everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>
#include <weir/time.h>

#include "base/ticks.h"

namespace weir::lab {

struct Arrival {
  Duration at{0};  // Since the traffic's start.
  std::int64_t cost = 1;

  friend bool operator==(const Arrival&, const Arrival&) = default;
};

struct Traffic {
  std::string name{};         // poisson, or the name of a file.
  std::string description{};  // What comes, in a sentence.
  WallTime start{};           // A whole number of periods since 1970: a window begins.
  Duration length{0};
  std::vector<Arrival> arrivals{};      // In the order of time; never empty.
  bool has_dates = false;               // Its times are dates, rather than seconds since a start.
  std::vector<std::string> warnings{};  // What keeps it from being all that was asked for.
};

enum class Shape : std::uint8_t { kSteady, kPoisson, kBurst, kBoundary, kLateWindow, kDiurnal };

inline constexpr std::array<std::string_view, 6> kShapeNames = {
    "steady", "poisson", "burst", "boundary", "late-window", "diurnal"};

// More than this is not made, and said so.
inline constexpr std::int64_t kMostArrivals = 5'000'000;
// What the store's clock has room for.
inline constexpr Duration kLongestTraffic = std::chrono::hours(24 * 365 * 5);
static_assert(kLongestTraffic <= Timeline::kLasts);

struct TrafficOptions {
  Shape shape = Shape::kPoisson;
  // The limit: so much in every period.
  std::int64_t count = 0;
  Duration period{0};
  double load = 0;       // As a multiple of the limit; 0: what suits the shape.
  Duration duration{0};  // 0: as many periods as suit the shape.
  std::uint64_t seed = 1;
};

// The shapes. n is the load times the count; loads and durations in periods unless told otherwise:
//   steady       n in every period, evenly                               load 1.5, 10 periods
//   poisson      n in every period on average, each by chance            load 1, 60 periods
//   burst        in every fourth period, in its middle, n at the same
//                instant, then n more evenly during one period           load 2, 12 periods
//   boundary     around every fourth end of a window, n in the last
//                hundredth before it and n in the first after it         load 1, 12 periods
//   late-window  n within half an interval (period / n) of the end of every
//                fourth window, then one in every interval of the next   load 1, 12 periods
//   diurnal      by chance, along a day's curve: n in every period at
//                the busiest hour, a tenth of it at the quietest         load 1.5, 240 periods
[[nodiscard]] Result<Traffic> MakeTraffic(const TrafficOptions& options);

// One time on every line, in seconds (since 1970, or since whatever) or as RFC 3339, and what the
// request costs behind a blank. Empty lines, and what is behind a #, are left out. Any other line
// is an error that names it. Times need not be in order.
[[nodiscard]] Result<Traffic> ReadTraffic(std::string_view text, const std::string& name,
                                          Duration period);

}  // namespace weir::lab
