// One scenario under many seeds, on many threads, each with a world of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/fleet/fleet.h"
#include "lab/fleet/judge.h"
#include "lab/fleet/measures.h"
#include "lab/fleet/scenario.h"
#include "lab/progress.h"
#include "sim/lua_engine.h"

namespace weir::lab {

// What came of one seed.
struct Outcome {
  Record record{};
  Measures measures{};
  Verdict verdict{};
  std::vector<std::string> unmet{};  // Expectations.

  bool is_clean() const { return verdict.is_clean() && unmet.empty(); }
};

Outcome RunSeed(const Scenario& scenario, std::uint64_t seed, sim::LuaEngine& lua,
                const FleetOptions& options = {});

struct CampaignOptions {
  std::uint64_t seed = 1;   // The first,
  std::uint64_t seeds = 1;  // and how many.
  int threads = 0;          // 0: one for each core.
  Progress* progress = nullptr;
  // Tests only.
  FleetOptions fleet{};
  sim::LuaEngine::Options lua{};
  bool stops_at_first = false;  // That is not clean.
};

struct BrokenSeed {
  std::uint64_t seed = 0;
  std::vector<std::string> what{};
};

struct CampaignResult {
  std::uint64_t runs = 0;
  std::uint64_t clean = 0;
  std::uint64_t requests = 0;
  std::uint64_t events = 0;
  Duration simulated{0};
  Verdict verdict{};                 // Of all seeds together.
  std::vector<BrokenSeed> broken{};  // In the order of their seeds.
};

CampaignResult RunCampaign(const Scenario& scenario, const CampaignOptions& options);

}  // namespace weir::lab
