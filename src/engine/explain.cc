// Why a decision comes out as it does, rule by rule. For people, so it takes its time.
#include <algorithm>
#include <vector>

#include "engine/engine_state.h"
#include "policy/policy_words.h"

namespace weir {
namespace {

class Explainer {
 public:
  Explainer(const PolicyVersion& version, const Request& request, std::int64_t cost)
      : version_(version),
        policy_(version.compiled()),
        tier_asked_(request.tier),
        request_(policy_.WithTierThatCounts(request)),
        facts_(request_),
        cost_(cost) {}

  Explanation Explain() {
    Explanation explanation;
    explanation.list = DecidingList();
    const CompiledPolicy::Tier tier = policy_.TierOf(tier_asked_);
    if (!policy_.tiers.empty()) explanation.tier = TierText(tier);
    std::uint32_t compiled = 0;
    for (std::uint32_t i = 0; i < policy_.spec.rules.size(); ++i) {
      const bool has_rule = compiled < policy_.rules.size() && policy_.rules[compiled].spec == i;
      explanation.rules.push_back(has_rule ? OfRule(compiled++, tier) : OfRuleThatIsOff(i));
    }
    return explanation;
  }

 private:
  std::string DecidingList() const {
    for (std::uint32_t i = 0; i < policy_.first_rule(); ++i) {
      if (!(*policy_.matcher)[i].Holds(facts_)) continue;
      if (i < policy_.allow_count) return "allow[" + std::to_string(i) + "]";
      return "deny[" + std::to_string(i - policy_.allow_count) + "]";
    }
    return "";
  }

  std::string TierText(const CompiledPolicy::Tier& tier) const {
    const std::string& name = policy_.tiers[tier.number];
    if (tier_asked_.empty()) return name + " (default, because the request has none)";
    if (!tier.known) {
      return name + " (default, because there is no tier " + Quoted(tier_asked_) + ")";
    }
    return name;
  }

  RuleExplanation OfRuleThatIsOff(std::uint32_t number) const {
    return {.rule = policy_.spec.rules[number].name,
            .why_not = "its mode is off",
            .key = "",
            .limit = "",
            .origin = "",
            .mode = "off",
            .cost_origin = ""};
  }

  RuleExplanation OfRule(std::uint32_t number, const CompiledPolicy::Tier& tier) const {
    const CompiledRule& rule = policy_.rules[number];
    RuleExplanation of{.rule = rule.name,
                       .why_not = policy_.MatchOf(number).WhyNot(facts_),
                       .key = "",
                       .limit = "",
                       .origin = "",
                       .mode = "",
                       .cost_origin = ""};
    of.matches = of.why_not.empty();
    SubjectWriter writer;
    const bool complete =
        policy_.keys[rule.key].Write(facts_, policy_.MatchOf(number), *policy_.hash, writer);
    const std::string subject(writer.Finish());
    of.key = subject;
    of.mode = ModeText(rule, of.key);
    if (of.matches && !IsAskedFor(rule)) {
      of.matches = false;
      of.why_not = "the request asks for other rules";
    }
    if (of.matches && !complete) {
      if (rule.unidentified == Unidentified::kSkipRule) {
        of.matches = false;
        of.why_not = "the request lacks a part of the key, and unidentified is skip";
        return of;
      }
      if (rule.unidentified == Unidentified::kDeny) {
        of.limit = "deny";
        of.origin = "unidentified: deny, because the request lacks a part of the key";
        return of;
      }
      of.key += " (shared by all who lack a part of the key)";
    }
    const auto chosen = policy_.ChooseLimit(rule, subject, tier.number);
    of.limit = version_.rules[number].limits[chosen.number].ToString();
    of.origin = OriginText(rule, chosen, tier);
    of.cost = rule.CostOf(facts_, cost_);
    of.cost_origin = CostText(rule, of.cost);
    return of;
  }

  bool IsAskedFor(const CompiledRule& rule) const {
    const auto wanted = facts_.request().rules;
    return wanted.empty() || std::ranges::find(wanted, rule.name) != wanted.end();
  }

  static std::string ModeText(const CompiledRule& rule, std::string_view subject) {
    if (!rule.enforced) return "shadow";
    if (!rule.share_hash) return "enforce";
    return rule.EnforcedFor(subject) ? "enforce (the key is in the enforced share)"
                                     : "shadow (the key is outside the enforced share)";
  }

  std::string OriginText(const CompiledRule& rule, const CompiledPolicy::ChosenLimit& chosen,
                         const CompiledPolicy::Tier& tier) const {
    const RuleSpec& spec = policy_.spec.rules[rule.spec];
    switch (chosen.origin) {
      case LimitOrigin::kTier:
        return "tiers." + policy_.tiers[tier.number] + "." + spec.tier_limit;
      case LimitOrigin::kOverride:
        if (spec.override_files.empty()) {
          return "overrides, number " + std::to_string(chosen.row);
        }
        // A row knows its number, but not which of several sources it came from.
        if (spec.override_files.size() > 1 || !spec.overrides.empty()) return "overrides";
        return spec.override_files.front() + ", line " + std::to_string(chosen.row);
      default:
        return "the rule";
    }
  }

  std::string CostText(const CompiledRule& rule, std::int64_t cost) const {
    if (!rule.cost) return cost_ == 1 ? "default" : "the request";
    if (rule.cost->attribute.empty()) return "the rule";
    if (!rule.cost->from_anyone && !facts_.request().trusted) {
      return "default, because only who is trusted may state a cost";
    }
    const std::string_view stated = facts_.Get(rule.cost_attribute);
    if (stated.empty()) return "default, because there is no " + rule.cost->attribute;
    const std::string text = rule.cost->attribute + " is " + Quoted(stated);
    return std::to_string(cost) == stated ? text : text + ", brought into bounds or not a number";
  }

  const PolicyVersion& version_;
  const CompiledPolicy& policy_;
  const std::string_view tier_asked_;
  const Request request_;
  const Facts facts_;
  const std::int64_t cost_;
};

}  // namespace

Explanation Engine::Explain(const Request& request, const Ask& ask) const {
  const auto version = state_->versions.Read();
  Explanation explanation =
      Explainer(*version, request, std::clamp<std::int64_t>(ask.cost, 0, kMaxCount)).Explain();
  std::vector<RuleDecision> each(kMaxGroupCharges);
  const Answer answer = state_->DoUnder(*version, request, ask, {.verb = Verb::kPeek}, each);
  explanation.decision = answer.decision;
  std::size_t next = 0;
  for (RuleExplanation& rule : explanation.rules) {
    if (rule.matches && explanation.list.empty() && next < answer.rules) {
      rule.decision = each[next++].decision;
    }
  }
  return explanation;
}

}  // namespace weir
