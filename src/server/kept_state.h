// What a service does about its state when it starts and when it ends, and what it says about that.
#pragma once

#include <weir/engine.h>
#include <weir/policy.h>

#include "server/log.h"

namespace weir {

// An engine that goes on with the snapshot of the policy, if there is one. One that cannot be used
// is set aside, and the engine begins with nothing. The error is Engine::Make's.
[[nodiscard]] Result<Engine> ResumeEngine(const Policy& policy, const EngineOptions& options,
                                          const Log& log);

// Leaves a snapshot if the policy wants one. When nothing else uses the engine any more. False if
// it could not be written.
[[nodiscard]] bool KeepState(Engine& engine, const Policy& policy, const Log& log);

}  // namespace weir
