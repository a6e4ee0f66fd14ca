// weir simulate: what would a fleet do in this world?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <weir/clock.h>

#include "server/console.h"

namespace weir {

struct SimulateOptions {
  std::vector<std::string> scenarios{};
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;  // So many, from `seed` on.
  int threads = 0;          // 0: one for each core.
  std::string html{};
  std::string svg{};
  bool json = false;
  Clock* clock = nullptr;  // Tests only: of the progress that is shown.
};

int RunSimulate(const SimulateOptions& options, const Console& console);

}  // namespace weir
