// Decides in the store's place when it failed: each charge as its rule says. Charges that are
// `static` are one group among themselves, all or nothing, against this process's share; what
// counts nothing is decided as ever.
#pragma once

#include <vector>

#include "base/inline_vector.h"
#include "store/guard/share.h"
#include "store/store.h"

namespace weir {

class MemoryStore;

// Not thread-safe; the store behind it may be shared.
class Fallback {
 public:
  // Both must outlive it.
  Fallback(MemoryStore& local, Shares& shares) noexcept : local_(local), shares_(shares) {}

  // Decides a group of kDecide or kReserve that has room for its decisions, and takes its error
  // away. Says which mode spoke: the strictest that had a say.
  FailureMode Decide(Group& group, int nodes, Now now) noexcept;

  // Settles a reservation that was made here.
  void Settle(Group& group, int nodes, Now now) noexcept;

 private:
  // The part of a group that is decided here.
  struct Part {
    InlineVector<Charge, kMaxGroupCharges> charges;
    InlineVector<Decision, kMaxGroupCharges> decisions;
    InlineVector<Receipt, kMaxGroupCharges> receipts;
    InlineVector<std::uint8_t, kMaxGroupCharges> places;  // In the group, by charge of the part.
  };

  void Pick(const Group& group, int nodes, bool refused, Part& part) noexcept;
  void DecidePart(Group& group, bool refused, Part& part, Now now) noexcept;
  void Tell(Group& group, const Part& part) noexcept;
  // An id for what was let through uncounted, so that whoever was told of a reservation or a lease
  // can settle it.
  void NameUncounted(Group& group, Now now) noexcept;

  MemoryStore& local_;
  Shares& shares_;
  std::vector<LimitInForce> in_force_;
};

}  // namespace weir
