#include "net/decimal.h"

#include <array>
#include <cstring>

namespace weir {
namespace {

// "00" to "99": a division by 100 gives two digits at once.
using Pair = std::array<char, 2>;
constexpr std::array<Pair, 100> kPairs = [] {
  std::array<Pair, 100> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return pairs;
}();

// Zeros in front included.
inline char* PutTwoDigits(char* at, std::uint32_t number) noexcept {
  std::memcpy(at, kPairs[number].data(), 2);
  return at + 2;
}

inline char* PutFourDigits(char* at, std::uint32_t number) noexcept {
  return PutTwoDigits(PutTwoDigits(at, number / 100), number % 100);
}

// Without zeros in front.
inline char* PutUpToFourDigits(char* at, std::uint32_t number) noexcept {
  if (number >= 1000) return PutFourDigits(at, number);
  if (number >= 100) {
    *at++ = static_cast<char>('0' + number / 100);
    return PutTwoDigits(at, number % 100);
  }
  if (number >= 10) return PutTwoDigits(at, number);
  *at = static_cast<char>('0' + number);
  return at + 1;
}

inline char* PutUpToEightDigits(char* at, std::uint32_t number) noexcept {
  if (number < 10'000) return PutUpToFourDigits(at, number);
  return PutFourDigits(PutUpToFourDigits(at, number / 10'000), number % 10'000);
}

char* PutUnsigned(char* at, std::uint64_t number) noexcept {
  constexpr std::uint64_t kEightDigits = 100'000'000;
  if (number < kEightDigits) return PutUpToEightDigits(at, static_cast<std::uint32_t>(number));
  at = PutUnsigned(at, number / kEightDigits);
  const auto rest = static_cast<std::uint32_t>(number % kEightDigits);
  return PutFourDigits(PutFourDigits(at, rest / 10'000), rest % 10'000);
}

}  // namespace

char* PutLongDecimal(char* at, std::int64_t number) noexcept {
  auto magnitude = static_cast<std::uint64_t>(number);
  if (number < 0) {
    *at++ = '-';
    magnitude = 0 - magnitude;
  }
  return PutUnsigned(at, magnitude);
}

}  // namespace weir
