#include "engine/policy_version.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mix.h"
#include "engine/text_keeper.h"

namespace weir {
namespace {

bool SameLimits(const std::vector<Limit>& a, const std::vector<Limit>& b) {
  return std::ranges::equal(a, b,
                            [](const Limit& x, const Limit& y) { return x.spec() == y.spec(); });
}

enum class Effect : std::uint8_t { kNone, kGoesOn, kStartsAnew };

// A rule of one version and the policy around it.
struct RuleOf {
  const CompiledPolicy& policy;
  const CompiledRule& rule;

  // The tier whose limit has this number, if it is a tier's.
  const std::string* TierWith(std::size_t limit) const {
    const auto found = std::ranges::find(rule.tiers, limit);
    return found == rule.tiers.end()
               ? nullptr
               : &policy.tiers[static_cast<std::size_t>(found - rule.tiers.begin())];
  }
  // The number of the limit of a tier, if there is such a tier.
  std::optional<std::size_t> LimitOfTier(const std::string& tier) const {
    const auto found = std::ranges::lower_bound(policy.tiers, tier);
    if (rule.tiers.empty() || found == policy.tiers.end() || *found != tier) return std::nullopt;
    return rule.tiers[static_cast<std::size_t>(found - policy.tiers.begin())];
  }
};

// Whose state a limit goes on with: a tier's with that of the same tier, an override's with that of
// one that was equal, and any other with the rule's own.
const Limit& PredecessorOf(std::size_t number, const RuleOf& now, const RuleOf& before,
                           const std::vector<Limit>& limits_before) {
  if (const std::string* tier = now.TierWith(number)) {
    if (const auto found = before.LimitOfTier(*tier)) return limits_before[*found];
    return limits_before.front();
  }
  if (number == 0) return limits_before.front();
  const LimitSpec& spec = now.rule.limits[number].spec();
  const auto same = std::ranges::find(limits_before, spec, &Limit::spec);
  return same != limits_before.end() ? *same : limits_before.front();
}

// The limits of a rule share the state of their keys, so when one of them changes all become
// successors.
Effect Succeed(const RuleOf& now, const RuleOf& before, const std::vector<Limit>& limits_before,
               Now when, std::vector<Limit>& next) {
  if (SameLimits(now.rule.limits, before.rule.limits)) {
    next = limits_before;
    return Effect::kNone;
  }
  next.clear();
  for (std::size_t i = 0; i < now.rule.limits.size(); ++i) {
    const Limit& predecessor = PredecessorOf(i, now, before, limits_before);
    next.push_back(now.rule.limits[i].ReplacingAmongOthers(predecessor, when));
  }
  const Limit& first = next.front();
  const bool goes_on = first.predecessor() != nullptr ||
                       first.state_salt() == limits_before.front().state_salt() ||
                       first.kind() != LimitKind::kCounted;
  return goes_on ? Effect::kGoesOn : Effect::kStartsAnew;
}

class VersionMaker {
 public:
  VersionMaker(const PolicyVersion* before, const Store& store, TextKeeper& texts, Now now,
               PolicyChange& change)
      : before_(before), store_(store), texts_(texts), now_(now), change_(change) {
    if (before == nullptr) return;
    const auto& rules = before->compiled().rules;
    for (std::size_t i = 0; i < rules.size(); ++i) numbers_.emplace(rules[i].name, i);
  }

  std::unique_ptr<PolicyVersion> Make(const Policy& policy) {
    auto version = std::make_unique<PolicyVersion>(policy);
    version->number = before_ == nullptr ? 1 : before_->number + 1;
    for (const CompiledRule& rule : version->compiled().rules) {
      version->rules.push_back(MakeRule(version->compiled(), rule));
    }
    for (const auto& [name, number] : numbers_) change_.rules_removed.emplace_back(name);
    std::ranges::sort(change_.rules_removed);
    for (const RuleInForce& rule : version->rules) {
      const std::uint64_t hash = store_.Hash(rule.name);
      for (const Limit& limit : rule.limits) version->in_force.push_back({hash, rule.name, &limit});
    }
    std::ranges::stable_sort(version->in_force, {}, &LimitInForce::rule);
    change_.version = version->number;
    return version;
  }

 private:
  // Mixed, because it is combined with the hashes of keys: one that reads like a rule's name would
  // otherwise undo it, and be the same under every rule.
  std::uint64_t Scope(std::string_view kind, std::string_view name) const {
    return Mix(store_.Hash(std::string(kind) + std::string(name)));
  }

  RuleInForce MakeRule(const CompiledPolicy& policy, const CompiledRule& rule) {
    RuleInForce next{.name = texts_.Keep(rule.name),
                     .message = texts_.Keep(rule.message),
                     .scope = Scope("", rule.name),
                     // No rule's name holds a colon.
                     .ban_scope = Scope("ban:", rule.name),
                     .denials_scope = Scope("denials:", rule.name),
                     .steps_scope = Scope("steps:", rule.name),
                     .limits = rule.limits};
    const auto found = numbers_.find(rule.name);
    if (found == numbers_.end()) {
      if (before_ != nullptr) change_.rules_added.push_back(rule.name);
      return next;
    }
    const std::size_t number = found->second;
    numbers_.erase(found);
    const RuleOf before{before_->compiled(), before_->compiled().rules[number]};
    switch (Succeed({policy, rule}, before, before_->rules[number].limits, now_, next.limits)) {
      case Effect::kNone:
        break;
      case Effect::kGoesOn:
        change_.limits_changed.push_back(rule.name);
        break;
      case Effect::kStartsAnew:
        change_.started_anew.push_back(rule.name);
        break;
    }
    return next;
  }

  const PolicyVersion* before_;
  const Store& store_;
  TextKeeper& texts_;
  Now now_;
  PolicyChange& change_;
  std::unordered_map<std::string_view, std::size_t> numbers_;  // Of rules before, not yet met.
};

}  // namespace

std::unique_ptr<PolicyVersion> MakeVersion(const Policy& policy, const PolicyVersion* before,
                                           const Store& store, TextKeeper& texts, Now now,
                                           PolicyChange& change) {
  return VersionMaker(before, store, texts, now, change).Make(policy);
}

}  // namespace weir
