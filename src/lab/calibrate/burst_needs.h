// The burst that each client needs at a given rate: the highest level of a bucket that every
// request fills by one and that drains at that rate. With at least that burst, a token bucket of
// that rate would never have denied the client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <weir/time.h>

#include "lab/calibrate/client_table.h"

namespace weir::lab {

// Belongs to one thread.
class BurstNeeds {
 public:
  // `count` in each `period`.
  BurstNeeds(std::size_t clients, std::int64_t count, Duration period);

  // One more request of the client, not earlier than any of its before.
  void Count(ClientId id, WallTime time) noexcept {
    Level& level = levels_[id];
    const auto passed = static_cast<double>((time - level.at).count());
    level.now = 1 + (level.highest == 0 ? 0 : std::max(0.0, level.now - passed * drain_));
    level.at = time;
    level.highest = std::max(level.highest, level.now);
  }

  // In whole requests.
  std::uint32_t Of(ClientId id) const noexcept;
  std::size_t bytes() const noexcept { return levels_.capacity() * sizeof(Level); }

 private:
  struct Level {
    double now = 0;
    double highest = 0;
    WallTime at{};
  };
  double drain_;  // In a nanosecond.
  std::vector<Level> levels_;
};

}  // namespace weir::lab
