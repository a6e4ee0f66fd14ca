// The list in a forwarding header, X-Forwarded-For or Forwarded (RFC 7239), read from its right
// end: there stands what the nearest proxy saw, and only what proxies wrote can be believed.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <weir/policy_spec.h>
#include <weir/request.h>

#include "policy/address.h"

namespace weir {

// In lower case.
std::string_view NameOf(ForwardingHeader header) noexcept;

// Several lines of the header are one list, in their order. Every comma parts two elements, except
// within quotes in Forwarded; a line without any is one element, be it empty.
//
// A quoted string ends at the latest with its line, so that one who sends half of it spoils no line
// that a proxy adds. Takes time in proportion to the headers and no memory. Refers to them.
class ForwardingList {
 public:
  // How far from the right end the elements are read. Real paths are much shorter.
  static constexpr std::size_t kMostElements = 64;

  ForwardingList(ForwardingHeader header, std::span<const NamedValue> headers) noexcept
      : header_(header), headers_left_(headers) {}

  // The next element to the left. None when there are no more, or would be too many.
  std::optional<std::string_view> Next() noexcept;

 private:
  bool TakeLine() noexcept;
  void FindCommas() noexcept;
  std::size_t LastComma() noexcept;

  const ForwardingHeader header_;
  std::span<const NamedValue> headers_left_;
  std::string_view line_;
  bool in_line_ = false;
  std::size_t elements_ = 0;
  // Where the line has quotes: the last so many commas outside them, in a ring. Not more are needed
  // because each stands before an element.
  bool quoted_ = false;
  std::size_t commas_found_ = 0;
  std::size_t commas_left_ = 0;
  std::array<std::size_t, kMostElements> commas_;
};

// The address in an element. None if it holds none or is anything but well-formed: junk, `unknown`,
// a made-up name. An element of Forwarded must have one `for`, and IPv6 in brackets and quotes;
// blanks around its semicolons are let pass.
std::optional<IpAddress> AddressIn(ForwardingHeader header, std::string_view element) noexcept;

}  // namespace weir
