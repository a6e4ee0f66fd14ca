#include "algorithm/token_bucket.h"

namespace weir {
namespace {

// What a charge is still worth: a bucket drains its charges in the order in which they came, so
// of one that ends at `receipt` no more than the time until then is left.
std::int64_t LeftOf(Ticks receipt, Ticks now) noexcept {
  return std::max<std::int64_t>(0, (receipt - now).count());
}

std::int64_t LevelAfter(const Limit& limit, std::int64_t level, BucketState state,
                        const Request& request, Ticks now) noexcept {
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

Step<BucketState> ManageBucket(const Limit& limit, BucketState state, const Request& request,
                               Ticks now) noexcept {
  const std::int64_t level = TimeToFull(limit, state, now);
  const std::int64_t next_level = LevelAfter(limit, level, state, request, now);
  Step<BucketState> step;
  step.next.theoretical_arrival = now + Ticks(next_level);
  step.decision.allowed = true;
  step.decision.reason = Reason::kOk;
  step.decision.limit = limit.capacity();
  step.decision.cost = request.cost;
  step.decision.remaining = UnitsIn(limit, limit.burst_tolerance() - next_level);
  step.decision.reset_after = ToDuration(Ticks(next_level));
  return step;
}

BucketState CarryBucket(const Limit& from, const Limit& to, BucketState state, Ticks now) noexcept {
  const std::int64_t level = TimeToFull(from, state, now);
  return {.theoretical_arrival = now + Ticks(std::min(level, to.burst_tolerance()))};
}

}  // namespace weir
