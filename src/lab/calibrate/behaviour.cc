#include "lab/calibrate/behaviour.h"

#include <algorithm>
#include <cmath>

#include "lab/calibrate/quantile.h"

namespace weir::lab {
namespace {

using Peaks = std::vector<std::uint32_t>;

template <typename Wanted>
Peaks SortedPeaks(const ClientTable& clients, std::size_t period, const Wanted& wanted) {
  Peaks peaks;
  peaks.reserve(clients.size());
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const auto id = static_cast<ClientId>(i);
    if (wanted(id)) peaks.push_back(clients[id].windows[period].peak());
  }
  std::ranges::sort(peaks);
  return peaks;
}

// 1, and then some more each time, to the largest.
std::vector<double> CurveX(std::uint32_t largest) {
  constexpr double kPerDecade = 40;
  std::vector<double> x;
  for (double value = 1; x.empty() || x.back() < largest;
       value = std::max(value + 1, std::round(value * std::pow(10, 1 / kPerDecade)))) {
    x.push_back(value);
  }
  return x;
}

PeakCurve CurveOf(const Peaks& sorted, std::size_t period, const std::vector<double>& x) {
  PeakCurve curve{.period = period};
  for (const double value : x) {
    const auto at_least = std::ranges::lower_bound(sorted, value);
    curve.share.push_back(static_cast<double>(sorted.end() - at_least) /
                          static_cast<double>(sorted.size()));
  }
  return curve;
}

void AddCurves(const ClientTable& clients, Calibration& calibration) {
  std::uint32_t largest = 1;
  for (const Behaviour& behaviour : calibration.behaviour) {
    largest = std::max(largest, behaviour.largest_of_all);
  }
  calibration.curve_x = CurveX(largest);
  for (const Behaviour& behaviour : calibration.behaviour) {
    const Peaks all = SortedPeaks(clients, behaviour.period, [](ClientId) { return true; });
    calibration.curves.push_back(CurveOf(all, behaviour.period, calibration.curve_x));
  }
}

void Describe(const Peaks& normal, const CalibrationSettings& settings, Behaviour& behaviour) {
  behaviour.normal = {.p50 = QuantileOf(normal, 0.5),
                      .p90 = QuantileOf(normal, 0.9),
                      .p99 = QuantileOf(normal, 0.99),
                      .p999 = QuantileOf(normal, 0.999),
                      .largest = normal.back()};
  behaviour.at_quantile = QuantileOf(normal, settings.quantile);
  behaviour.is_largest = IsTheLargest(normal.size(), settings.quantile);
  behaviour.limit = FriendlyFrom(settings.margin * behaviour.at_quantile);
}

// Who is far above the others in some period may hide, in another, who is so there. So everybody is
// looked at again without those found, until nobody is found any more.
SetApart FindThoseApart(const ClientTable& clients, std::vector<Behaviour>& behaviour) {
  SetApart apart(clients.size());
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<ClientId> found;
    for (Behaviour& in : behaviour) {
      const Gap gap =
          FindGap(SortedPeaks(clients, in.period, [&](ClientId id) { return !apart.Has(id); }));
      if (gap.above == 0) continue;
      in.gap = gap;
      for (std::size_t i = 0; i < clients.size(); ++i) {
        const auto id = static_cast<ClientId>(i);
        if (clients[id].windows[in.period].peak() >= gap.from) found.push_back(id);
      }
    }
    const std::size_t before = apart.count();
    for (const ClientId id : found) apart.Add(id);
    if (apart.count() == before) break;
  }
  return apart;
}

}  // namespace

SetApart LearnBehaviour(const ClientTable& clients, Calibration& calibration) {
  const CalibrationSettings& settings = calibration.settings;
  // Times are often cut to whole seconds, so the last request may be almost one later.
  const Duration resolution =
      calibration.whole_seconds ? Duration(std::chrono::seconds(1)) : Duration(0);
  const Duration span = calibration.last - calibration.first + resolution;
  for (std::size_t period = 0; period < kPeriods; ++period) {
    const Duration length = kAllPeriods[period].length;
    if (span >= length) {
      calibration.behaviour.push_back({.period = period, .twice = span >= 2 * length});
    } else {
      calibration.periods_not_seen.push_back(period);
    }
  }
  SetApart apart = FindThoseApart(clients, calibration.behaviour);
  for (Behaviour& behaviour : calibration.behaviour) {
    const Peaks all = SortedPeaks(clients, behaviour.period, [](ClientId) { return true; });
    behaviour.with_everybody = QuantileOf(all, settings.quantile);
    behaviour.largest_of_all = all.back();
    behaviour.limit_with_everybody = FriendlyFrom(settings.margin * behaviour.with_everybody);
    Describe(SortedPeaks(clients, behaviour.period, [&](ClientId id) { return !apart.Has(id); }),
             settings, behaviour);
  }
  AddCurves(clients, calibration);
  return apart;
}

}  // namespace weir::lab
