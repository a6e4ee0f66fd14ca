#include "lab/fleet/rulebook.h"

#include "policy/compiled_policy.h"

namespace weir::lab {
namespace {

// Of those who lack a part of the key, where a rule refuses them.
const Limit& NoLimitToPassUnder() {
  static const Limit kDeny = Limit::Parse("deny").value();
  return kDeny;
}

}  // namespace

ExpectedUses ExpectUses(const Policy& policy, const Request& asked) {
  const CompiledPolicy& compiled = policy.compiled();
  const Request request = compiled.WithTierThatCounts(asked);
  const Facts facts(request);
  ExpectedUses expected;
  for (std::uint32_t i = 0; i < compiled.first_rule(); ++i) {
    if ((*compiled.matcher)[i].Holds(facts)) return {.is_counted = false};
  }
  const CompiledPolicy::Tier tier = compiled.TierOf(asked.tier);
  for (std::uint32_t i = 0; i < compiled.rules.size(); ++i) {
    const CompiledRule& rule = compiled.rules[i];
    if (!compiled.MatchOf(i).Holds(facts)) continue;
    SubjectWriter writer;
    const bool is_complete =
        compiled.keys[rule.key].Write(facts, compiled.MatchOf(i), *compiled.hash, writer);
    if (!is_complete && rule.unidentified == Unidentified::kSkipRule) continue;
    const bool is_refused = !is_complete && rule.unidentified == Unidentified::kDeny;
    const std::string subject(writer.Finish());
    const Limit& limit = is_refused
                             ? NoLimitToPassUnder()
                             : rule.limits[compiled.ChooseLimit(rule, subject, tier.number).number];
    ExpectedUse use{.rule = i,
                    .name = rule.name,
                    .key = subject,
                    .limit = &limit,
                    .is_shadow = !rule.EnforcedFor(subject),
                    .mode = rule.on_store_failure};
    if (rule.HasOwnCost()) use.own_cost = rule.CostOf(facts, 1);
    expected.uses.push_back(std::move(use));
  }
  return expected;
}

}  // namespace weir::lab
