#include "lab/calibrate/client_key.h"

#include <algorithm>
#include <array>

#include "limit/limit_words.h"
#include "policy/compiled_policy.h"
#include "policy/facts.h"
#include "policy/key_plan.h"

namespace weir::lab {
namespace {

constexpr std::size_t kMostParts = 4;
constexpr int kIpv6Prefix = 64;  // As policies have it unless they say otherwise.

std::vector<std::string> PartsOf(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t plus = text.find('+');
    parts.emplace_back(text.substr(0, plus));
    if (plus == std::string_view::npos) return parts;
    text.remove_prefix(plus + 1);
  }
}

bool IsAttribute(std::string_view name) {
  constexpr std::array<std::string_view, 8> kAll = {"ip",   "user",   "api_key", "org",
                                                    "tier", "method", "path",    "host"};
  return std::ranges::find(kAll, name) != kAll.end();
}

bool HasFirst(const ClientKey::Columns& columns, std::string_view name) {
  return std::ranges::any_of(columns, [&](const auto& column) { return column.first == name; });
}

// A name for rules has letters, digits and a few signs.
std::string NameFrom(const std::vector<std::string>& parts) {
  std::string name = "per";
  for (const std::string& part : parts) {
    name += '-';
    for (const char c : part) {
      const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
      name += good ? c : '_';
    }
  }
  return name;
}

std::string Shown(std::string_view value) {
  const std::string quoted = Quoted(value);
  return quoted.substr(1, quoted.size() - 2);
}

Error Wrong(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

}  // namespace

Result<ClientKey> ClientKey::Parse(std::string_view text, const Columns& columns) {
  const std::vector<std::string> parts = PartsOf(text);
  if (parts.size() > kMostParts) {
    return std::unexpected(
        Wrong("--key " + Quoted(text) + " has more than " + std::to_string(kMostParts) + " parts"));
  }
  PolicySpec policy;
  policy.rules.push_back({.name = "key", .limit = "1/s"});
  KeySpec& key = policy.rules.front().key;
  Columns more;
  std::vector<std::string> present;
  std::string chosen;
  for (const std::string& part : parts) {
    if (part.empty() || std::ranges::count(parts, part) > 1) {
      return std::unexpected(Wrong("--key " + Quoted(text) +
                                   ": write ip, user, a column of the log, or several: ip+path"));
    }
    std::string attribute = part;
    if (!IsAttribute(part)) {
      const auto taken = [&](std::string_view name) {
        return HasFirst(columns, name) || HasFirst(more, name) ||
               std::ranges::find(parts, name) != parts.end();
      };
      attribute = !taken("user") ? "user" : "org";
      if (taken(attribute)) {
        return std::unexpected(Wrong("--key " + Quoted(text) + ": the column " + Quoted(part) +
                                     " would be read as user or org, and both are taken"));
      }
      more.emplace_back(attribute, part);
    }
    if (attribute == "path" || attribute == "host") {
      if (!chosen.empty()) {
        return std::unexpected(Wrong("--key " + Quoted(text) + ": path or host, not both"));
      }
      chosen = attribute;
    }
    // Of these a rule names the values that it is for.
    if (attribute != "path" && attribute != "host") present.push_back(attribute);
    key.emplace_back(attribute == "api_key" ? Hashed(attribute) : KeyAttribute(attribute));
  }
  KeySpec spec = key;
  PolicyReport report = Policy::Make(std::move(policy));
  if (!report.policy) return std::unexpected(Wrong(report.problems.front().message));
  ClientKey made(std::string(text), *std::move(report.policy));
  made.spec_ = std::move(spec);
  made.columns_ = std::move(more);
  made.must_be_present_ = std::move(present);
  made.chosen_part_ = std::move(chosen);
  made.rule_name_ = NameFrom(parts);
  return made;
}

std::optional<std::uint64_t> ClientKey::HashOf(const Request& request) const noexcept {
  const Facts facts(request);
  const CompiledPolicy& policy = policy_.compiled();
  const KeyPlan::HashedKey key =
      policy.keys[policy.rules.front().key].Hash(facts, policy.MatchOf(0), hasher_);
  if (!key.complete) return std::nullopt;
  return key.hash;
}

std::string ClientKey::NameOf(const Request& request) const {
  const Facts facts(request);
  const auto address = [&]() -> std::string {
    if (!facts.ip()) return "?";
    if (facts.ip()->is_v4()) return facts.ip()->ToString();
    return facts.ip()->Masked(kIpv6Prefix).ToString() + "/" + std::to_string(kIpv6Prefix);
  };
  std::string name;
  for (const KeyPart& part : spec_) {
    const std::string& attribute = part.first_of.front().name;
    if (!name.empty()) name += ' ';
    if (attribute == "ip") {
      name += address();
    } else if (attribute == "api_key") {
      name += Shown(request.api_key.substr(0, 2)) + "...";
    } else {
      name += Shown(facts.Get(*ParseAttribute(attribute)));
    }
  }
  return name;
}

std::string ClientKey::ChosenValue(const Request& request, std::string_view part) {
  const Facts facts(request);
  return std::string(part == "path" ? facts.path() : facts.host());
}

}  // namespace weir::lab
