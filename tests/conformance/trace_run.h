// Many random traces in a row, until one goes wrong.
//
// WEIR_SEED=n   repeat a run (the seed of each run is printed)
// WEIR_STEPS=n  steps per algorithm (default 1,000,000, and 100,000 under a sanitizer)
// WEIR_SHORT=1  a fifth of that
// WEIR_TRACE=n  run one trace only, by the seed that a failure printed
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trace.h"

namespace weir::conformance {

struct SeedRun {
  std::size_t steps = 0;
  std::optional<std::string> wrong{};
};

// Runs seed after seed until enough steps were made, or one went wrong: what. Where steps take
// long, so many times fewer than the default are made.
std::optional<std::string> RunSeeds(Family family, std::uint64_t fewer,
                                    const std::function<SeedRun(std::uint64_t seed)>& run);

// Nothing, or what went wrong with the shortest trace found that still goes wrong.
std::optional<std::string> RunTraces(Family family, const TraceOptions& options, const Trial& trial,
                                     std::uint64_t fewer = 1);

}  // namespace weir::conformance
