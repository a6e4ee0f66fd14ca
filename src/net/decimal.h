// Numbers in decimal. A reply has some twenty of them, so they are written where they are to stand,
// and several digits at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

// Of the longest: -9223372036854775808.
inline constexpr std::size_t kMostDecimalBytes = 20;

char* PutLongDecimal(char* at, std::int64_t number) noexcept;

// Writes the number and returns its end. One digit, which most numbers have, is written without
// further ado.
inline char* PutDecimal(char* at, std::int64_t number) noexcept {
  if (number < 0 || number > 9) return PutLongDecimal(at, number);
  *at = static_cast<char>('0' + number);
  return at + 1;
}

}  // namespace weir
