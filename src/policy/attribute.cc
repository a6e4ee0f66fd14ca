#include "policy/attribute.h"

#include <algorithm>
#include <array>

#include "limit/limit_words.h"

namespace weir {
namespace {

constexpr std::array<Word<AttributeKind>, 10> kPlainAttributes = {{
    {"ip", AttributeKind::kIp},
    {"user", AttributeKind::kUser},
    {"api_key", AttributeKind::kApiKey},
    {"org", AttributeKind::kOrg},
    {"tier", AttributeKind::kTier},
    {"method", AttributeKind::kMethod},
    {"path", AttributeKind::kPath},
    {"host", AttributeKind::kHost},
    {"fingerprint", AttributeKind::kFingerprint},
    {"domain", AttributeKind::kDomain},
}};

constexpr std::array<Word<AttributeKind>, 5> kNamedAttributes = {{
    {"header", AttributeKind::kHeader},
    {"cookie", AttributeKind::kCookie},
    {"query", AttributeKind::kQuery},
    {"descriptor", AttributeKind::kDescriptor},
    {"path", AttributeKind::kPathSegment},
}};

constexpr std::size_t kMaxAttributeNameBytes = 256;

Error Unknown(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          "unknown attribute " + Quoted(text) +
              "; there are ip, user, api_key, org, tier, method, path, host, fingerprint, domain, "
              "header.NAME, cookie.NAME, query.NAME, descriptor.NAME, and in keys path.NAME"};
}

bool IsAttributeNameCharacter(char c) { return c > ' ' && c < 0x7f; }

}  // namespace

Result<Attribute> ParseAttribute(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) {
    const std::optional<AttributeKind> kind = MeaningOf(text, kPlainAttributes);
    if (!kind) return std::unexpected(Unknown(text));
    return Attribute{*kind};
  }
  const std::optional<AttributeKind> kind = MeaningOf(text.substr(0, dot), kNamedAttributes);
  if (!kind) return std::unexpected(Unknown(text));
  std::string name(text.substr(dot + 1));
  if (name.empty() || name.size() > kMaxAttributeNameBytes ||
      !std::ranges::all_of(name, IsAttributeNameCharacter)) {
    return std::unexpected(Error{
        ErrorCode::kInvalidArgument,
        "attribute " + Quoted(text) + ": the name behind the dot must be 1 to " +
            std::to_string(kMaxAttributeNameBytes) + " printable ASCII characters without blanks"});
  }
  if (*kind == AttributeKind::kHeader) std::ranges::transform(name, name.begin(), ToLower);
  return Attribute{*kind, std::move(name)};
}

std::string ToString(const Attribute& attribute) {
  if (attribute.name.empty()) return std::string(WordFor(attribute.kind, kPlainAttributes));
  return std::string(WordFor(attribute.kind, kNamedAttributes)) + "." + attribute.name;
}

bool EqualOfOneSize(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, ToLower, ToLower);
}

}  // namespace weir
