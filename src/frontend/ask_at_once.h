// A question to an engine whose store is in this process: answered before anybody waits.
#pragma once

#include <weir/engine.h>
#include <weir/result.h>

#include "engine/loop_engine.h"

namespace weir {

// Not for Question::Kind::kCheck, which is asked in batches.
Result<Answer> AskAtOnce(Engine& engine, const Question& question, Now now);

}  // namespace weir
