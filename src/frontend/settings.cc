#include "frontend/settings.h"

#include <algorithm>

namespace weir {

std::shared_ptr<const Settings> Settings::Of(const PolicySpec& spec) {
  const auto has = [&](HeaderFamily family) {
    return std::ranges::find(spec.headers, family) != spec.headers.end();
  };
  return std::make_shared<Settings>(Settings{.limits = spec.limits,
                                             .x_ratelimit_headers = has(HeaderFamily::kXRateLimit),
                                             .ratelimit_headers = has(HeaderFamily::kRateLimit),
                                             .reset = spec.reset,
                                             .max_wait = spec.max_wait});
}

}  // namespace weir
