// Keys that a server has just said are exhausted, and until when. A group over several servers that
// has one of them is denied here: else whoever is denied on one key would keep taking from another
// for as long as it takes to give that back. For a moment only: somebody else may give back, reset
// or change the limit meanwhile. Places are not remembered at all, because they come back at any
// time.
#pragma once

#include <cstdint>
#include <unordered_map>

#include <weir/time.h>

#include "store/store.h"

namespace weir::redis {

// Not thread-safe.
class EmptyKeys {
 public:
  static constexpr std::size_t kMost = 4'096;
  static constexpr Duration kLongest = std::chrono::seconds(1);

  // The charge was denied so.
  void Add(const Charge& charge, const Decision& decision, SteadyTime now,
           WallTime decided_at = {});
  // It may have something again.
  void Forget(const Charge& charge) noexcept { keys_.erase(charge.hash); }
  // Null if it is not known to be exhausted for this charge. Good until the next call.
  struct Known {
    Decision decision{};
    WallTime time{};  // By the store's clock, about now.
  };
  const Known* Find(const Charge& charge, SteadyTime now) noexcept;

  std::size_t size() const noexcept { return keys_.size(); }

 private:
  struct Denial {
    SteadyTime since;
    SteadyTime until;
    WallTime decided_at;
    std::int64_t cost;
    std::uint32_t family;  // Of the limit that denied.
    Decision decision;
  };

  std::unordered_map<std::uint64_t, Denial> keys_;
  Known told_;
};

}  // namespace weir::redis
