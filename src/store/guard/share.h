// A limit cut down to one process's part of a fleet, so that the fleet as a whole keeps to it
// without anybody to ask: over N processes never more than max(burst, N) + rate t.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <weir/limit.h>

#include "store/store.h"

namespace weir {

// The part of one of `nodes`: of a bucket the rate / N and the burst / N, of others the count / N;
// rounded down, but at least 1. It goes on with the state of a part of another size. A rate below
// one in 366 days is raised to that.
Limit ShareOf(const Limit& limit, int nodes);

// A ban is as long for one process as for all, and who is banned is so by any of them: only what
// the rule itself counts is divided.
inline int NodesSharing(const Charge& charge, int nodes) noexcept {
  return charge.aspect == Aspect::kRule ? nodes : 1;
}

// Shares that were worked out before. Not thread-safe.
class Shares {
 public:
  // Before a group's limits are looked up: makes room, if there are too many.
  void Tidy() noexcept;
  // The share of a limit; stays good until Tidy.
  const Limit& Of(const Limit& limit, int nodes) noexcept;

  std::size_t size() const noexcept { return known_.size(); }

 private:
  // Some limits are copies that are asked about once, so their places pile up until all are
  // forgotten.
  static constexpr std::size_t kMost = 8'192;

  // What a share was made from. The address of a limit is no name: it is used again by another.
  struct Known {
    LimitSpec spec;
    std::uint64_t state_salt;
    SteadyTime predecessor_until;
    int nodes;
    std::unique_ptr<const Limit> share;
  };

  std::unordered_map<const Limit*, Known> known_;
  // Kept for those of the same group that use them.
  std::vector<std::unique_ptr<const Limit>> outdated_;
};

}  // namespace weir
