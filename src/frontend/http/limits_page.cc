#include "frontend/http/limits_page.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <weir/limit.h>

#include "frontend/json_string.h"
#include "policy/policy_words.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, 4> kToldAttributes = {"method", "path", "host", "tier"};

std::string Joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

std::string Describe(const AttributeTest& test) {
  using Wants = AttributeTest::Wants;
  const std::string_view no = test.negated ? "not " : "";
  std::string text(test.attribute);
  switch (test.wants) {
    case Wants::kPresent:
      return text.append(test.negated ? " is absent" : " is present");
    case Wants::kAbsent:
      return text.append(test.negated ? " is present" : " is absent");
    case Wants::kValue:
      break;
  }
  text.append(" is ").append(no);
  if (std::ranges::find(kToldAttributes, test.attribute) == kToldAttributes.end()) {
    return text.append("a certain value");
  }
  return text.append(Joined(test.any_of, " or "));
}

// Whole groups in brackets, so that it is clear what belongs together.
std::string Describe(const Match& match) {
  const auto group = [](std::string_view before, const std::vector<Match>& matches,
                        std::string_view between) {
    std::vector<std::string> parts;
    parts.reserve(matches.size());
    for (const Match& part : matches) parts.push_back("(" + Describe(part) + ")");
    return std::string(before) + Joined(parts, between);
  };
  std::vector<std::string> parts;
  parts.reserve(match.attributes.size() + 3);
  for (const AttributeTest& test : match.attributes) parts.push_back(Describe(test));
  if (!match.all.empty()) parts.push_back(group("", match.all, " and "));
  if (!match.any.empty()) parts.push_back(group("any of ", match.any, ", "));
  if (!match.none.empty()) parts.push_back(group("none of ", match.none, ", "));
  return parts.empty() ? "everything" : Joined(parts, " and ");
}

void AppendKey(std::string& out, const KeySpec& key) {
  out += "[";
  for (const KeyPart& part : key) {
    if (out.back() != '[') out += ",";
    std::vector<std::string> names;
    names.reserve(part.first_of.size());
    for (const KeyAttribute& attribute : part.first_of) names.push_back(attribute.name);
    AppendJsonString(out, Joined(names, " or "));
  }
  if (key.empty()) AppendJsonString(out, kGlobalKey);
  out += "]";
}

// Some texts of limits say by themselves how they count.
Algorithm AlgorithmOf(const RuleSpec& rule) {
  const Result<Limit> limit = Limit::Parse(rule.limit, {.algorithm = rule.algorithm});
  return limit ? limit->algorithm() : rule.algorithm;
}

void AppendTiers(std::string& out, const PolicySpec& spec, const RuleSpec& rule) {
  out += "{";
  for (const auto& [name, limits] : spec.tiers) {
    const auto limit = limits.find(rule.tier_limit);
    if (limit == limits.end()) continue;
    if (out.back() != '{') out += ",";
    AppendJsonString(out, name);
    out += ":";
    AppendJsonString(out, limit->second);
  }
  out += "}";
}

void AppendRule(std::string& out, const PolicySpec& spec, const RuleSpec& rule) {
  out += "{\"name\":";
  AppendJsonString(out, rule.name);
  if (rule.tier_limit.empty()) {
    out += ",\"limit\":";
    AppendJsonString(out, rule.limit);
  } else {
    out += ",\"tiers\":";
    AppendTiers(out, spec, rule);
  }
  out += ",\"algorithm\":";
  AppendJsonString(out, NameOf(rule.tier_limit.empty() ? AlgorithmOf(rule) : rule.algorithm));
  out += ",\"key\":";
  AppendKey(out, rule.key);
  out += ",\"match\":";
  AppendJsonString(out, Describe(rule.match));
  out += ",\"mode\":";
  AppendJsonString(out, WordFor(rule.mode, kRuleModes));
  out += "}";
}

}  // namespace

std::string LimitsJson(const PolicySpec& spec) {
  std::string text = "{\"limits\":[";
  for (const RuleSpec& rule : spec.rules) {
    if (rule.mode == RuleMode::kOff) continue;
    if (text.back() != '[') text += ",";
    AppendRule(text, spec, rule);
  }
  return text += "]}";
}

const std::string& LimitsPage::TextOf(const Policy& policy) {
  if (!policy_ || &policy_->compiled() != &policy.compiled()) {
    text_ = LimitsJson(policy.spec());
    policy_ = policy;
  }
  return text_;
}

}  // namespace weir
