// Numbers in decimal. A reply has some twenty of them, so they are written inline, where they are
// to stand and two digits at a time.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir {

// Of the longest: -9223372036854775808.
inline constexpr std::size_t kMostDecimalSize = 20;

namespace decimal {

constexpr std::array<char, 200> DigitPairs() {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}
inline constexpr std::array<char, 200> kDigitPairs = DigitPairs();

constexpr std::array<std::uint64_t, 20> PowersOfTen() {
  std::array<std::uint64_t, 20> powers{1};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}
inline constexpr std::array<std::uint64_t, 20> kPowersOfTen = PowersOfTen();

// How many digits a number has that is not 0.
constexpr std::size_t DigitsOf(std::uint64_t number) noexcept {
  // 1233 / 4096 is a little more than log10(2), for as many bits as there are here.
  const std::size_t guess = static_cast<std::size_t>(std::bit_width(number)) * 1233 >> 12;
  return guess + (number >= kPowersOfTen[guess] ? 1 : 0);
}

}  // namespace decimal

// Returns the end of what was written.
inline char* WriteDecimal(char* out, std::int64_t number) noexcept {
  auto rest = static_cast<std::uint64_t>(number);
  if (rest < 10) {
    *out = static_cast<char>('0' + rest);
    return out + 1;
  }
  if (number < 0) {
    *out++ = '-';
    rest = ~rest + 1;
  }
  char* const end = out + decimal::DigitsOf(rest);
  char* p = end;
  for (; rest >= 10; rest /= 100) {
    p -= 2;
    std::memcpy(p, &decimal::kDigitPairs[rest % 100 * 2], 2);
  }
  // A digit is left if there is an odd number of them.
  if (p != out) *out = static_cast<char>('0' + rest);
  return end;
}

}  // namespace weir
