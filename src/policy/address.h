// Network addresses and ranges of them.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// IPv4 or IPv6. An IPv4 address that was written as IPv6 (::ffff:192.0.2.1) is an IPv4 one,
// because a socket for both kinds shows IPv4 peers that way. 0.0.0.0 if nothing else is said.
class IpAddress {
 public:
  IpAddress() = default;
  // In network order.
  static IpAddress FromV4(const std::array<std::uint8_t, 4>& bytes) noexcept;
  static IpAddress FromV6(const std::array<std::uint8_t, 16>& bytes) noexcept;

  // 192.0.2.1, 2001:db8::1 and whatever else RFC 4291 has, ::192.0.2.1 included. Nothing else: no
  // port, no brackets, no zone, no blanks, no leading zeros in IPv4.
  static std::optional<IpAddress> Parse(std::string_view text) noexcept;
  // What proxies write into forwarding headers: also with a port (192.0.2.1:80, [2001:db8::1]:80)
  // or a name in its place (:_web), IPv6 in brackets or with a zone (%eth0, which is dropped), and
  // blanks around it.
  static std::optional<IpAddress> ParseForwarded(std::string_view text) noexcept;

  bool is_v4() const noexcept { return v4_; }
  int bits() const noexcept { return v4_ ? 32 : 128; }
  // Network order; IPv4 in the first four, the rest zero.
  const std::array<std::uint8_t, 16>& bytes() const noexcept { return bytes_; }

  // All but the first so many bits set to zero. Less than none is none, more than all is all.
  IpAddress Masked(int prefix) const noexcept;

  // As RFC 5952 has it, into `buffer`; the part that was used.
  static constexpr std::size_t kTextSize = 46;
  std::string_view ToText(std::array<char, kTextSize>& buffer) const noexcept;
  std::string ToString() const;

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  bool v4_ = true;
  std::array<std::uint8_t, 16> bytes_{};
};

// An address and how many of its bits matter.
struct IpRange {
  IpAddress base;  // Masked.
  int prefix = 0;

  // 10.0.0.0/8, 2001:db8::/32, or a single address. Bits behind the prefix must be zero, because
  // they tell that something else was meant. ::ffff:10.0.0.0/104 is 10.0.0.0/8; ::/0 is all of
  // IPv6 and nothing of IPv4.
  static std::optional<IpRange> Parse(std::string_view text) noexcept;
  bool Contains(const IpAddress& address) const noexcept;
  std::string ToString() const;  // As Parse reads it; a single address without its prefix.

  friend bool operator==(const IpRange&, const IpRange&) = default;
};

// Many ranges; asking takes one look for each prefix length in use, however many there are.
// Immutable once made; safe to share.
class IpRangeSet {
 public:
  IpRangeSet() = default;
  explicit IpRangeSet(const std::vector<IpRange>& ranges);

  bool Contains(const IpAddress& address) const noexcept;
  bool empty() const noexcept { return lengths_.empty(); }

 private:
  struct Length {
    bool v4;
    int prefix;
    std::vector<IpAddress> bases;  // Sorted.
  };
  std::vector<Length> lengths_;
};

}  // namespace weir
