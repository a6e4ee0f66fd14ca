// One key of a store as a Subject: whatever a trace asks goes through the Store interface. Charges
// that the trace settles later are made as reservations, the others as plain checks.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include <weir/limit.h>

#include "store/store.h"
#include "subject.h"
#include "trace.h"

namespace weir::conformance {

class StoreSubject final : public Subject {
 public:
  // A shorter way that a store may offer for a single charge.
  using Shortcut = std::function<Decision(const Charge&, Now)>;

  // Completes at once, or runs whatever makes the store complete.
  StoreSubject(Store& store, const Limit& limit, std::string key, const Trace& trace,
               Shortcut shortcut = {});

  Decision Do(const Action& action, Now now) override;

 private:
  struct Taken {
    ReservationId reservation = ReservationId::kNone;
    Receipt receipt{};
  };

  Decision Submit(Group& group, Now now);
  Decision Settle(const Action& action, Now now);

  Store& store_;
  const Limit limit_;
  const std::string key_;
  const Shortcut shortcut_;
  std::set<int> settled_;   // Steps that a later one settles,
  std::set<int> unbooked_;  // or gives back its place.
  std::map<int, Taken> taken_;
};

}  // namespace weir::conformance
