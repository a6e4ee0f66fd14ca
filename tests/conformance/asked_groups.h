// What tests share that hand groups to a store themselves.
#pragma once

#include <chrono>

#include <weir/time.h>

#include "store/store.h"

namespace weir::conformance {

// When such tests begin.
inline constexpr WallTime kStart{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)};

// For groups whose decisions are read from the groups themselves.
class Ignored final : public Completion {
 public:
  void OnDecided(Group&) noexcept override {}
};

}  // namespace weir::conformance
