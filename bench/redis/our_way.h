// Checks through the store for Redis as the service has it: one thread, one connection.
#pragma once

#include <cstddef>

#include "measurement.h"

namespace weir::bench {

struct OurOptions {
  std::size_t rules = 1;         // Charges of a group.
  std::size_t in_flight = 1024;  // Groups under way, in a closed loop.
  double rate = 0;               // Groups a second at random times; 0: a closed loop.
};
void RunOurWay(const RunOptions& options, const OurOptions& ours);

}  // namespace weir::bench
