// Chance that is the same with every compiler and library, so that a seed printed by one build can
// be replayed by another.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <weir/time.h>

#include "base/mix.h"

namespace weir::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t Next() noexcept { return Mix(state_ += 0x9e3779b97f4a7c15); }

  // Both ends included.
  std::int64_t Between(std::int64_t low, std::int64_t high) noexcept {
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + Next() % (span + 1));
  }
  Duration Between(Duration low, Duration high) noexcept {
    return Duration(Between(low.count(), high.count()));
  }
  bool Chance(int percent) noexcept { return Between(1, 100) <= percent; }

  template <typename T>
  T OneOf(std::initializer_list<T> options) noexcept {
    return options.begin()[Index(options.size())];
  }
  // Below `count`.
  std::size_t Index(std::size_t count) noexcept {
    return static_cast<std::size_t>(Next() % static_cast<std::uint64_t>(count));
  }
  // A source of its own, so that what it is used for can change without changing the rest.
  Random Fork() noexcept { return Random(Next()); }

 private:
  std::uint64_t state_;
};

}  // namespace weir::sim
