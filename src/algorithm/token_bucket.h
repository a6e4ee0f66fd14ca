// Token bucket, kept as one instant: the time at which the bucket will be full again
// (theoretical arrival, TAT). T is the emission interval, the time one unit takes to come back;
// the burst tolerance is burst * T.
//
//   admits iff   max(TAT, now) + cost * T - now <= burst * T
//   promise      at most burst + rate * t in any interval of length t
//   fresh        TAT <= now
//
// The leaky bucket as a meter is the same bucket seen from the other side, and uses this step.
//
// A TAT further ahead than debt and the longest wait can account for is clock damage and is pulled
// back, so a clock that steps back locks nobody out for longer than that, and hands out nothing.
#pragma once

#include <algorithm>

#include "algorithm/step.h"

namespace weir {

struct BucketState {
  Ticks theoretical_arrival{0};  // Fresh at or before now.
};

// How long until the bucket is full: 0 when fresh, above the tolerance when in debt.
inline std::int64_t TimeToFull(const Limit& limit, BucketState state, Ticks now) noexcept {
  const std::int64_t ahead = (state.theoretical_arrival - now).count();
  const std::int64_t furthest = 2 * limit.burst_tolerance() + limit.max_wait();
  return std::clamp<std::int64_t>(ahead, 0, furthest);
}

// cost * T, held at `most`.
inline std::int64_t TimeFor(const Limit& limit, std::int64_t cost, std::int64_t most) noexcept {
  if (cost > most / limit.emission_interval()) return most;
  return cost * limit.emission_interval();
}

// Whole units that `time` is worth.
inline std::int64_t UnitsIn(const Limit& limit, std::int64_t time) noexcept {
  return time > 0 ? time / limit.emission_interval() : 0;
}

// kCheck and kPeek.
inline Step<BucketState> CheckTokenBucket(const Limit& limit, BucketState state,
                                          const Request& request, Ticks now) noexcept {
  const std::int64_t tolerance = limit.burst_tolerance();
  const std::int64_t level = TimeToFull(limit, state, now);
  const bool overdraft = limit.spec().overdraft;
  const std::int64_t wanted = overdraft ? 1 : AskedCost(request);

  Step<BucketState> step;
  // As it was, but for clock damage: that is mended even by a denial, or it would never drain.
  step.next.theoretical_arrival = std::min(state.theoretical_arrival, now + Ticks(level));
  Decision& decision = step.decision;
  decision.limit = limit.capacity();
  decision.cost = request.cost;
  if (wanted > limit.capacity()) [[unlikely]] {
    decision.reason = Reason::kNeverFits;
    decision.retry_after = kNever;
    decision.remaining = UnitsIn(limit, tolerance - level);
    decision.reset_after = ToDuration(Ticks(level));
    return step;
  }

  const std::int64_t excess = level + wanted * limit.emission_interval() - tolerance;
  if (excess > request.wait.count()) {
    decision.reason = Reason::kLimited;
    decision.retry_after = ToDuration(Ticks(excess - request.wait.count()));
    decision.remaining = UnitsIn(limit, tolerance - level);
    decision.reset_after = ToDuration(Ticks(level));
    return step;
  }

  std::int64_t next_level = level;
  if (Takes(request)) {
    const std::int64_t most_debt = 2 * tolerance + request.wait.count();
    next_level =
        overdraft
            ? std::max(level, std::min(most_debt, level + TimeFor(limit, request.cost, most_debt)))
            : level + wanted * limit.emission_interval();
    step.next.theoretical_arrival = now + Ticks(next_level);
    step.receipt = step.next.theoretical_arrival;
    step.charged = overdraft ? UnitsIn(limit, next_level - level) : request.cost;
  }
  decision.allowed = true;
  decision.reason = Reason::kOk;
  decision.remaining = UnitsIn(limit, tolerance - next_level);
  decision.reset_after = ToDuration(Ticks(next_level));
  if (excess > 0) [[unlikely]]
    decision.delay = ToDuration(Ticks(excess));
  return step;
}

// All other verbs; the same for both kinds of bucket.
Step<BucketState> ManageBucket(const Limit& limit, BucketState state, const Request& request,
                               Ticks now) noexcept;

inline Step<BucketState> StepTokenBucket(const Limit& limit, BucketState state,
                                         const Request& request, Ticks now) noexcept {
  if (request.verb == Verb::kCheck || request.verb == Verb::kPeek) [[likely]] {
    return CheckTokenBucket(limit, state, request, now);
  }
  return ManageBucket(limit, state, request, now);
}

// The state under `to` of a key that `from` counted until now: its time to full, clamped to the
// new capacity. Where the period stays, that is what was used, in proportion.
BucketState CarryBucket(const Limit& from, const Limit& to, BucketState state, Ticks now) noexcept;

}  // namespace weir
