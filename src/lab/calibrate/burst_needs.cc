#include "lab/calibrate/burst_needs.h"

#include <algorithm>
#include <cmath>

namespace weir::lab {
namespace {

// Buckets round the time between two requests up, by less than this part of it at any rate that a
// client has. So a burst is never found to do that does not.
constexpr double kRounding = 1e-6;
constexpr double kRoundingSlack = 1e-9;

}  // namespace

BurstNeeds::BurstNeeds(std::size_t clients, std::int64_t count, Duration period)
    : drain_(static_cast<double>(count) * (1 - kRounding) / static_cast<double>(period.count())),
      levels_(clients) {}

std::uint32_t BurstNeeds::Of(ClientId id) const noexcept {
  return static_cast<std::uint32_t>(std::ceil(levels_[id].highest - kRoundingSlack));
}

}  // namespace weir::lab
