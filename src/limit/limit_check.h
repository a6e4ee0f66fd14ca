// Whether a LimitSpec makes sense.
#pragma once

#include <optional>
#include <string>

#include <weir/limit.h>

namespace weir {

// The first thing wrong with a limit: the field, and what is allowed. Does not look at the time
// zone, nor at what only a counted limit has if it is none.
std::optional<std::string> FindProblem(const LimitSpec& spec);

// What burst 0 stands for.
inline std::int64_t BurstOf(const LimitSpec& spec) noexcept {
  return spec.burst == 0 ? spec.count : spec.burst;
}

inline bool IsBucket(Algorithm algorithm) noexcept {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kLeakyBucket;
}

// Whether it gives out places, which come back when they are released.
inline bool IsPlaces(const Limit& limit) noexcept {
  return limit.kind() == LimitKind::kCounted && limit.algorithm() == Algorithm::kConcurrency;
}

}  // namespace weir
