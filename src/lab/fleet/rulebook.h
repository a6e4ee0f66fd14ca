// What a policy has to say about a request before anybody is asked: which rules count it, under
// which key and which limit. Worked out apart from the engine, so that the two can be compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weir/policy.h>
#include <weir/request.h>

namespace weir::lab {

struct ExpectedUse {
  std::uint32_t rule = 0;  // Among the compiled rules.
  std::string name;
  std::string key;
  const Limit* limit = nullptr;            // Of the policy, good as long as that.
  std::optional<std::int64_t> own_cost{};  // None: what the request says.
  bool is_shadow = false;
  FailureMode mode = FailureMode::kStatic;
};

struct ExpectedUses {
  bool is_counted = true;           // No list decides.
  std::vector<ExpectedUse> uses{};  // In the order of the policy.
};

ExpectedUses ExpectUses(const Policy& policy, const Request& asked);

}  // namespace weir::lab
