// Whether a run kept the promises:
//
//   I1  never more was let through, in any interval, than the limit says, plus one burst for every
//       time that a server forgot something
//   I2  every request is answered once; what the store denied it had to deny, by all that it may
//       have been charged; what failed is answered as its rules say
//   I5  no more calls or connections than there may be
//   I6  every answer in time, and at once while the breaker is open
//   I7  two seconds after the last fault all is as before
//   I8  what was let through was charged, and nothing was charged twice
#pragma once

#include <string>
#include <vector>

#include "scenario.h"

namespace weir::simulation {

// What was broken, in words; empty if nothing was.
std::vector<std::string> Judge(const Scenario& scenario);

}  // namespace weir::simulation
