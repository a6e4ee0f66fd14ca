// weir serve: the service. In this version it holds a policy and keeps it up to date.
#pragma once

#include <string>

#include "server/console.h"

namespace weir {

struct ServeOptions {
  std::string policy_file;
  bool force_reload = false;  // Takes changes that look like accidents.
};

// Returns when told to stop. Prints `ready` when it is up.
int RunServe(const ServeOptions& options, const Console& console);

}  // namespace weir
