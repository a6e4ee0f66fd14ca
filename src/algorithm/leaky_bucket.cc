#include "algorithm/leaky_bucket.h"

namespace weir {

Step<BucketState> StepLeakyQueue(const Limit& limit, BucketState state, const Request& request,
                                 Ticks now) noexcept {
  const std::int64_t interval = limit.emission_interval();
  const std::int64_t room = limit.burst_tolerance() + interval;
  const auto remaining_at = [&](std::int64_t level) {
    return std::min(limit.capacity(), UnitsIn(limit, room - level));
  };

  if (request.verb != Verb::kCheck && request.verb != Verb::kPeek) {
    Step<BucketState> step = ManageBucket(limit, state, request, now);
    step.decision.remaining = remaining_at((step.next.theoretical_arrival - now).count());
    return step;
  }

  const std::int64_t level = TimeToFull(limit, state, now);
  const std::int64_t wanted = AskedCost(request);
  Step<BucketState> step;
  // As it was, but for clock damage: that is mended even by a denial, or it would never drain.
  step.next.theoretical_arrival = std::min(state.theoretical_arrival, now + Ticks(level));
  Decision& decision = step.decision;
  decision.limit = limit.capacity();
  decision.cost = request.cost;
  decision.remaining = remaining_at(level);
  decision.reset_after = ToDuration(Ticks(level));
  if (wanted > limit.capacity() + 1) {
    decision.reason = Reason::kNeverFits;
    decision.retry_after = kNever;
    return step;
  }
  const std::int64_t too_full = level + wanted * interval - room;
  const std::int64_t too_long = request.wait > Ticks(0) ? level - request.wait.count() : 0;
  if (const std::int64_t early = std::max(too_full, too_long); early > 0) {
    decision.reason = Reason::kLimited;
    decision.retry_after = ToDuration(Ticks(early));
    return step;
  }

  decision.allowed = true;
  decision.reason = Reason::kOk;
  decision.delay = ToDuration(Ticks(level));
  if (Takes(request)) {
    const std::int64_t next_level = level + wanted * interval;
    step.next.theoretical_arrival = now + Ticks(next_level);
    step.receipt = step.next.theoretical_arrival;
    step.charged = request.cost;
    decision.remaining = remaining_at(next_level);
    decision.reset_after = ToDuration(Ticks(next_level));
  }
  return step;
}

}  // namespace weir
