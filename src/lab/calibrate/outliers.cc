#include "lab/calibrate/outliers.h"

#include <algorithm>
#include <cmath>

namespace weir::lab {
namespace {

constexpr double kMostLikely = 1e-3;
constexpr double kMostLikelyOfMore = 3e-3;  // Where somebody is far above, others may be.
constexpr double kNarrowest = 3.0;          // Times the largest of the others: less is no gap.
// Counts are whole numbers and differ by chance: equal clients have tails, too.
constexpr double kDeviations = 4.0;
constexpr double kFewRequests = 8.0;
// Clients that are all alike have no tail to speak of; the next log may have.
constexpr double kLightestTail = 0.1;

// A gap whatever the tail is. Even one as heavy as that of a Pareto distribution with the exponent
// 2 has one like that with a probability of a hundredth for one client, and less for several.
bool IsHuge(double ratio, std::size_t above) noexcept {
  constexpr double kForOne = 10.0;
  constexpr double kTogether = 40.0;
  return ratio >= kForOne ||
         (above > 1 && static_cast<double>(above) * std::log(ratio) >= std::log(kTogether));
}

bool IsWide(std::uint32_t from, std::uint32_t below) noexcept {
  const double low = below;
  return from >= kNarrowest * low && from >= low + kDeviations * std::sqrt(low) + kFewRequests;
}

// How the tail that ends with the largest of `values` falls off: by how much, on average, the
// logarithms of the largest exceed that of the value before them.
struct Tail {
  double mean_excess = kLightestTail;
  double values = 0;  // That it was learnt from.
};
Tail TailOf(std::span<const std::uint32_t> values) noexcept {
  constexpr std::size_t kFewest = 10;
  constexpr std::size_t kMost = 500;
  const std::size_t used =
      std::min(std::clamp(values.size() / 20, kFewest, kMost), values.size() - 1);
  const double base = std::log(std::max(1U, values[values.size() - used - 1]));
  double sum = 0;
  for (const std::uint32_t value : values.last(used)) sum += std::log(std::max(1U, value)) - base;
  const auto count = static_cast<double>(used);
  return {.mean_excess = std::max(kLightestTail, sum / count), .values = count};
}

}  // namespace

Gap FindGap(std::span<const std::uint32_t> sorted) noexcept {
  if (sorted.size() < kFewestForGap) return {};
  const std::size_t most = std::max<std::size_t>(1, sorted.size() / 10);
  Gap found;
  // From the top. Whoever is above a gap says nothing about the tail of those below it.
  for (std::size_t above = 1; above <= most; ++above) {
    const std::size_t place = sorted.size() - above;
    const std::uint32_t from = sorted[place];
    const std::uint32_t below = std::max(1U, sorted[place - 1]);
    if (!IsWide(from, below)) continue;
    const Tail tail = TailOf(sorted.first(place));
    const std::size_t more = above - found.above;
    const double ratio = static_cast<double>(from) / below;
    const double spacing = static_cast<double>(more) * std::log(ratio) / tail.mean_excess;
    // A ratio of an exponential and a mean of so many others.
    const double chance = std::pow(1 + spacing / tail.values, -tail.values);
    const double most_likely = found.above == 0 ? kMostLikely : kMostLikelyOfMore;
    if (chance < most_likely || IsHuge(ratio, more)) {
      found = {.above = above, .from = from, .below = below, .chance = chance};
    }
  }
  return found;
}

}  // namespace weir::lab
