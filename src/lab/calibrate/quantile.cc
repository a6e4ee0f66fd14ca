#include "lab/calibrate/quantile.h"

#include <algorithm>
#include <cmath>

namespace weir::lab {
namespace {

// 99.9 % of 1,000 is 999, also if floating-point numbers say 999.0000000001.
constexpr double kRankSlack = 1e-9;

}  // namespace

std::uint32_t QuantileOf(std::span<const std::uint32_t> sorted, double part) noexcept {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(part * static_cast<double>(sorted.size()) * (1 - kRankSlack));
  const auto place = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return sorted[std::min(place, sorted.size() - 1)];
}

bool IsTheLargest(std::size_t values, double part) noexcept {
  return (1 - part) * static_cast<double>(values) < 1 - kRankSlack;
}

std::int64_t FriendlyFrom(double least) noexcept {
  const auto exact = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(least - kRankSlack * std::abs(least))));
  std::int64_t ten = 1;
  while (ten <= exact / 10) ten *= 10;
  for (; ten > 0; ten /= 10) {
    for (const std::int64_t part : {1, 2, 4, 5}) {
      if (ten % part != 0) continue;
      const std::int64_t step = ten / part;
      const std::int64_t rounded = (exact + step - 1) / step * step;
      if (static_cast<double>(rounded) <= 1.02 * static_cast<double>(exact)) return rounded;
    }
  }
  return exact;
}

}  // namespace weir::lab
