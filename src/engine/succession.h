// How the limits of a rule take over from those that it had under the policy before.
//
// A rule may have many limits, of tiers and of overrides, and they share the state of their keys:
// a key that goes from one to another takes along what it has used. So when one of them changes
// all become successors, each of the one whose keys it most likely has now.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <weir/limit.h>
#include <weir/limiter.h>

namespace weir {

class CompiledPolicy;
struct CompiledRule;

// A rule of one version and the policy around it.
struct RuleOf {
  const CompiledPolicy& policy;
  const CompiledRule& rule;
};

struct Succession {
  LimitChange change = LimitChange::kNone;
  std::vector<Limit> limits{};  // In the order of the compiled rule's.
};

// What a rule counts by, and whose each limit is.
struct RuleLimits {
  using Key = std::vector<std::pair<std::string, std::string>>;

  std::vector<Limit> limits{};                   // In the order of the compiled rule's.
  std::map<std::string, std::uint32_t> tiers{};  // Which of them; none if all tiers have the same.
  // Of those keys that the policy itself names. Those in files are too many.
  std::map<Key, std::uint32_t> overrides{};
};
// `in_force` are its limits as they count, in the order of the compiled rule's.
RuleLimits LimitsOf(const RuleOf& rule, const std::vector<Limit>& in_force);

Succession Succeed(const RuleOf& now, const RuleLimits& before, Now when);

// The same for a rule that did not count for a while, and counted by `last` before that.
Succession Resume(const std::vector<Limit>& limits, const Limit& last, Now when);

}  // namespace weir
