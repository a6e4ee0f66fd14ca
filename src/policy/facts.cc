#include "policy/facts.h"

#include <algorithm>
#include <span>

#include "policy/path.h"

namespace weir {
namespace {

struct UpperCase {
  constexpr char operator()(char c) const noexcept {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
};
struct LowerCase {
  constexpr char operator()(char c) const noexcept { return ToLower(c); }
};

// The buffer if that is large enough, else the string, made so.
std::span<char> RoomFor(std::size_t size, std::span<char> buffer, std::string& string) {
  if (size <= buffer.size()) return buffer;
  string.resize(size);
  return string;
}

// The text with every character changed; itself if that changes none.
template <typename Change>
std::string_view Changed(std::string_view text, std::span<char> buffer, std::string& string) {
  constexpr Change kChange;
  bool differs =
      false;  // To the end even if it does: that can be done for many characters at once.
  for (const char c : text) differs |= kChange(c) != c;
  if (!differs) return text;
  const std::span<char> room = RoomFor(text.size(), buffer, string);
  std::ranges::transform(text, room.begin(), kChange);
  return {room.data(), text.size()};
}

// example.org:80, [2001:db8::1]:80 and example.org. without what is behind the name. A bare IPv6
// address has several colons and no port.
std::string_view WithoutPort(std::string_view host) noexcept {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  const std::size_t colon = host.find(':');
  if (host.find(':', std::min(colon, host.size() - 1) + 1) == std::string_view::npos) {
    host = host.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

// Names are told apart by their length first, as most differ there.
std::string_view FirstOf(std::span<const NamedValue> values, std::string_view name) noexcept {
  for (const NamedValue& value : values) {
    if (value.name == name && !value.value.empty()) return value.value;
  }
  return {};
}

std::string_view FirstHeader(std::span<const NamedValue> headers, std::string_view name) noexcept {
  for (const NamedValue& header : headers) {
    if (!header.value.empty() && header.name.size() == name.size() &&
        EqualIgnoringCase(header.name, name)) {
      return header.value;
    }
  }
  return {};
}

}  // namespace

void Facts::FindIp() const noexcept {
  if (!request_.ip.empty()) ip_ = IpAddress::Parse(request_.ip);
  ip_known_ = true;
}

void Facts::FindPath() const noexcept {
  std::string_view raw = request_.path;
  // A long query is no reason to allocate. Its first character stays, as a path of nothing else is
  // not the same as no path.
  if (raw.size() >= path_buffer_.size()) {
    const std::size_t query = raw.find_first_of("?#");
    if (query != std::string_view::npos) raw = raw.substr(0, query + 1);
  }
  path_ = {.known = true,
           .text = NormalizePath(raw, RoomFor(raw.size() + 1, path_buffer_, long_path_))};
}

void Facts::FindHost() const noexcept {
  if (!request_.host.empty()) {
    host_.text = Changed<LowerCase>(WithoutPort(request_.host), host_buffer_, long_host_);
  }
  host_.known = true;
}

void Facts::FindMethod() const noexcept {
  method_ = {.known = true,
             .text = Changed<UpperCase>(request_.method, method_buffer_, long_method_)};
}

std::span<const NamedValue> Facts::ValuesOf(AttributeKind kind) const noexcept {
  switch (kind) {
    case AttributeKind::kHeader:
      return request_.headers;
    case AttributeKind::kCookie:
      return request_.cookies;
    case AttributeKind::kQuery:
      return request_.query;
    case AttributeKind::kDescriptor:
      return request_.descriptors;
    default:
      return {};
  }
}

std::string_view Facts::Get(const Attribute& attribute) const noexcept {
  switch (attribute.kind) {
    case AttributeKind::kUser:
      return request_.user;
    case AttributeKind::kApiKey:
      return request_.api_key;
    case AttributeKind::kOrg:
      return request_.org;
    case AttributeKind::kTier:
      return request_.tier;
    case AttributeKind::kMethod:
      return method();
    case AttributeKind::kPath:
      return path();
    case AttributeKind::kHost:
      return host();
    case AttributeKind::kDomain:
      return request_.domain;
    case AttributeKind::kHeader:
      return FirstHeader(request_.headers, attribute.name);
    case AttributeKind::kCookie:
      return FirstOf(request_.cookies, attribute.name);
    case AttributeKind::kQuery:
      return FirstOf(request_.query, attribute.name);
    case AttributeKind::kDescriptor:
      return FirstOf(request_.descriptors, attribute.name);
    case AttributeKind::kIp:
    case AttributeKind::kFingerprint:
    case AttributeKind::kPathSegment:
      break;
  }
  return {};
}

bool Facts::Has(const Attribute& attribute) const noexcept {
  switch (attribute.kind) {
    case AttributeKind::kIp:
    case AttributeKind::kFingerprint:
      return ip().has_value();
    default:
      return !Get(attribute).empty();
  }
}

}  // namespace weir
