// How the limits of a rule take over from those that it had under the policy before.
//
// A rule may have many limits, of tiers and of overrides, and they share the state of their keys:
// a key that goes from one to another takes along what it has used. So when one of them changes
// all become successors, each of the one whose keys it most likely has now.
#pragma once

#include <vector>

#include <weir/limit.h>
#include <weir/limiter.h>

#include "policy/compiled_policy.h"

namespace weir {

// A rule of one version and the policy around it.
struct RuleOf {
  const CompiledPolicy& policy;
  const CompiledRule& rule;
};

struct Succession {
  LimitChange change = LimitChange::kNone;
  std::vector<Limit> limits{};  // In the order of the compiled rule's.
};

// `limits_before` are those in force so far, in the order of the compiled rule's.
Succession Succeed(const RuleOf& now, const RuleOf& before, const std::vector<Limit>& limits_before,
                   Now when);

// The same for a rule that did not count for a while, and counted by `last` before that.
Succession Resume(const std::vector<Limit>& limits, const Limit& last, Now when);

}  // namespace weir
