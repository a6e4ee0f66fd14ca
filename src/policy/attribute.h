// What a rule can ask about a request, by name: `user`, `header.x-query-cost`, `path.project`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <weir/result.h>

namespace weir {

enum class AttributeKind : std::uint8_t {
  kIp,
  kUser,
  kApiKey,
  kOrg,
  kTier,
  kMethod,
  kPath,
  kHost,
  kFingerprint,  // The address and the user agent together, hashed.
  kDomain,
  // These have a name of their own behind the dot.
  kHeader,
  kCookie,
  kQuery,
  kDescriptor,
  kPathSegment,  // What stands in the path where the rule's pattern has {NAME}.
};

struct Attribute {
  AttributeKind kind = AttributeKind::kIp;
  std::string name{};  // Of a header in lower case.

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// The error says which attributes there are, and which one may have been meant.
Result<Attribute> ParseAttribute(std::string_view text);

// As ParseAttribute reads it.
std::string ToString(const Attribute& attribute);

// Header names and hosts do not depend on case, which for both is ASCII.
constexpr char ToLower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
bool EqualOfOneSize(std::string_view a, std::string_view b) noexcept;
// Most names differ in their length already.
inline bool EqualIgnoringCase(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && EqualOfOneSize(a, b);
}

}  // namespace weir
