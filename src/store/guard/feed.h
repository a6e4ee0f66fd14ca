// Keeps what decides in the store's place warm: all that the store admits for this process is also
// charged here, against the process's share. The share may be less than what the process gets
// while the store is well, so a key is fed up to its limit and never into debt.
#pragma once

#include "store/guard/lease_pairs.h"
#include "store/guard/share.h"
#include "store/store.h"

namespace weir {

class MemoryStore;

// Not thread-safe; what is behind it may be shared.
class Feed {
 public:
  // All must outlive it.
  Feed(MemoryStore& local, Shares& shares, LeasePairs& leases) noexcept
      : local_(local), shares_(shares), leases_(leases) {}

  // Of a group that the store decided: what its static charges took, or gave back.
  void Take(const Group& group, int nodes, Now now) noexcept;
  // The holder of leases in the store is done with them.
  void Release(ReservationId shared, Now now) noexcept;

 private:
  void ChargeUpTo(const Charge& charge, Now now) noexcept;
  void TakeLeases(std::span<Charge> charges, ReservationId shared, Now now) noexcept;

  MemoryStore& local_;
  Shares& shares_;
  LeasePairs& leases_;
};

}  // namespace weir
