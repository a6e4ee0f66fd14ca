// Spreads every bit of a word over the whole of it. Not linear in exclusive-or, so that a mixed
// word cannot be undone by combining it with words that were not mixed.
#pragma once

#include <cstdint>

namespace weir {

// The finisher of splitmix64. One to one.
constexpr std::uint64_t Mix(std::uint64_t word) noexcept {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

}  // namespace weir
