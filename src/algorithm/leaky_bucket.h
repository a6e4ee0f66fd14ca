// Leaky bucket as a queue: requests leave one emission interval apart, and `delay` tells each how
// long to wait for its turn. TAT is the time at which the queue will have run empty.
//
//   admits iff   max(TAT, now) + cost * T - now <= (capacity + 1) * T
//   delay        max(0, TAT - now)
//   promise      what leaves in any interval of length t is at most the largest cost + rate * t
//   fresh        TAT <= now
//
// The one above capacity is the request being served. As a meter (without `queue`) a leaky bucket
// is a token bucket.
#pragma once

#include "algorithm/token_bucket.h"

namespace weir {

// kCheck and kPeek. A caller who names a wait is served only if its delay is no longer than that.
BucketVerdict JudgeLeakyQueue(const Limit& limit, BucketState state, const StepRequest& request,
                              Ticks now) noexcept;

// What a queue holds when empty, in ticks.
inline std::int64_t QueueRoom(const Limit& limit) noexcept {
  return limit.burst_tolerance() + limit.emission_interval();
}

// All verbs.
Step<BucketState> StepLeakyQueue(const Limit& limit, BucketState state, const StepRequest& request,
                                 Ticks now) noexcept;

}  // namespace weir
