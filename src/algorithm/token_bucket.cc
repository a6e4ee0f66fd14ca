#include "algorithm/token_bucket.h"

namespace weir {
namespace {

// What a charge is still worth: a bucket drains its charges in the order in which they came, so
// of one that ends at `receipt` no more than the time until then is left.
std::int64_t LeftOf(Ticks receipt, Ticks now) noexcept {
  return std::max<std::int64_t>(0, (receipt - now).count());
}

std::int64_t LevelAfter(const Limit& limit, std::int64_t level, BucketState state,
                        const StepRequest& request, Ticks now) noexcept {
  const std::int64_t most_debt = 2 * limit.burst_tolerance();
  const auto indebted = [&](std::int64_t cost) {
    return std::max(level, std::min(most_debt, level + TimeFor(limit, cost, most_debt)));
  };
  switch (request.verb) {
    case Verb::kRefund:
      return level - TimeFor(limit, request.cost, level);
    case Verb::kPenalize:
      return indebted(request.cost);
    case Verb::kSettle: {
      if (request.cost >= request.reserved) return indebted(request.cost - request.reserved);
      const std::int64_t unused =
          TimeFor(limit, request.reserved - request.cost, LeftOf(request.receipt, now));
      return std::max<std::int64_t>(0, level - unused);
    }
    case Verb::kUnbook:
      if (state.theoretical_arrival != request.receipt) return level;
      return level - TimeFor(limit, request.reserved, level);
    default:  // kReset
      return 0;
  }
}

}  // namespace

Step<BucketState> ManageBucket(const Limit& limit, BucketState state, const StepRequest& request,
                               Ticks now, std::int64_t room) noexcept {
  const std::int64_t level = TimeToFull(limit, state, now);
  const BucketVerdict verdict{Reason::kOk, LevelAfter(limit, level, state, request, now), 0};
  Step<BucketState> step;
  if (verdict.level == 0 && (level > 0 || request.verb == Verb::kReset)) {
    step.next = {};  // Fresh by every clock, as a new key is.
  } else {
    const Ticks arrival = now + Ticks(verdict.level);
    step.next.theoretical_arrival =
        verdict.level == level ? std::min(state.theoretical_arrival, arrival) : arrival;
  }
  step.decision = DescribeBucket(limit, /*rule=*/{}, request, verdict, room);
  return step;
}

Step<BucketState> StepOf(const Limit& limit, BucketState state, const StepRequest& request,
                         Ticks now, const BucketVerdict& verdict, std::int64_t room) noexcept {
  Step<BucketState> step;
  step.next = StateAfter(verdict, state, request, now);
  step.decision = DescribeBucket(limit, /*rule=*/{}, request, verdict, room);
  if (verdict.reason == Reason::kOk && Takes(request)) {
    step.receipt = step.next.theoretical_arrival;
    const std::int64_t taken = verdict.level - TimeToFull(limit, state, now);
    step.charged = limit.spec().overdraft ? UnitsIn(limit, taken) : request.cost;
  }
  return step;
}

Step<BucketState> StepTokenBucket(const Limit& limit, BucketState state, const StepRequest& request,
                                  Ticks now) noexcept {
  const std::int64_t room = limit.burst_tolerance();
  if (request.verb != Verb::kCheck && request.verb != Verb::kPeek) {
    return ManageBucket(limit, state, request, now, room);
  }
  return StepOf(limit, state, request, now, JudgeTokenBucket(limit, state, request, now), room);
}

BucketState CarryBucket(const Limit& from, const Limit& to, BucketState state, Ticks now) noexcept {
  const std::int64_t level = TimeToFull(from, state, now);
  // A queue that is full serves one beside those it holds.
  const std::int64_t served = to.spec().queue ? to.emission_interval() : 0;
  return {.theoretical_arrival = now + Ticks(std::min(level, to.burst_tolerance() + served))};
}

}  // namespace weir
