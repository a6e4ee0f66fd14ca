// A PolicySpec as a CompiledPolicy, or the reasons why it cannot be one.
#pragma once

#include <memory>
#include <string>

#include <weir/policy_spec.h>

#include "policy/problems.h"

namespace weir {

class CompiledPolicy;

// Null if there are errors among the problems, those from before included. Files that the policy
// names are looked for in `folder`.
std::shared_ptr<const CompiledPolicy> CompilePolicy(PolicySpec spec, const std::string& folder,
                                                    ProblemList& problems);

// --- Parts of it ---

// Whether every text is UTF-8, without which it cannot be written to a file.
void CheckTexts(const PolicySpec& spec, ProblemList& problems);
// Whether everything but rules, tiers and lists makes sense.
void CheckService(const PolicySpec& spec, ProblemList& problems);
// Whether every test of the match makes sense by itself. `where` is that of the match.
void CheckMatch(const Match& match, const Where& where, ProblemList& problems);
// What experience says about a policy that has no errors.
void Advise(const CompiledPolicy& policy, ProblemList& problems);
// The part of it about rules that others make superfluous.
void AdviseOnCovered(const CompiledPolicy& policy, ProblemList& problems);

// How the limits of a rule count, before anything is said about how much.
LimitSpec LimitDefaults(const RuleSpec& rule, const PolicySpec& spec);

// Whether the state is shared with other processes.
bool HasSharedStore(const PolicySpec& spec);
// Why the policy's store cannot count by the limit; empty if it can.
std::string WhyBeyondStore(const Limit& limit, const PolicySpec& spec);

// Whether a key can go from one limit to the other and keep its state: they differ in count and
// burst only, or in the period of a bucket.
bool CountsAlike(const Limit& a, const Limit& b);

// A path as it is if it is absolute, else inside `folder`.
std::string PathIn(const std::string& folder, const std::string& path);

}  // namespace weir
