#include "engine/succession.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "policy/rule_compiler.h"

namespace weir {
namespace {

// What the limits of one rule may differ in.
using Shape = std::tuple<LimitKind, std::int64_t, Duration, std::int64_t>;
Shape ShapeOf(const Limit& limit) {
  const LimitSpec& spec = limit.spec();
  return {spec.kind, spec.count, spec.period, spec.burst};
}

// The tier whose limit has this number, if it is a tier's.
const std::string* TierWith(std::size_t number, const RuleOf& of) {
  const auto found = std::ranges::find(of.rule.tiers, number);
  if (found == of.rule.tiers.end()) return nullptr;
  return &of.policy.tiers[static_cast<std::size_t>(found - of.rule.tiers.begin())];
}

class Predecessors {
 public:
  Predecessors(const RuleOf& now, const RuleLimits& before)
      : now_(now), before_(before), with_past_(OneWithPast(before.limits)) {
    for (const Limit& limit : before.limits) by_shape_.emplace(ShapeOf(limit), &limit);
    ReadOverrides();
  }

  Limit Of(std::size_t number) const {
    const Limit& limit = now_.rule.limits[number];
    if (const std::string* tier = TierWith(number, now_)) {
      if (before_.tiers.empty()) return before_.limits.front();
      const auto found = before_.tiers.find(*tier);
      return found != before_.tiers.end() ? before_.limits[found->second] : Unknown(limit);
    }
    if (number == 0) return before_.limits.front();
    const auto of_its_keys = of_overrides_.find(ShapeOf(limit));
    if (of_its_keys != of_overrides_.end() && of_its_keys->second != nullptr) {
      return *of_its_keys->second;
    }
    const auto equal = by_shape_.find(ShapeOf(limit));
    return equal != by_shape_.end() ? *equal->second : Unknown(limit);
  }

 private:
  // All have the same past, as far as they have one: those that count nothing do not.
  static const Limit& OneWithPast(const std::vector<Limit>& limits) {
    const auto has_past = [](const Limit& of) { return of.predecessor() != nullptr; };
    const auto found = std::ranges::find_if(limits, has_past);
    return found != limits.end() ? *found : limits.front();
  }

  // Who has it now was counted under one of several limits. In proportion to a wrong one the count
  // might go far beyond any of them, so it stays as it is.
  Limit Unknown(const Limit& limit) const { return limit.InPlaceOf(with_past_); }

  // Which limit the keys of every override had as an override before; null if not all of them had
  // the same. Those in files are too many to be remembered one by one.
  void ReadOverrides() {
    const RuleSpec& spec = now_.policy.spec.rules[now_.rule.spec];
    const LimitSpec defaults = LimitDefaults(spec, now_.policy.spec);
    for (const OverrideSpec& row : spec.overrides) {
      const Result<Limit> limit = Limit::Parse(row.limit, defaults);
      if (!limit) continue;
      const auto found = before_.overrides.find(row.key);
      const bool known_before = found != before_.overrides.end();
      const Limit* its = known_before ? &before_.limits[found->second] : nullptr;
      const auto [known, is_new] = of_overrides_.emplace(ShapeOf(*limit), its);
      if (!is_new && known->second != its) known->second = nullptr;
    }
  }

  const RuleOf& now_;
  const RuleLimits& before_;
  const Limit& with_past_;
  std::map<Shape, const Limit*> by_shape_;
  std::map<Shape, const Limit*> of_overrides_;
};

bool GoesOn(const Limit& limit, const Limit& before) {
  const bool both_count =
      limit.kind() == LimitKind::kCounted && before.kind() == LimitKind::kCounted;
  return !both_count || limit.predecessor() != nullptr || limit.state_salt() == before.state_salt();
}

}  // namespace

RuleLimits LimitsOf(const RuleOf& rule, const std::vector<Limit>& in_force) {
  RuleLimits of{.limits = in_force};
  for (std::size_t i = 0; i < rule.rule.tiers.size(); ++i) {
    of.tiers.emplace(rule.policy.tiers[i], rule.rule.tiers[i]);
  }
  std::map<Shape, std::uint32_t> by_shape;
  for (std::uint32_t i = 0; i < in_force.size(); ++i) by_shape.emplace(ShapeOf(in_force[i]), i);
  const RuleSpec& spec = rule.policy.spec.rules[rule.rule.spec];
  const LimitSpec defaults = LimitDefaults(spec, rule.policy.spec);
  for (const OverrideSpec& row : spec.overrides) {
    const Result<Limit> limit = Limit::Parse(row.limit, defaults);
    if (!limit) continue;
    const auto found = by_shape.find(ShapeOf(*limit));
    if (found != by_shape.end()) of.overrides.emplace(row.key, found->second);
  }
  return of;
}

Succession Succeed(const RuleOf& now, const RuleLimits& before, Now when) {
  const auto same = [](const Limit& a, const Limit& b) { return a.spec() == b.spec(); };
  if (std::ranges::equal(now.rule.limits, before.limits, same)) {
    return {.change = LimitChange::kNone, .limits = before.limits};
  }
  Succession succession{.change = LimitChange::kGoesOn};
  const Predecessors predecessors(now, before);
  for (std::size_t i = 0; i < now.rule.limits.size(); ++i) {
    const Limit predecessor = predecessors.Of(i);
    succession.limits.push_back(now.rule.limits[i].ReplacingAmongOthers(predecessor, when));
    const bool goes_on = GoesOn(succession.limits.back(), predecessor);
    if (!goes_on) succession.change = LimitChange::kStartsAnew;
  }
  return succession;
}

Succession Resume(const std::vector<Limit>& limits, const Limit& last, Now when) {
  Succession succession{.change = LimitChange::kGoesOn};
  const bool same = limits.front().spec() == last.spec();
  for (const Limit& limit : limits) {
    const Limit in_place = &limit == &limits.front() ? last : limit.InPlaceOf(last);
    succession.limits.push_back(same ? in_place : limit.ReplacingAmongOthers(in_place, when));
  }
  if (!GoesOn(succession.limits.front(), last)) succession.change = LimitChange::kStartsAnew;
  return succession;
}

}  // namespace weir
