// What a policy says about the service itself, as front ends need it. Replaced as a whole when the
// policy is.
#pragma once

#include <memory>
#include <optional>

#include <weir/identity.h>
#include <weir/policy_spec.h>

namespace weir {

struct Settings {
  ServiceLimits limits{};
  bool x_ratelimit_headers = true;
  bool ratelimit_headers = true;
  ResetStyle reset = ResetStyle::kEpoch;
  Duration max_wait = std::chrono::seconds(60);
  std::optional<Duration> queue_hold{};
  bool queues = false;                 // Some rule does.
  std::optional<Identity> identity{};  // Always there in a service.

  // `identity` is that of the same policy.
  static std::shared_ptr<const Settings> Of(const PolicySpec& spec,
                                            std::optional<Identity> identity = std::nullopt);
};

}  // namespace weir
