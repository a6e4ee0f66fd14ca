#include "server/policy_in_memory.h"

#include <filesystem>
#include <utility>

namespace weir {

PolicySpec SpecInMemory(const Policy& policy, const std::string& file) {
  PolicySpec spec = policy.spec();
  spec.store = PolicySpec().store;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  for (RuleSpec& rule : spec.rules) {
    for (std::string& name : rule.override_files) name = (folder / name).string();
  }
  return spec;
}

Policy InMemory(const Policy& policy, const std::string& file) {
  if (policy.spec().store == PolicySpec().store) return policy;
  PolicyReport report = Policy::Make(SpecInMemory(policy, file));
  return report.policy ? *report.policy : policy;
}

}  // namespace weir
