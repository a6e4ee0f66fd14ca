// One key of a store as a Subject: whatever a trace asks goes through the Store interface. Charges
// that may be settled later are made as reservations, the others as plain checks.
#pragma once

#include <functional>
#include <map>
#include <optional>
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

  // The store completes before Submit returns.
  StoreSubject(Store& store, const Limit& limit, std::string key, Shortcut shortcut = {});

  // For a store that goes by a server's clock, which traces move by years from one step to the
  // next: has it hear the time before each step, for it names the windows of a calendar beforehand.
  void HearTimeFirst() noexcept { hears_time_first_ = limit_.calendar() != nullptr; }

  Decision Do(const TraceAction& action, Now now) override;

  // Of the last step: why nothing was decided, or nothing.
  const std::optional<Error>& error() const { return error_; }
  // Of the last step, on a shared store: when it was decided.
  WallTime decided_at() const { return decided_at_; }

 private:
  struct Taken {
    ReservationId reservation = ReservationId::kNone;
    Receipt receipt{};
  };

  void HearTime(Now now);
  Decision Submit(Group& group, Now now);
  Decision Settle(const TraceAction& action, Now now);

  Store& store_;
  const Limit limit_;
  const std::string key_;
  const Shortcut shortcut_;
  bool hears_time_first_ = false;
  std::map<int, Taken> taken_;
  std::optional<Error> error_;
  WallTime decided_at_{};
};

// Every step of the trace at its own time. What went wrong first.
std::optional<std::string> Replay(const Trace& trace, StoreSubject& subject);

}  // namespace weir::conformance
