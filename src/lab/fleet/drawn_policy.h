// Policies that nobody wrote: rules, algorithms and limits from a seed.
#pragma once

#include <weir/policy_spec.h>

#include "sim/random.h"

namespace weir::lab {

// One rule of it counts everything and refuses nothing, so that what was charged can be seen.
PolicySpec DrawnPolicy(sim::Random& random);

// The same rules, some with another count or burst.
PolicySpec WithOtherLimits(PolicySpec spec, sim::Random& random);

}  // namespace weir::lab
