#include "frontend/metrics.h"

#include <algorithm>

namespace weir {

std::size_t ReplyCodeNumber(std::string_view code) noexcept {
  const auto* const found = std::ranges::find(kReplyCodes, code);
  return found != kReplyCodes.end() ? static_cast<std::size_t>(found - kReplyCodes.begin())
                                    : kReplyCodes.size() - 1;
}

}  // namespace weir
