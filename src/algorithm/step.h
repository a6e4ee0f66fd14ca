// What every algorithm has in common: the question, and the form of the answer.
//
// A step is pure: (limit, state, request, instant) -> (decision, next state). It reads no clock,
// takes no lock and allocates nothing; where state lives and who may touch it is the store's
// business. A denied request leaves the state as it was.
#pragma once

#include <cstdint>

#include <weir/decision.h>
#include <weir/limit.h>

#include "base/ticks.h"

namespace weir {

enum class Verb : std::uint8_t {
  kCheck,     // Take `cost` if it fits. Cost 0 asks whether 1 would, and takes nothing.
  kPeek,      // Would `cost` fit? Takes nothing.
  kRefund,    // Give `cost` back, oldest first, never past fresh.
  kPenalize,  // Take `cost` whether it fits or not.
  kReset,     // Make the key fresh.
  kSettle,    // What was charged as `reserved` (see `receipt`) turned out to be `cost`.
  kUnbook,    // Give a booked wait back, but only if nobody has booked behind it.
};

struct StepRequest {
  Verb verb = Verb::kCheck;
  std::int64_t cost = 1;  // At least 0.
  Ticks wait{0};          // kCheck, kPeek: how long the caller is ready to wait.

  // kSettle, kUnbook: what the step that charged said.
  std::int64_t reserved = 0;
  Ticks receipt{0};
};

template <typename State>
struct Step {
  Decision decision;
  State next;
  std::int64_t charged = 0;  // What was really taken: less than the cost where debt was capped.
  Ticks receipt{0};          // Where it was taken from, for kSettle and kUnbook.
};

// What a request for nothing asks about, and what it takes.
inline std::int64_t AskedCost(const StepRequest& request) noexcept {
  return request.cost == 0 ? 1 : request.cost;
}
inline bool Takes(const StepRequest& request) noexcept {
  return request.verb == Verb::kCheck && request.cost != 0;
}

// Whether a request that is allowed may leave the state other than it was.
inline bool Changes(const StepRequest& request) noexcept {
  return request.verb != Verb::kPeek && (request.verb != Verb::kCheck || request.cost != 0);
}

// Whether a request that is allowed may leave more than there was. Any other leaves a fresh key
// fresh.
inline bool Adds(const StepRequest& request) noexcept {
  const bool settles = request.verb == Verb::kSettle || request.verb == Verb::kUnbook;
  if (settles) return request.cost > request.reserved;
  return Takes(request) || (request.verb == Verb::kPenalize && request.cost != 0);
}

// The most that debt may add up to, in units: see LimitSpec::overdraft.
inline std::int64_t MostCounted(const Limit& limit) noexcept { return 2 * limit.capacity(); }

// count + cost, held at `most`; never lowers a count that is above it already.
std::int64_t AddUpTo(std::int64_t count, std::int64_t cost, std::int64_t most) noexcept;

// count after a live change of the limit: in proportion, rounded up.
std::int64_t InProportion(std::int64_t count, const Limit& from, const Limit& to) noexcept;

// --- For algorithms that count units: the parts of a decision they all fill in alike. ---

// How many units are used, and whether `request` may have its own: the same for every window.
struct CountedVerdict {
  bool allowed;
  bool never_fits;
};
CountedVerdict JudgeCount(const Limit& limit, std::int64_t used,
                          const StepRequest& request) noexcept;

// A decision but for its times.
Decision DescribeCount(const Limit& limit, std::int64_t used, const StepRequest& request,
                       CountedVerdict verdict) noexcept;

}  // namespace weir
