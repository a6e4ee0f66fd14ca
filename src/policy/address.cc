// Addresses are read by hand, because the C library's readers differ between systems and some take
// 010.1 for an address. Whether two texts are the same address decides who is limited, so a text
// that another reader could take for something else is none.
#include "policy/address.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "policy/ascii.h"
#include "policy/blanks.h"

namespace weir {
namespace {

using V6Bytes = std::array<std::uint8_t, 16>;

// The longest: 2001:0db8:0000:0000:0000:0000:255.255.255.255.
constexpr std::size_t kLongestText = 45;
constexpr V6Bytes kMappedStart = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedBits = 96;

// 0 to 9, or more.
constexpr unsigned DigitValue(char c) { return static_cast<unsigned char>(c) - unsigned{'0'}; }

// Reads one number from 0 to 255. `at` moves behind its third digit at most, so that a fourth is
// found where a point or the end should be. Digit by digit and not in a loop: requests bring their
// addresses as text, and this reads them twice as fast.
inline bool ReadV4Part(const char*& at, const char* end, std::uint8_t& part) noexcept {
  if (at == end) return false;
  unsigned value = DigitValue(*at++);
  if (value > 9) return false;
  if (at != end && DigitValue(*at) <= 9) {
    if (value == 0) return false;  // Octal to some.
    value = value * 10 + DigitValue(*at++);
    if (at != end && DigitValue(*at) <= 9) {
      value = value * 10 + DigitValue(*at++);
      if (value > 255) return false;
    }
  }
  part = static_cast<std::uint8_t>(value);
  return true;
}

// Four numbers with points between them.
bool ReadV4(std::string_view text, std::uint8_t* bytes) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    if (!ReadV4Part(at, end, bytes[i])) return false;
    if (at == end || *at != '.') return false;
    ++at;
  }
  return ReadV4Part(at, end, bytes[3]) && at == end;
}

// Eight groups of up to four hex digits with colons between them. `::` stands for all the groups
// that are missing, of which there must be one. The last two may be written as IPv4.
bool ReadV6(std::string_view text, V6Bytes& bytes) noexcept {
  std::size_t filled = 0;
  constexpr std::size_t kNowhere = 17;
  std::size_t gap = kNowhere;  // Where `::` stands.
  std::size_t at = 0;
  if (text.starts_with("::")) {
    gap = 0;
    at = 2;
  }
  while (at < text.size()) {
    const std::size_t start = at;
    int value = 0;
    for (int digit = 0; at < text.size() && (digit = HexValue(text[at])) >= 0; ++at) {
      if (at - start == 4) return false;
      value = value << 4 | digit;
    }
    if (at < text.size() && text[at] == '.') {
      if (filled > 12 || !ReadV4(text.substr(start), &bytes[filled])) return false;
      filled += 4;
      break;
    }
    if (at == start || filled == bytes.size()) return false;
    bytes[filled++] = static_cast<std::uint8_t>(value >> 8);
    bytes[filled++] = static_cast<std::uint8_t>(value);
    if (at == text.size()) break;
    if (text[at] != ':') return false;
    ++at;
    if (at == text.size()) return false;
    if (text[at] != ':') continue;
    if (gap != kNowhere) return false;
    gap = filled;
    ++at;
  }
  if (gap == kNowhere) return filled == bytes.size();
  if (filled == bytes.size()) return false;
  std::copy_backward(bytes.data() + gap, bytes.data() + filled, bytes.data() + bytes.size());
  std::fill_n(bytes.data() + gap, bytes.size() - filled, std::uint8_t{0});
  return true;
}

// By itself, so that reading IPv4 does not pay for the room this needs.
[[gnu::noinline]] std::optional<IpAddress> ParseV6(std::string_view text) noexcept {
  V6Bytes bytes;
  if (!ReadV6(text, bytes)) return std::nullopt;
  return IpAddress::FromV6(bytes);
}

// What stands behind the colon: a number, or as RFC 7239 has it a made-up name such as _web.
bool IsPort(std::string_view text) noexcept {
  if (text.starts_with('_')) {
    return text.size() > 1 && std::ranges::all_of(text, [](char c) {
             return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-';
           });
  }
  if (text.empty() || text.size() > 5 || !std::ranges::all_of(text, IsDigit)) return false;
  int number = 0;
  for (const char c : text) number = number * 10 + (c - '0');
  return number <= 65535;
}

// Only IPv6 has zones.
std::optional<IpAddress> ParseV6WithZone(std::string_view text) noexcept {
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const std::string_view zone = text.substr(percent + 1);
    const bool fits = !zone.empty() && std::ranges::all_of(zone, [](char c) {
      return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-' || c == '~';
    });
    if (!fits) return std::nullopt;
    text = text.substr(0, percent);
  }
  if (!text.contains(':')) return std::nullopt;
  return IpAddress::Parse(text);
}

char* WriteHex(char* out, unsigned group) noexcept {
  return std::to_chars(out, out + 4, group, 16).ptr;
}

std::string_view V4Text(const V6Bytes& bytes, char* const start) noexcept {
  char* out = start;
  for (std::size_t i = 0; i < 4; ++i) {
    if (i > 0) *out++ = '.';
    out = std::to_chars(out, out + 3, bytes[i]).ptr;
  }
  return {start, static_cast<std::size_t>(out - start)};
}

// Two or more groups that are zero: the longest such run, of several the first.
struct ZeroRun {
  std::size_t start = 8;
  std::size_t size = 1;
};

ZeroRun LongestZeroRun(const std::array<unsigned, 8>& groups) noexcept {
  ZeroRun longest;
  for (std::size_t i = 0; i < groups.size();) {
    std::size_t end = i;
    while (end < groups.size() && groups[end] == 0) ++end;
    if (end - i > longest.size) longest = {i, end - i};
    i = end + 1;
  }
  return longest;
}

std::string_view V6Text(const V6Bytes& bytes, char* const start) noexcept {
  std::array<unsigned, 8> groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i] = static_cast<unsigned>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
  }
  const ZeroRun zeros = LongestZeroRun(groups);
  char* out = start;
  for (std::size_t i = 0; i < groups.size();) {
    if (i == zeros.start) {
      *out++ = ':';
      *out++ = ':';
      i += zeros.size;
      continue;
    }
    if (i > 0 && i != zeros.start + zeros.size) *out++ = ':';
    out = WriteHex(out, groups[i++]);
  }
  return {start, static_cast<std::size_t>(out - start)};
}

// 0 to 999 without leading zeros, or -1.
int ReadPrefix(std::string_view text) noexcept {
  if (text.empty() || text.size() > 3 || !std::ranges::all_of(text, IsDigit)) return -1;
  if (text.front() == '0' && text.size() > 1) return -1;
  int prefix = 0;
  for (const char c : text) prefix = prefix * 10 + (c - '0');
  return prefix;
}

}  // namespace

IpAddress IpAddress::FromV4(const std::array<std::uint8_t, 4>& bytes) noexcept {
  IpAddress address;
  std::memcpy(address.bytes_.data(), bytes.data(), bytes.size());
  return address;
}

IpAddress IpAddress::FromV6(const std::array<std::uint8_t, 16>& bytes) noexcept {
  IpAddress address;
  if (std::memcmp(bytes.data(), kMappedStart.data(), kMappedBits / 8) == 0) {
    std::memcpy(address.bytes_.data(), &bytes[kMappedBits / 8], 4);
    return address;
  }
  address.v4_ = false;
  address.bytes_ = bytes;
  return address;
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) noexcept {
  if (text.size() > kLongestText) return std::nullopt;
  // The usual one first. What it takes has no colon, and the other takes nothing without one.
  IpAddress address;
  if (ReadV4(text, address.bytes_.data())) return address;
  return ParseV6(text);
}

std::optional<IpAddress> IpAddress::ParseForwarded(std::string_view text) noexcept {
  text = WithoutBlanks(text);
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view behind = text.substr(end + 1);
    if (!behind.empty() && (behind.front() != ':' || !IsPort(behind.substr(1)))) {
      return std::nullopt;
    }
    return ParseV6WithZone(text.substr(1, end - 1));
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Parse(text);
  if (text.find(':', colon + 1) != std::string_view::npos) return ParseV6WithZone(text);
  // IPv6 has at least two colons.
  if (!IsPort(text.substr(colon + 1))) return std::nullopt;
  return Parse(text.substr(0, colon));
}

IpAddress IpAddress::Masked(int prefix) const noexcept {
  prefix = std::clamp(prefix, 0, bits());
  IpAddress masked = *this;
  auto byte = static_cast<std::size_t>(prefix / 8);
  if (byte == masked.bytes_.size()) return masked;
  masked.bytes_[byte] &= static_cast<std::uint8_t>(0xff00 >> (prefix % 8));
  std::memset(masked.bytes_.data() + byte + 1, 0, masked.bytes_.size() - byte - 1);
  return masked;
}

std::string_view IpAddress::ToText(std::array<char, kTextSize>& buffer) const noexcept {
  return v4_ ? V4Text(bytes_, buffer.data()) : V6Text(bytes_, buffer.data());
}

std::string IpAddress::ToString() const {
  std::array<char, kTextSize> buffer;
  return std::string(ToText(buffer));
}

std::optional<IpRange> IpRange::Parse(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const std::string_view written = text.substr(0, slash);
  const std::optional<IpAddress> base = IpAddress::Parse(written);
  if (!base) return std::nullopt;
  if (slash == std::string_view::npos) return IpRange{*base, base->bits()};
  int prefix = ReadPrefix(text.substr(slash + 1));
  // An IPv4 range written as IPv6 counts the 96 bits that say so. With fewer the range would end
  // within those, where an address of this kind has bits that are not zero.
  if (base->is_v4() && written.contains(':')) prefix -= kMappedBits;
  if (prefix < 0 || prefix > base->bits() || base->Masked(prefix) != *base) return std::nullopt;
  return IpRange{*base, prefix};
}

bool IpRange::Contains(const IpAddress& address) const noexcept {
  return address.is_v4() == base.is_v4() && address.Masked(prefix) == base;
}

std::string IpRange::ToString() const {
  return prefix == base.bits() ? base.ToString() : base.ToString() + "/" + std::to_string(prefix);
}

IpRangeSet::IpRangeSet(const std::vector<IpRange>& ranges) {
  for (const IpRange& range : ranges) {
    const bool v4 = range.base.is_v4();
    auto length = std::ranges::find_if(
        lengths_, [&](const Length& l) { return l.v4 == v4 && l.prefix == range.prefix; });
    if (length == lengths_.end()) length = lengths_.insert(length, {v4, range.prefix, {}});
    length->bases.push_back(range.base);
  }
  for (Length& length : lengths_) {
    std::ranges::sort(length.bases);
    length.bases.erase(std::ranges::unique(length.bases).begin(), length.bases.end());
  }
  // Wide ranges are few and hold most of what is asked for.
  std::ranges::sort(lengths_, {}, &Length::prefix);
}

bool IpRangeSet::Contains(const IpAddress& address) const noexcept {
  return std::ranges::any_of(lengths_, [&](const Length& length) {
    return length.v4 == address.is_v4() &&
           std::ranges::binary_search(length.bases, address.Masked(length.prefix));
  });
}

}  // namespace weir
