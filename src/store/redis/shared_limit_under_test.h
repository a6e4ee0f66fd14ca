// Limits as a shared store counts them, from their text.
#pragma once

#include <string_view>

#include <weir/limit.h>

namespace weir::redis {

// Requires a text that is right; any other ends the test.
inline Limit SharedLimit(std::string_view text, const LimitSpec& defaults = {}) {
  return Limit::Parse(text, defaults).value().ForSharedStore().value();
}

}  // namespace weir::redis
