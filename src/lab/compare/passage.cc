#include "lab/compare/passage.h"

#include <algorithm>

namespace weir::lab {
namespace {

// The sum of a window that only moves forward.
class Trailing {
 public:
  Trailing(std::span<const Arrival> passed, Duration length) : passed_(passed), length_(length) {}

  // What lies in (at - length, at].
  std::int64_t SumAt(Duration at) {
    while (next_ < passed_.size() && passed_[next_].at <= at) sum_ += passed_[next_++].cost;
    while (first_ < next_ && passed_[first_].at <= at - length_) sum_ -= passed_[first_++].cost;
    return sum_;
  }

 private:
  std::span<const Arrival> passed_;
  Duration length_;
  std::size_t first_ = 0;
  std::size_t next_ = 0;
  std::int64_t sum_ = 0;
};

}  // namespace

Stretch FindWorstWindow(std::span<const Arrival> passed, Duration length) {
  Stretch worst;
  Trailing trailing(passed, length);
  for (const Arrival& event : passed) {
    const std::int64_t sum = trailing.SumAt(event.at);
    if (sum > worst.cost) worst = {.from = event.at - length, .to = event.at, .cost = sum};
  }
  return worst;
}

// With P the sum of all costs up to an event, the interval from i to j holds P_j - P_(i-1), so the
// worst j for each i is the worst of all before it: one walk finds the worst pair.
WorstBurst FindWorstBurst(std::span<const Arrival> passed, const BurstQuestion& question) {
  __extension__ using Wide = __int128;
  const Wide period = question.period.count();
  const Wide count = question.count;
  WorstBurst worst;
  Wide most = 0;
  Wide lowest = 0;
  std::size_t start = 0;
  Wide start_sum = 0;
  Wide sum = 0;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const Wide brought = count * passed[i].at.count();
    const Wide before = sum * period - brought;
    if (i == 0 || before < lowest) {
      lowest = before;
      start = i;
      start_sum = sum;
    }
    sum += passed[i].cost;
    const Wide above = sum * period - brought - lowest;
    if (above <= most) continue;
    most = above;
    worst.stretch = {.from = passed[start].at,
                     .to = passed[i].at,
                     .cost = static_cast<std::int64_t>(sum - start_sum)};
  }
  worst.above_rate = static_cast<double>(most) / static_cast<double>(period);
  const Wide spared = count * question.rounding.count();
  worst.rounded = static_cast<std::int64_t>((most - spared + period - 1) / period);
  worst.is_within = worst.rounded <= question.allowed;
  return worst;
}

std::size_t PlotBins::BinOf(Duration at) const {
  const auto number = static_cast<std::size_t>(std::max(Duration(0), at) / bin);
  return std::min(number, bins - 1);
}

PlotBins MakePlotBins(Duration length, Duration period) {
  const std::int64_t periods = std::max<std::int64_t>(1, (length + period - Duration(1)) / period);
  PlotBins timeline{.bin = period * ((periods + kMostBins - 1) / kMostBins)};
  if (periods <= kMostBins) {
    for (const std::int64_t parts : {2, 4, 5, 10, 20, 50, 100}) {
      if (periods * parts <= kMostBins && period.count() % parts == 0)
        timeline.bin = period / parts;
    }
  }
  timeline.bins = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (length + timeline.bin - Duration(1)) / timeline.bin));
  return timeline;
}

std::vector<double> SumsOf(std::span<const Arrival> passed, const PlotBins& timeline) {
  std::vector<double> sums(timeline.bins);
  for (const Arrival& event : passed) {
    sums[timeline.BinOf(event.at)] += static_cast<double>(event.cost);
  }
  return sums;
}

std::vector<double> PeaksOf(std::span<const Arrival> passed, Duration length,
                            const PlotBins& timeline) {
  std::vector<double> peaks(timeline.bins);
  // It grows only when something goes ahead, so it is highest then or where a part begins.
  Trailing at_starts(passed, length);
  for (std::size_t i = 0; i < timeline.bins; ++i) {
    const Duration start = timeline.bin * static_cast<std::int64_t>(i);
    peaks[i] = static_cast<double>(at_starts.SumAt(start));
  }
  Trailing at_events(passed, length);
  for (const Arrival& event : passed) {
    double& peak = peaks[timeline.BinOf(event.at)];
    peak = std::max(peak, static_cast<double>(at_events.SumAt(event.at)));
  }
  return peaks;
}

}  // namespace weir::lab
