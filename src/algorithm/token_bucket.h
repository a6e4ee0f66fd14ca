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
// A TAT further ahead than debt and the longest wait can account for, under any limit that counts
// the key, is clock damage and is pulled back. So a clock that steps back locks nobody out for
// longer than that, and hands out nothing; and a small limit takes back nothing of a large one.
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
  if (ahead > limit.furthest()) [[unlikely]]
    return limit.furthest();
  return std::max<std::int64_t>(0, ahead);
}

// cost * T, held at `most`.
inline std::int64_t TimeFor(const Limit& limit, std::int64_t cost, std::int64_t most) noexcept {
  if (cost > most / limit.emission_interval()) return most;
  return cost * limit.emission_interval();
}

// Whole units that `time` is worth. Multiplies by the reciprocal, which falls short by one at most
// for any time below 2^64, and makes up for that.
inline std::int64_t UnitsIn(const Limit& limit, std::int64_t time) noexcept {
  if (time <= 0) return 0;
  __extension__ using Wide = unsigned __int128;
  const Wide product =
      static_cast<Wide>(static_cast<std::uint64_t>(time)) * limit.emission_reciprocal();
  const auto units = static_cast<std::int64_t>(product >> 64);
  const bool short_by_one = time - units * limit.emission_interval() >= limit.emission_interval();
  return units + (short_by_one ? 1 : 0);
}

// What a bucket says to kCheck or kPeek, in ticks: all that a store needs to go on. Kept apart from
// the Decision, which is five times as large, because a store may have to ask more than once.
struct BucketVerdict {
  Reason reason;       // kOk, kLimited or kNeverFits.
  std::int64_t level;  // Time to full afterwards.
  std::int64_t wait;   // How long until it goes ahead (kOk) or would pass (kLimited).
};

inline BucketVerdict JudgeTokenBucket(const Limit& limit, BucketState state,
                                      const StepRequest& request, Ticks now) noexcept {
  const std::int64_t tolerance = limit.burst_tolerance();
  const std::int64_t level = TimeToFull(limit, state, now);
  const bool overdraft = limit.spec().overdraft;
  const std::int64_t wanted = overdraft ? 1 : AskedCost(request);
  if (wanted > limit.capacity()) [[unlikely]]
    return {Reason::kNeverFits, level, 0};

  const std::int64_t excess = level + wanted * limit.emission_interval() - tolerance;
  const std::int64_t early = excess - request.wait.count();
  if (early > 0) return {Reason::kLimited, level, early};
  const std::int64_t delay = std::max<std::int64_t>(0, excess);
  if (!Takes(request)) return {Reason::kOk, level, delay};
  if (!overdraft) [[likely]] {
    return {Reason::kOk, level + wanted * limit.emission_interval(), delay};
  }
  const std::int64_t most_debt = 2 * tolerance + request.wait.count();
  const std::int64_t indebted = level + TimeFor(limit, request.cost, most_debt);
  return {Reason::kOk, std::max(level, std::min(most_debt, indebted)), delay};
}

// The state after a verdict. A denial and a mere question leave it alone but for clock damage: that
// they mend, or a key that is asked for all the time would never begin to drain.
inline BucketState StateAfter(const BucketVerdict& verdict, BucketState state,
                              const StepRequest& request, Ticks now) noexcept {
  const Ticks arrival = now + Ticks(verdict.level);
  if (verdict.reason == Reason::kOk && Takes(request)) return {.theoretical_arrival = arrival};
  return {.theoretical_arrival = std::min(state.theoretical_arrival, arrival)};
}

// The decision on a bucket that holds `room` when fresh: the tolerance, and one more for a queue.
inline Decision DescribeBucket(const Limit& limit, std::string_view rule,
                               const StepRequest& request, const BucketVerdict& verdict,
                               std::int64_t room) noexcept {
  const bool allowed = verdict.reason == Reason::kOk;
  const Duration wait =
      verdict.reason == Reason::kNeverFits ? kNever : ToDuration(Ticks(verdict.wait));
  return {.allowed = allowed,
          .reason = verdict.reason,
          .source = Source::kMemory,
          .rule = rule,
          .limit = limit.capacity(),
          .remaining = std::min(limit.capacity(), UnitsIn(limit, room - verdict.level)),
          .cost = request.cost,
          .retry_after = allowed ? Duration(0) : wait,
          .reset_after = ToDuration(Ticks(verdict.level)),
          .delay = allowed ? wait : Duration(0),
          .reservation = ReservationId::kNone};
}

// One unit of a plain bucket (Limit::is_plain_bucket) for a request that does not wait: the above
// with everything left out that cannot matter then. Most requests are like that, and the less there
// is to do, the sooner the processor gets to the memory of the next.
struct OneUnit {
  std::int64_t level;   // Time to full afterwards.
  std::int64_t excess;  // How far one unit more is above the tolerance; above 0 it is denied.

  bool allowed() const noexcept { return excess <= 0; }
};

inline OneUnit JudgeOneUnit(const Limit& limit, BucketState state, Ticks now) noexcept {
  const std::int64_t level = TimeToFull(limit, state, now);
  const std::int64_t after = level + limit.emission_interval();
  const std::int64_t excess = after - limit.burst_tolerance();
  return {.level = excess > 0 ? level : after, .excess = excess};
}

inline Decision DescribeOneUnit(const Limit& limit, std::string_view rule, OneUnit unit) noexcept {
  Decision decision{.allowed = unit.allowed(),
                    .reason = unit.allowed() ? Reason::kOk : Reason::kLimited,
                    .source = Source::kMemory,
                    .rule = rule,
                    .limit = limit.capacity(),
                    .remaining = 0,
                    .cost = 1,
                    .retry_after = Duration(0),
                    .reset_after = ToDuration(Ticks(unit.level)),
                    .delay = Duration(0),
                    .reservation = ReservationId::kNone};
  if (unit.allowed()) [[likely]] {
    decision.remaining = UnitsIn(limit, -unit.excess);
  } else {
    decision.retry_after = ToDuration(Ticks(unit.excess));
  }
  return decision;
}

// kRefund, kPenalize, kReset, kSettle and kUnbook; the same for both kinds of bucket but for the
// room it describes.
Step<BucketState> ManageBucket(const Limit& limit, BucketState state, const StepRequest& request,
                               Ticks now, std::int64_t room) noexcept;

// All verbs.
Step<BucketState> StepTokenBucket(const Limit& limit, BucketState state, const StepRequest& request,
                                  Ticks now) noexcept;

// The step that goes with a verdict, for both kinds of bucket.
Step<BucketState> StepOf(const Limit& limit, BucketState state, const StepRequest& request,
                         Ticks now, const BucketVerdict& verdict, std::int64_t room) noexcept;

// The state under `to` of a key that `from` counted until now: its time to full, clamped to the
// new capacity. Where the period stays, that is what was used, in proportion.
BucketState CarryBucket(const Limit& from, const Limit& to, BucketState state, Ticks now) noexcept;

}  // namespace weir
