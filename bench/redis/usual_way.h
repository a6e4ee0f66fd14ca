// The way everybody does it: a script of HMGET, HMSET and PEXPIRE by the client's clock, one
// EVALSHA for each request, on connections from a pool that have one request under way each.
#pragma once

#include <cstddef>

#include "measurement.h"

namespace weir::bench {

// As fast as the connections go.
void RunUsualWay(const RunOptions& options, std::size_t connections);

}  // namespace weir::bench
