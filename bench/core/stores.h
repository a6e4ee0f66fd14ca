// What the measured stores have in common, for code that works on any of them.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include <weir/limiter.h>

#include "boost_store.h"
#include "harness/limits.h"
#include "harness/require.h"

namespace weir::bench {

inline constexpr std::size_t kMemoryCap = std::size_t{8} << 30;

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
