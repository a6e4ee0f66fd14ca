// What the measured stores have in common, for code that works on any of them.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include <weir/limiter.h>

#include "boost_store.h"
#include "require.h"

namespace weir::bench {

inline constexpr std::size_t kMemoryCap = std::size_t{8} << 30;

// Far more than any key is asked for, so that every check is allowed; and only one, so that every
// check after the first is denied. A key's first request costs so much that it does not come back
// while the benchmark runs: every key stays alive.
inline constexpr std::string_view kRoomyLimit = "10G/day";
inline constexpr std::int64_t kRoomyFirstCost = 1'000'000'000;
inline constexpr std::string_view kTightLimit = "1/day";
inline constexpr std::int64_t kTightFirstCost = 1;

inline Limit ParseLimit(std::string_view text) {
  Result<Limit> limit = Limit::Parse(text);
  Require(limit.has_value(), "the limit's text is right");
  return *std::move(limit);
}

// Makes room for `expected_keys` unless it is 0.
inline Limiter MakeWeir(const Limit& limit, std::size_t expected_keys,
                        std::size_t memory_cap = kMemoryCap) {
  Result<Limiter> limiter =
      Limiter::Make(limit, {.memory_cap = memory_cap, .expected_keys = expected_keys});
  Require(limiter.has_value(), "the limiter's options are right");
  return *std::move(limiter);
}

inline std::size_t EntriesOf(Limiter& limiter) { return limiter.Stats().entries; }
template <typename By>
std::size_t EntriesOf(BoostStore<By>& store) {
  return store.entries();
}

inline Decision PeekAt(Limiter& limiter, std::string_view key) {
  const Result<Decision> decision = limiter.Peek(key);
  Require(decision.has_value(), "a peek succeeds");
  return *decision;
}
template <typename By>
Decision PeekAt(BoostStore<By>& store, std::string_view key) {
  return store.Peek(key);
}

}  // namespace weir::bench
