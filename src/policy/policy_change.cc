// Whether a new policy looks like an accident.
#include <unordered_map>

#include <weir/policy.h>

#include "limit/limit_words.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

constexpr std::size_t kFewer = 10;  // So many times fewer rules,
constexpr int kCut = 10;            // or a limit cut by more than this.

// Counts times periods need more than 64 bits.
__extension__ using Wide = __int128;

// Units in a length of time. For places, which have none, all that matters is that it is the same.
struct Rate {
  Wide count;
  Wide period;
};

Rate RateOf(const Limit& limit) {
  const Wide count = limit.spec().count;
  if (limit.algorithm() == Algorithm::kConcurrency) return {.count = count, .period = 1};
  const Duration period = limit.calendar() != nullptr ? limit.time_to_fresh() : limit.spec().period;
  return {.count = count, .period = period.count()};
}

// To everything from nothing is no cut, and putting up a limit where there was none is ordinary.
bool IsCut(const Limit& before, const Limit& after) {
  if (after.kind() == LimitKind::kDeny) return before.kind() != LimitKind::kDeny;
  if (before.kind() != LimitKind::kCounted || after.kind() != LimitKind::kCounted) return false;
  const auto places = [](const Limit& limit) {
    return limit.algorithm() == Algorithm::kConcurrency;
  };
  if (places(before) != places(after)) return false;
  const Rate old_rate = RateOf(before);
  const Rate new_rate = RateOf(after);
  if (new_rate.count * kCut * old_rate.period < old_rate.count * new_rate.period) return true;
  // In other units the same rate has another burst, unless one is given.
  return old_rate.period == new_rate.period && Wide{after.capacity()} * kCut < before.capacity();
}

void Compare(const std::string& what, const std::string& before, const LimitSpec& before_defaults,
             const std::string& after, const LimitSpec& after_defaults,
             std::vector<std::string>& reasons) {
  const Result<Limit> old_limit = Limit::Parse(before, before_defaults);
  const Result<Limit> new_limit = Limit::Parse(after, after_defaults);
  if (!old_limit || !new_limit || !IsCut(*old_limit, *new_limit)) return;
  reasons.push_back(what + " is cut from " + Quoted(before) + " to " + Quoted(after) +
                    ", more than ten times");
}

}  // namespace

std::vector<std::string> WhySuspicious(const PolicySpec& before, const PolicySpec& after) {
  std::vector<std::string> reasons;
  const std::size_t old_count = before.rules.size();
  const std::size_t new_count = after.rules.size();
  if (old_count > 0 && new_count == 0) {
    reasons.push_back("there are no rules any more, and there were " + std::to_string(old_count));
  } else if (new_count > 0 && old_count >= kFewer * new_count) {
    reasons.push_back((new_count == 1 ? "there is only 1 rule"
                                      : "there are only " + std::to_string(new_count) + " rules") +
                      ", and there were " + std::to_string(old_count));
  }
  std::unordered_map<std::string_view, const RuleSpec*> old_rules;
  for (const RuleSpec& rule : before.rules) old_rules.emplace(rule.name, &rule);
  for (const RuleSpec& rule : after.rules) {
    const auto found = old_rules.find(rule.name);
    const RuleSpec* old = found == old_rules.end() ? nullptr : found->second;
    if (old == nullptr || old->mode == RuleMode::kOff || rule.mode == RuleMode::kOff) continue;
    const LimitSpec old_defaults = LimitDefaults(*old, before);
    const LimitSpec new_defaults = LimitDefaults(rule, after);
    const std::string what = "the limit of " + Quoted(rule.name);
    if (!rule.limit.empty() && !old->limit.empty()) {
      Compare(what, old->limit, old_defaults, rule.limit, new_defaults, reasons);
    }
    if (rule.tier_limit.empty() || old->tier_limit.empty()) continue;
    for (const auto& [name, limits] : after.tiers) {
      const auto new_limit = limits.find(rule.tier_limit);
      const auto old_tier = before.tiers.find(name);
      if (old_tier == before.tiers.end() || new_limit == limits.end()) continue;
      const auto old_limit = old_tier->second.find(old->tier_limit);
      if (old_limit == old_tier->second.end()) continue;
      Compare(what + " for the tier " + Quoted(name), old_limit->second, old_defaults,
              new_limit->second, new_defaults, reasons);
    }
  }
  return reasons;
}

}  // namespace weir
