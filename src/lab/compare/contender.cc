#include "lab/compare/contender.h"

#include <utility>

namespace weir::lab {

Contenders MakeContenders(const Limit& limit) {
  const std::int64_t count = limit.spec().count;
  const Duration period = limit.spec().period;
  const std::pair<const char*, LimitSpec> entries[] = {
      {"token_bucket", {.burst = limit.capacity()}},
      {"leaky_bucket queue",
       {.algorithm = Algorithm::kLeakyBucket, .burst = limit.capacity(), .queue = true}},
      {"fixed_window", {.algorithm = Algorithm::kFixedWindow}},
      {"sliding_window", {.algorithm = Algorithm::kSlidingWindow}},
      {"sliding_window strict", {.algorithm = Algorithm::kSlidingWindow, .strict = true}},
      {"sliding_log", {.algorithm = Algorithm::kSlidingLog}},
  };
  Contenders contenders;
  for (auto [name, spec] : entries) {
    spec.count = count;
    spec.period = period;
    Result<Limit> made = Limit::Make(spec);
    if (made) {
      contenders.all.push_back({name, *std::move(made)});
    } else {
      contenders.left_out.push_back({name, made.error().message});
    }
  }
  contenders.left_out.push_back(
      {"concurrency", "it limits how many are under way at once, not how many come in a time"});
  return contenders;
}

bool IsBucket(const Limit& limit) noexcept {
  return limit.algorithm() == Algorithm::kTokenBucket ||
         limit.algorithm() == Algorithm::kLeakyBucket;
}

Promise PromiseOf(const Limit& limit, std::int64_t largest_cost) {
  const std::int64_t count = limit.spec().count;
  if (IsBucket(limit)) {
    if (!limit.spec().queue) {
      return {.in_window = limit.capacity() + count,
              .burst = limit.capacity(),
              .in_words = "burst + limit"};
    }
    return {.in_window = largest_cost + count,
            .burst = largest_cost,
            .in_words = largest_cost == 1 ? "1 + limit" : "largest cost + limit"};
  }
  const bool keeps = limit.spec().strict || limit.algorithm() == Algorithm::kSlidingLog;
  if (keeps) return {.in_window = count, .in_words = "limit"};
  return {.in_window = 2 * count, .in_words = "2 x limit"};
}

}  // namespace weir::lab
