// Advice on rules that never decide, because a tighter one applies whenever they do.
#include <algorithm>
#include <map>

#include "limit/limit_check.h"
#include "limit/limit_words.h"
#include "policy/compiled_policy.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

// At most the same rate and the same burst.
bool IsTighter(const Limit& a, const Limit& b) {
  if (a.kind() != LimitKind::kCounted || b.kind() != LimitKind::kCounted) return false;
  if (a.state_salt() != b.state_salt() || a.spec().overdraft != b.spec().overdraft) return false;
  if (!IsBucket(a.algorithm())) return a.capacity() <= b.capacity();
  return a.emission_interval() >= b.emission_interval() && a.capacity() <= b.capacity();
}

// Finds rules that never decide, because a tighter one applies whenever they do. Only rules with
// one limit for all, of which one can tell at a glance.
class CoverFinder {
 public:
  explicit CoverFinder(const CompiledPolicy& policy) : policy_(policy) {
    for (std::uint32_t i = 0; i < policy.rules.size(); ++i) {
      if (IsPlain(policy.rules[i])) by_key_[policy.rules[i].key].push_back(i);
    }
  }

  void Advise(ProblemList& problems) const {
    const Where top;
    const Where rules(top, "rules");
    std::size_t left = kMostPairs;
    for (const auto& [key, group] : by_key_) {
      if (group.size() * group.size() > left) continue;
      left -= group.size() * group.size();
      for (const std::uint32_t wide : group) {
        const auto covers = [&](std::uint32_t tight) { return CoveredBy(wide, tight); };
        const auto found = std::ranges::find_if(group, covers);
        if (found == group.end()) continue;
        const CompiledRule& rule = policy_.rules[wide];
        problems.Add(ProblemCode::kCovered, Where(rules, std::size_t{rule.spec}),
                     "the rule " + Quoted(rule.name) +
                         " never decides: " + Quoted(policy_.rules[*found].name) +
                         " applies to the same requests and keys and is at least as tight; remove "
                         "one of the two");
      }
    }
  }

 private:
  // Every two that count by the same key are compared. Among thousands nobody finds his way by
  // advice, and a reload must not take longer for it.
  static constexpr std::size_t kMostPairs = 2'000'000;

  static bool IsPlain(const CompiledRule& rule) {
    return rule.limits.size() == 1 && rule.overrides == nullptr && !rule.share_hash && !rule.cost;
  }

  bool CoveredBy(std::uint32_t wide_number, std::uint32_t tight_number) const {
    const CompiledRule& wide = policy_.rules[wide_number];
    const CompiledRule& tight = policy_.rules[tight_number];
    if (wide_number == tight_number || !tight.enforced) return false;
    // Where these differ the wide one may decide alone.
    if (tight.unidentified != wide.unidentified) return false;
    if (tight.on_store_failure != wide.on_store_failure) return false;
    if (!IsTighter(tight.limits.front(), wide.limits.front())) return false;
    const CompiledMatch& wide_match = policy_.MatchOf(wide_number);
    const CompiledMatch& tight_match = policy_.MatchOf(tight_number);
    if (!tight_match.Covers(wide_match)) return false;
    // Of two that are the same, the later one is superfluous.
    const bool same = wide.enforced && IsTighter(wide.limits.front(), tight.limits.front()) &&
                      wide_match.Covers(tight_match);
    return !same || tight_number < wide_number;
  }

  const CompiledPolicy& policy_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_key_;
};

}  // namespace

void AdviseOnCovered(const CompiledPolicy& policy, ProblemList& problems) {
  CoverFinder(policy).Advise(problems);
}

}  // namespace weir
