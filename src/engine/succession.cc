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

// The number of the limit of a tier, if there is such a tier.
std::optional<std::size_t> LimitOfTier(const std::string& tier, const RuleOf& of) {
  const auto found = std::ranges::lower_bound(of.policy.tiers, tier);
  if (of.rule.tiers.empty() || found == of.policy.tiers.end() || *found != tier) {
    return std::nullopt;
  }
  return of.rule.tiers[static_cast<std::size_t>(found - of.policy.tiers.begin())];
}

class Predecessors {
 public:
  Predecessors(const RuleOf& now, const RuleOf& before, const std::vector<Limit>& limits_before)
      : now_(now),
        before_(before),
        limits_before_(limits_before),
        with_past_(OneWithPast(limits_before)) {
    for (const Limit& limit : limits_before) by_shape_.emplace(ShapeOf(limit), &limit);
    ReadOverrides();
  }

  Limit Of(std::size_t number) const {
    const Limit& limit = now_.rule.limits[number];
    if (const std::string* tier = TierWith(number, now_)) {
      if (before_.rule.tiers.empty()) return limits_before_.front();
      if (const auto found = LimitOfTier(*tier, before_)) return limits_before_[*found];
      return Unknown(limit);
    }
    if (number == 0) return limits_before_.front();
    const auto of_its_keys = of_overrides_.find(ShapeOf(limit));
    if (of_its_keys != of_overrides_.end() && of_its_keys->second != nullptr) {
      return *of_its_keys->second;
    }
    const auto equal = by_shape_.find(ShapeOf(limit));
    return equal != by_shape_.end() ? *equal->second : Unknown(limit);
  }

 private:
  using Rows = std::map<std::vector<std::pair<std::string, std::string>>, const Limit*>;

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
    const Rows rows_before = RowsBefore();
    const RuleSpec& spec = now_.policy.spec.rules[now_.rule.spec];
    const LimitSpec defaults = LimitDefaults(spec, now_.policy.spec);
    for (const OverrideSpec& row : spec.overrides) {
      const Result<Limit> limit = Limit::Parse(row.limit, defaults);
      if (!limit) continue;
      const auto found = rows_before.find(row.key);
      const Limit* its = found != rows_before.end() ? found->second : nullptr;
      const auto [known, is_new] = of_overrides_.emplace(ShapeOf(*limit), its);
      if (!is_new && known->second != its) known->second = nullptr;
    }
  }

  Rows RowsBefore() const {
    Rows rows;
    const RuleSpec& spec = before_.policy.spec.rules[before_.rule.spec];
    const LimitSpec defaults = LimitDefaults(spec, before_.policy.spec);
    for (const OverrideSpec& row : spec.overrides) {
      const Result<Limit> limit = Limit::Parse(row.limit, defaults);
      if (!limit) continue;
      const auto found = by_shape_.find(ShapeOf(*limit));
      rows.emplace(row.key, found == by_shape_.end() ? nullptr : found->second);
    }
    return rows;
  }

  const RuleOf& now_;
  const RuleOf& before_;
  const std::vector<Limit>& limits_before_;
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

Succession Succeed(const RuleOf& now, const RuleOf& before, const std::vector<Limit>& limits_before,
                   Now when) {
  const auto same = [](const Limit& a, const Limit& b) { return a.spec() == b.spec(); };
  if (std::ranges::equal(now.rule.limits, before.rule.limits, same)) {
    return {.change = LimitChange::kNone, .limits = limits_before};
  }
  Succession succession{.change = LimitChange::kGoesOn};
  const Predecessors predecessors(now, before, limits_before);
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
