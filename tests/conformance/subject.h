// What a conformance trace is made of, and what can be driven by one: the oracle, the pure steps,
// every store. Knows only the public types, so that nothing under test leaks into the oracle.
#pragma once

#include <cstdint>

#include <weir/decision.h>
#include <weir/time.h>

namespace weir::conformance {

enum class TraceVerb : std::uint8_t {
  kCheck,
  kPeek,
  kRefund,    // Without a handle: oldest first.
  kPenalize,  // Charged whether it fits or not.
  kReset,
  kSettle,  // The charge of step `of` turned out to be `cost`: commit, cancel (0) or release (0).
  kUnbook,  // The caller of step `of` stopped waiting. `cost` is 0.
};

// What a kCheck keeps of its charge, if it is admitted.
enum class Keeps : std::uint8_t {
  kNothing,
  kReceipt,      // A later kUnbook may name it.
  kReservation,  // A later kSettle may. Of leases any that keeps something can be settled.
};

struct TraceAction {
  int number = 0;  // Its place in the trace: how a later kSettle or kUnbook names it.
  TraceVerb verb = TraceVerb::kCheck;
  std::int64_t cost = 1;
  Duration wait{0};
  Keeps keeps = Keeps::kNothing;  // kCheck.
  int of = -1;                    // kSettle, kUnbook: the number of an earlier, admitted kCheck.
};

// One limit and one key that starts out fresh.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Decision Do(const TraceAction& action, Now now) = 0;
};

}  // namespace weir::conformance
