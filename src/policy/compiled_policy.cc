#include "policy/compiled_policy.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "policy/blanks.h"

namespace weir {
namespace {

// A number too large to be held is the largest.
std::optional<std::int64_t> WholeNumber(std::string_view text) noexcept {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || read_to != end) return std::nullopt;
  if (error == std::errc()) return value;
  return text.front() == '-' ? std::nullopt : std::optional(kMaxCount);
}

}  // namespace

std::int64_t CompiledRule::OwnCostOf(const Facts& facts) const noexcept {
  if (cost->attribute.empty()) return cost->fallback;
  if (!cost->from_anyone && !facts.request().trusted) return cost->fallback;
  std::optional<std::int64_t> dearest;
  facts.ForEachValue(cost_attribute, [&](std::string_view text) {
    const std::optional<std::int64_t> value = WholeNumber(WithoutBlanks(text));
    if (value)
      dearest = std::max(dearest.value_or(cost->min), std::clamp(*value, cost->min, cost->max));
  });
  return dearest.value_or(cost->fallback);
}

bool CompiledRule::IsInShare(std::string_view subject) const noexcept {
  // The upper 53 bits, which a double holds exactly.
  const auto point = static_cast<double>((*share_hash)(subject) >> 11);
  return point < share * static_cast<double>(std::uint64_t{1} << 53);
}

CompiledPolicy::Tier CompiledPolicy::TierOf(std::string_view name) const noexcept {
  if (name.empty()) return {.number = default_tier, .known = true};
  const auto found = std::ranges::lower_bound(tiers, name);
  if (found == tiers.end() || *found != name)
    return {.number = default_tier, .known = tiers.empty()};
  return {.number = static_cast<std::uint32_t>(found - tiers.begin()), .known = true};
}

Request CompiledPolicy::WithTierThatCounts(const Request& request) const noexcept {
  Request changed = request;
  const bool has_one = !request.tier.empty() && TierOf(request.tier).known;
  if (!has_one && !default_tier_name.empty()) changed.tier = default_tier_name;
  return changed;
}

}  // namespace weir
