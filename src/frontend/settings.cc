#include "frontend/settings.h"

#include <algorithm>
#include <utility>

namespace weir {

std::shared_ptr<const Settings> Settings::Of(const PolicySpec& spec,
                                             std::optional<Identity> identity) {
  const auto has = [&](HeaderFamily family) {
    return std::ranges::find(spec.headers, family) != spec.headers.end();
  };
  return std::make_shared<Settings>(Settings{
      .limits = spec.limits,
      .x_ratelimit_headers = has(HeaderFamily::kXRateLimit),
      .ratelimit_headers = has(HeaderFamily::kRateLimit),
      .reset = spec.reset,
      .max_wait = spec.max_wait,
      .queue_hold = spec.queue_hold,
      .queues = std::ranges::any_of(spec.rules, [](const RuleSpec& rule) { return rule.queue; }),
      .identity = std::move(identity)});
}

}  // namespace weir
