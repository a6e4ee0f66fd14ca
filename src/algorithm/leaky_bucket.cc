#include "algorithm/leaky_bucket.h"

namespace weir {

BucketVerdict JudgeLeakyQueue(const Limit& limit, BucketState state, const StepRequest& request,
                              Ticks now) noexcept {
  const std::int64_t level = TimeToFull(limit, state, now);
  const std::int64_t wanted = AskedCost(request);
  if (wanted > limit.capacity() + 1) return {Reason::kNeverFits, level, 0};
  const std::int64_t level_after = level + wanted * limit.emission_interval();
  const std::int64_t too_full = level_after - QueueRoom(limit);
  const std::int64_t too_long = request.wait > Ticks(0) ? level - request.wait.count() : 0;
  const std::int64_t early = std::max(too_full, too_long);
  if (early > 0) return {Reason::kLimited, level, early};
  return {Reason::kOk, Takes(request) ? level_after : level, level};
}

Step<BucketState> StepLeakyQueue(const Limit& limit, BucketState state, const StepRequest& request,
                                 Ticks now) noexcept {
  if (request.verb != Verb::kCheck && request.verb != Verb::kPeek) {
    return ManageBucket(limit, state, request, now, QueueRoom(limit));
  }
  const BucketVerdict verdict = JudgeLeakyQueue(limit, state, request, now);
  return StepOf(limit, state, request, now, verdict, QueueRoom(limit));
}

}  // namespace weir
