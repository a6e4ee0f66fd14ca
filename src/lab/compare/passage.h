// What went ahead, looked at from all sides: over every window, over every interval, over time.
// Everything here is exact; what is drawn loses no peak.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weir/time.h>

#include "lab/compare/traffic.h"

namespace weir::lab {

// An interval of time and what went ahead in it.
struct Stretch {
  Duration from{0};
  Duration to{0};
  std::int64_t cost = 0;
};

// The window (to - length, to] in which the most went ahead; the first of several. All take events
// in the order of time.
Stretch FindWorstWindow(std::span<const Arrival> passed, Duration length);

// The interval [from, to], of whatever length, in which the most went ahead beyond what a rate of
// `count` in `period` brings meanwhile.
struct WorstBurst {
  Stretch stretch{};
  double above_rate = 0;
  bool is_within = true;     // Whether that is at most `allowed`; told without rounding.
  std::int64_t rounded = 0;  // The least that it would have been within.
};
struct BurstQuestion {
  std::int64_t count = 0;
  Duration period{0};
  std::int64_t allowed = 0;
  // Times are rounded by up to this much: what the rate brings in it is not counted against anyone.
  Duration rounding{0};
};
WorstBurst FindWorstBurst(std::span<const Arrival> passed, const BurstQuestion& question);

// The time that is drawn, in equal parts.
struct PlotBins {
  Duration bin{1};
  std::size_t bins = 0;

  std::size_t BinOf(Duration at) const;
};
inline constexpr std::int64_t kMostBins = 600;
// A part goes into the period without rest, or the period into it.
PlotBins MakePlotBins(Duration length, Duration period);

// How much went ahead in each part.
std::vector<double> SumsOf(std::span<const Arrival> passed, const PlotBins& timeline);
// The most that the trailing window (t - length, t] held at any t of each part.
std::vector<double> PeaksOf(std::span<const Arrival> passed, Duration length,
                            const PlotBins& timeline);

}  // namespace weir::lab
