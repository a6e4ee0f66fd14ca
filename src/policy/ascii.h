// Letters and digits of ASCII, whatever the locale says.
#pragma once

namespace weir {

constexpr bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool IsLetter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// 0 to 15, or -1 if `c` is no hexadecimal digit.
constexpr int HexValue(char c) noexcept {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace weir
