// Random numbers that are the same with every compiler and library, so that a seed printed by one
// build can be replayed by another.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>

namespace weir::conformance {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // splitmix64.
  std::uint64_t Next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Both ends included.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + Next() % (span + 1));
  }

  // Every order of magnitude is as likely as the next. 1 <= low <= high.
  std::int64_t AnySize(std::int64_t low, std::int64_t high) {
    const int least = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(low)));
    const int most = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(high)));
    const int bits = static_cast<int>(Between(least, most));
    const std::int64_t from = std::int64_t{1} << (bits - 1);
    return std::min(high, std::max(low, Between(from, from + (from - 1))));
  }

  bool Chance(int percent) { return Between(1, 100) <= percent; }

  template <typename T>
  T OneOf(std::initializer_list<T> options) {
    return options.begin()[Between(0, static_cast<std::int64_t>(options.size()) - 1)];
  }

  // A number below weights.size(), as often as its weight says.
  int Weighted(std::initializer_list<int> weights) {
    std::int64_t sum = 0;
    for (const int weight : weights) sum += weight;
    std::int64_t draw = Between(1, sum);
    int index = 0;
    for (const int weight : weights) {
      draw -= weight;
      if (draw <= 0) break;
      ++index;
    }
    return index;
  }

 private:
  std::uint64_t state_;
};

// The seed of one trace out of many, and from one seed.
inline std::uint64_t Derive(std::uint64_t seed, std::uint64_t index) {
  return Random(seed ^ (index * 0xd1342543de82ef95)).Next();
}

}  // namespace weir::conformance
