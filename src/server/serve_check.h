// weir serve --check: would it start?
#pragma once

#include "server/console.h"
#include "server/serve.h"

namespace weir {

// Goes the way of a start up to where it would serve: the policy, secrets, listeners, the store.
// Prints what is wrong, and what a person should know.
int RunServeCheck(const ServeOptions& options, const Console& console);

}  // namespace weir
