// Whether what a scenario says can happen in one world.
#pragma once

#include "lab/fleet/scenario.h"
#include "policy/problems.h"

namespace weir::lab {

void CheckScenario(const Scenario& scenario, ProblemList& problems);

// How many servers hold data.
Between<int> ServersOf(const StoreSpec& store);

}  // namespace weir::lab
