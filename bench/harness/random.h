// Random numbers that are the same in every run and on every machine.
#pragma once

#include <cstdint>

namespace weir::bench {

// The finaliser of splitmix64: no two inputs give the same output.
inline std::uint64_t Scramble(std::uint64_t word) noexcept {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t Word() noexcept { return Scramble(state_ += 0x9e3779b97f4a7c15); }
  // From [0, 1).
  double Fraction() noexcept { return static_cast<double>(Word() >> 11) * 0x1p-53; }
  std::uint64_t Below(std::uint64_t end) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Wide>(Word()) * end >> 64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace weir::bench
