// What the tests of all algorithms share.
#pragma once

#include <cstdint>
#include <limits>

#include "../tests/conformance/driven_key.h"

namespace weir {

inline constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

// Returns how many single requests pass at once.
inline int TakeAll(DrivenKey& key) {
  int taken = 0;
  while (key.Check().allowed) ++taken;
  return taken;
}

}  // namespace weir
