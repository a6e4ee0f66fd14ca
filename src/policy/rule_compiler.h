// One rule of a policy, compiled.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/compiled_policy.h"
#include "policy/policy_compiler.h"
#include "policy/problems.h"

namespace weir {

class RuleCompiler {
 public:
  RuleCompiler(CompiledPolicy& policy, const std::string& folder, ProblemList& problems)
      : policy_(policy), folder_(folder), problems_(problems) {}

  // Adds the rule to the policy, and its match to `matches`; problems otherwise.
  void Compile(std::uint32_t number, const Where& where, std::vector<CompiledMatch>& matches);

 private:
  // Nothing if it makes no sense.
  std::optional<CompiledMatch> CompileMatch(const Match& match, const Where& where);
  // The match is null if it made no sense; then names of path segments are not looked for.
  bool CompileKey(const RuleSpec& spec, const CompiledMatch* match, const Where& where,
                  CompiledRule& rule);
  bool CompileSource(const KeyAttribute& attribute, const CompiledMatch* match, const Where& where,
                     KeyPlan::Source& source);
  bool CompileLimits(const RuleSpec& spec, const Where& where, CompiledRule& rule);
  bool CompileTiers(const RuleSpec& spec, const Where& where, CompiledRule& rule);
  void CompileCost(const RuleSpec& spec, const Where& where, CompiledRule& rule);
  void CompileBlock(const BlockSpec& spec, const Where& where, CompiledRule& rule);
  void CheckSettings(const RuleSpec& spec, const Where& where);
  std::uint32_t KeyNumber(KeyPlan plan);

  CompiledPolicy& policy_;
  const std::string& folder_;
  ProblemList& problems_;
  // By what it writes for a request, roughly: equal plans have equal texts.
  std::unordered_multimap<std::string, std::uint32_t> plans_;
};

// The limit with which the others of a rule must agree on how they count: the first that counts at
// all, or null.
const Limit* FirstCounted(const CompiledRule& rule);

// Fills the rule's table of overrides from the spec and from its files.
void CompileOverrides(const RuleSpec& spec, const CompiledMatch& match, const Where& where,
                      const std::string& folder, CompiledPolicy& policy, CompiledRule& rule,
                      ProblemList& problems);

}  // namespace weir
