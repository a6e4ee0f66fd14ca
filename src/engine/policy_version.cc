#include "engine/policy_version.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include <weir/engine.h>

#include "base/mix.h"
#include "engine/rule_counters.h"
#include "engine/succession.h"
#include "engine/text_keeper.h"
#include "policy/compiled_policy.h"

namespace weir {
namespace {

class VersionMaker {
 public:
  VersionMaker(const PolicyVersion* before, const VersionContext& context, PolicyChange& change)
      : before_(before),
        hasher_(context.hasher),
        texts_(context.texts),
        counters_(context.counters),
        last_limits_(context.last_limits),
        now_(context.now),
        shared_(context.shared),
        moves_(context.moves),
        limits_before_(context.limits_before),
        change_(change) {
    if (moves_) last_limits_.clear();
    if (before == nullptr) return;
    const auto& rules = before->compiled().rules;
    for (std::size_t i = 0; i < rules.size(); ++i) numbers_.emplace(rules[i].name, i);
  }

  std::unique_ptr<PolicyVersion> Make(const Policy& policy) {
    auto version = std::make_unique<PolicyVersion>(policy);
    version->number = before_ == nullptr ? 1 : before_->number + 1;
    for (const CompiledRule& rule : version->compiled().rules) {
      if (rule.enforced && rule.limits.front().spec().queue) {
        version->queues.push_back(static_cast<std::uint32_t>(version->rules.size()));
      }
      version->rules.push_back(MakeRule(version->compiled(), rule));
    }
    for (const auto& [name, number] : numbers_) change_.rules_removed.emplace_back(name);
    std::ranges::sort(change_.rules_removed);
    ListInForce(*version);
    for (const RuleSpec& rule : version->compiled().spec.rules) version->names.push_back(rule.name);
    std::ranges::sort(version->names);
    change_.version = version->number;
    return version;
  }

 private:
  // Mixed, because it is combined with the hashes of keys: one that reads like a rule's name would
  // otherwise undo it, and be the same under every rule.
  std::uint64_t Scope(std::string_view kind, std::string_view name) const {
    return Mix(hasher_(std::string(kind) + std::string(name)));
  }

  // The limits of one rule stay in their order.
  void ListInForce(PolicyVersion& version) const {
    std::vector<std::pair<std::uint64_t, const RuleInForce*>> rules;
    rules.reserve(version.rules.size());
    for (const RuleInForce& rule : version.rules) rules.emplace_back(hasher_(rule.name), &rule);
    std::ranges::sort(rules);
    for (const auto& [hash, rule] : rules) {
      for (const Limit& limit : rule->limits) {
        version.in_force.push_back({hash, rule->name, &limit});
      }
    }
  }

  static bool IsPlain(const CompiledRule& rule) {
    return rule.tiers.empty() && !rule.NeedsSubject() && !rule.HasOwnCost() && !rule.block &&
           rule.unidentified == Unidentified::kShare;
  }

  RuleInForce MakeRule(const CompiledPolicy& policy, const CompiledRule& rule) {
    RuleInForce next{.name = texts_.Keep(rule.name),
                     .message = texts_.Keep(rule.message),
                     .scope = Scope("", rule.name),
                     // No rule's name holds a colon.
                     .ban_scope = Scope("ban:", rule.name),
                     .denials_scope = Scope("denials:", rule.name),
                     .steps_scope = Scope("steps:", rule.name),
                     .plan = rule.key,
                     .enforced = rule.enforced,
                     .plain = IsPlain(rule),
                     .limits = rule.limits};
    next.counter_row = counters_.RowOf(next.name);
    Note(rule.name, TakeOver(policy, rule, next));
    if (shared_) FitLimits(next.limits);
    // A key may change its tier, and get an override or lose it.
    Limit::ShareKeys(next.limits);
    const Limit& first = next.limits.front();
    if (first.kind() == LimitKind::kCounted) last_limits_.insert_or_assign(next.name, first);
    return next;
  }

  // One that is beyond a shared store can only be of a policy that was made for memory.
  static void FitLimits(std::vector<Limit>& limits) {
    for (Limit& limit : limits) {
      if (Result<Limit> fit = limit.ForSharedStore()) limit = *std::move(fit);
    }
  }

  LimitChange TakeOver(const CompiledPolicy& policy, const CompiledRule& rule, RuleInForce& next) {
    const auto last = last_limits_.find(rule.name);
    const auto found = numbers_.find(rule.name);
    const std::optional<RuleLimits> before = LimitsSoFar(rule.name);
    if (!before) {
      if (before_ != nullptr) change_.rules_added.push_back(rule.name);
      if (last != last_limits_.end()) next.limits = Resume(rule.limits, last->second, now_).limits;
      return LimitChange::kNone;
    }
    const bool counted = before->limits.front().kind() == LimitKind::kCounted;
    const bool resumes = !counted && last != last_limits_.end() && rule.tiers.empty();
    const bool changes = rule.limits.front().spec() != before->limits.front().spec();
    Succession succession = resumes && changes ? Resume(rule.limits, last->second, now_)
                                               : Succeed({policy, rule}, *before, now_);
    if (!moves_) next.limits = std::move(succession.limits);
    if (found == numbers_.end()) return succession.change;
    const CompiledRule& rule_before = before_->compiled().rules[found->second];
    numbers_.erase(found);
    if (succession.change == LimitChange::kNone &&
        SpecsDiffer(policy, rule, {before_->compiled(), rule_before})) {
      change_.rules_changed.push_back(rule.name);
    }
    return succession.change;
  }

  // What the rule counted by until now; nothing if it is new.
  std::optional<RuleLimits> LimitsSoFar(const std::string& rule) const {
    if (const auto found = numbers_.find(rule); found != numbers_.end()) {
      const std::size_t number = found->second;
      return LimitsOf({before_->compiled(), before_->compiled().rules[number]},
                      before_->rules[number].limits);
    }
    if (limits_before_ == nullptr) return std::nullopt;
    const auto found = limits_before_->find(rule);
    if (found == limits_before_->end()) return std::nullopt;
    return found->second;
  }

  static bool SpecsDiffer(const CompiledPolicy& policy, const CompiledRule& rule,
                          const RuleOf& before) {
    return policy.spec.rules[rule.spec] != before.policy.spec.rules[before.rule.spec];
  }

  void Note(const std::string& rule, LimitChange what) {
    switch (what) {
      case LimitChange::kNone:
        break;
      case LimitChange::kGoesOn:
        change_.limits_changed.push_back(rule);
        break;
      case LimitChange::kStartsAnew:
        change_.started_anew.push_back(rule);
        break;
    }
  }

  const PolicyVersion* before_;
  const KeyHasher& hasher_;
  TextKeeper& texts_;
  RuleCounters& counters_;
  LastLimits& last_limits_;
  Now now_;
  bool shared_;
  bool moves_;
  const LimitsBefore* limits_before_;
  PolicyChange& change_;
  std::unordered_map<std::string_view, std::size_t> numbers_;  // Of rules before, not yet met.
};

}  // namespace

std::unique_ptr<PolicyVersion> MakeVersion(const Policy& policy, const PolicyVersion* before,
                                           const VersionContext& context, PolicyChange& change) {
  return VersionMaker(before, context, change).Make(policy);
}

}  // namespace weir
