// The limits in force as JSON, for those who document an API or write a client for it. Nobody's
// state, and nothing that may be secret: of what a request must have for a rule to apply, only the
// values of method, path, host and tier are told.
#pragma once

#include <optional>
#include <string>

#include <weir/policy.h>

namespace weir {

std::string LimitsJson(const PolicySpec& spec);

// The same text as long as the policy is the same.
class LimitsPage {
 public:
  const std::string& TextOf(const Policy& policy);

 private:
  std::optional<Policy> policy_{};  // Kept, so that no other can be taken for it.
  std::string text_{};
};

}  // namespace weir
