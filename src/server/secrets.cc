#include "server/secrets.h"

#include <algorithm>
#include <array>

#include "limit/limit_words.h"
#include "policy/attribute.h"
#include "policy/facts.h"

namespace weir {
namespace {

constexpr std::string_view kEllipsis = "…";

// Two characters of a short value would be most of it.
constexpr std::size_t kShownCharacters = 2;
constexpr std::size_t kLeastSize = 6;

std::string Beginning(std::string_view value) {
  return std::string(value.size() < kLeastSize ? "" : value.substr(0, kShownCharacters));
}

// header.x-auth-token, query.access_token
bool SoundsSecret(std::string_view attribute) {
  constexpr std::array<std::string_view, 6> kWords = {"token",  "secret",  "password",
                                                      "x-auth", "session", "signature"};
  const bool named = attribute.contains('.');
  return named && std::ranges::any_of(kWords, [&](std::string_view word) {
           return !std::ranges::search(attribute, word, {}, ToLower).empty();
         });
}

}  // namespace

Secrets::Secrets(const PolicySpec& spec) {
  for (const char* name : {"api_key", "header.authorization", "header.proxy-authorization",
                           "header.cookie", "header.x-api-key"}) {
    Add(name);
  }
  for (const auto& [name, source] : spec.identity) {
    if (!source.hash && name != "api_key") continue;
    Add(name);
    Add(source.from);
  }
  for (const RuleSpec& rule : spec.rules) {
    for (const KeyPart& part : rule.key) {
      for (const KeyAttribute& attribute : part.first_of) {
        if (attribute.hash) Add(attribute.name);
      }
    }
  }
}

void Secrets::Add(std::string_view attribute) {
  // In the form in which explanations name it.
  if (const Result<Attribute> parsed = ParseAttribute(attribute)) {
    attributes_.insert(ToString(*parsed));
  }
}

bool Secrets::IsSecret(std::string_view attribute) const {
  return attribute.starts_with("cookie.") || attributes_.contains(attribute) ||
         SoundsSecret(attribute);
}

std::string Secrets::Shown(std::string_view attribute, std::string_view value) const {
  if (value.empty()) return "absent";
  if (!IsSecret(attribute)) return Quoted(value);
  std::string shown = Quoted(Beginning(value));
  shown.insert(shown.size() - 1, kEllipsis);
  return shown;
}

std::string Secrets::InReason(const std::string& reason, const Request& request) const {
  constexpr std::string_view kIs = " is ";
  constexpr std::string_view kNot = ", not ";
  constexpr std::string_view kMustNot = ", but must not be ";
  const std::size_t at = reason.find(kIs);
  const std::string attribute = reason.substr(0, at);
  if (at == std::string::npos || !IsSecret(attribute)) return reason;

  const Result<Attribute> parsed = ParseAttribute(attribute);
  const Facts facts(request);
  const std::string_view value = parsed ? facts.Get(*parsed) : "";
  const std::string plain = value.empty() ? "absent" : Quoted(value);
  std::string shown = attribute + std::string(kIs) + Shown(attribute, value);
  const std::string_view rest = std::string_view(reason).substr(at + kIs.size());
  if (!rest.starts_with(plain)) return shown;
  const std::string_view asked = rest.substr(plain.size());
  if (asked == ", not absent" || asked.empty()) return shown + std::string(asked);
  if (asked.starts_with(kNot)) return shown + std::string(kNot) + std::string(kEllipsis);
  if (asked.starts_with(kMustNot)) return shown + std::string(kMustNot) + std::string(kEllipsis);
  return shown + std::string(asked);
}

std::string Secrets::InKey(const std::string& key) const {
  // A key has no blanks; what follows one is a remark.
  const std::size_t end = std::min(key.find(' '), key.size());
  std::string shown;
  for (std::size_t start = 0; start < end;) {
    const std::size_t next = std::min(key.find('&', start), end);
    const std::string_view part = std::string_view(key).substr(start, next - start);
    const std::size_t equals = part.find('=');
    const bool has_value = equals != std::string_view::npos && equals + 1 < part.size();
    if (!shown.empty()) shown += '&';
    if (has_value && IsSecret(part.substr(0, equals))) {
      const std::string beginning = Beginning(part.substr(equals + 1));
      shown += part.substr(0, equals + 1);
      // Not the half of an escaped byte.
      shown += !beginning.contains('%') ? beginning : "";
      shown += kEllipsis;
    } else {
      shown += part;
    }
    start = next + 1;
  }
  return shown + key.substr(end);
}

}  // namespace weir
