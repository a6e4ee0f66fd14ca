// One line of a header, `name: value` CR LF, read as strictly as RFC 9112 allows: names are tokens
// with the colon right behind them, values hold no control character but the tab, and nothing but
// CR LF ends a line. Whoever is lenient here can be made to see other requests than a proxy sees.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace weir {

// Why a request cannot be read, and the status that says so. The connection cannot go on after it.
struct HttpFault {
  int status = 400;
  std::string_view message{};
};

namespace http_bytes {

constexpr std::array<bool, 256> TokenBytes() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
inline constexpr std::array<bool, 256> kToken = TokenBytes();
inline bool IsToken(char c) noexcept { return kToken[static_cast<unsigned char>(c)]; }

inline bool IsBlank(char c) noexcept { return c == ' ' || c == '\t'; }
inline bool IsControl(char c) noexcept {
  return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
}

// The first control character from `p` on, the tab being none; `end` if there is none. Eight bytes
// at a time: values are most of what a request is made of.
inline const char* FindControl(const char* p, const char* end) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  if constexpr (std::endian::native == std::endian::little) {
    while (end - p >= 8) {
      std::uint64_t bytes;
      std::memcpy(&bytes, p, 8);
      const std::uint64_t delete_at = bytes ^ (0x7f * kOnes);
      const std::uint64_t found =
          (((bytes - 0x20 * kOnes) & ~bytes) | ((delete_at - kOnes) & ~delete_at)) & kHighs;
      if (found == 0) {
        p += 8;
        continue;
      }
      // Only the lowest one is certain.
      p += std::countr_zero(found) / 8;
      if (*p != '\t') return p;
      ++p;
    }
  }
  while (p != end && (!IsControl(*p) || *p == '\t')) ++p;
  return p;
}

// `name` may have any case; `lower` holds lower-case letters and hyphens only.
inline bool IsSameName(std::string_view name, std::string_view lower) noexcept {
  if (name.size() != lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if ((name[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

}  // namespace http_bytes

struct HttpFieldLine {
  enum class Outcome : std::uint8_t { kField, kEnd, kIncomplete, kFault };

  Outcome outcome = Outcome::kIncomplete;
  std::string_view name{};
  std::string_view value{};    // Without blanks around it.
  const char* next = nullptr;  // Behind the line.
  std::string_view fault{};
};

// What is wrong with a line whose name does not go up to a colon, or has no character.
inline std::string_view NameFault(const char* line, const char* at) noexcept {
  if (http_bytes::IsBlank(*line)) return "a header line begins with a blank";
  if (*at == ':') return "a header has no name";
  if (http_bytes::IsBlank(*at)) return "a blank stands before the colon of a header";
  if (*at == '\n') return "a line ends without CR";
  return "a header's name has a character that it must not have";
}

// From the beginning of a line on. An empty line is the end.
inline HttpFieldLine ReadFieldLine(const char* p, const char* end) noexcept {
  using Outcome = HttpFieldLine::Outcome;
  const char* const line = p;
  while (p != end && http_bytes::IsToken(*p)) ++p;
  if (p == end) return {};
  if (*p != ':' || p == line) {
    if (*line != '\r') return {.outcome = Outcome::kFault, .fault = NameFault(line, p)};
    if (end - line < 2) return {};
    if (line[1] == '\n') return {.outcome = Outcome::kEnd, .next = line + 2};
    return {.outcome = Outcome::kFault, .fault = "a CR stands without its LF"};
  }
  const std::string_view name(line, static_cast<std::size_t>(p - line));
  ++p;
  while (p != end && http_bytes::IsBlank(*p)) ++p;
  const char* const value = p;
  p = http_bytes::FindControl(p, end);
  if (end - p < 2 && (p == end || *p == '\r')) return {};
  if (*p != '\r') {
    return {.outcome = Outcome::kFault,
            .fault = *p == '\n' ? std::string_view("a line ends without CR")
                                : std::string_view("a header has a control character")};
  }
  if (p[1] != '\n') return {.outcome = Outcome::kFault, .fault = "a CR stands without its LF"};
  const char* last = p;
  while (last != value && http_bytes::IsBlank(last[-1])) --last;
  return {.outcome = Outcome::kField,
          .name = name,
          .value = {value, static_cast<std::size_t>(last - value)},
          .next = p + 2};
}

}  // namespace weir
