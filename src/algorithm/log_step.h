// The step that the sliding log and the concurrency limit share: events count for `lifetime`.
#pragma once

#include "algorithm/sliding_log.h"

namespace weir {

LogStep StepLog(const Limit& limit, Ticks lifetime, EventLog& log, const StepRequest& request,
                Ticks now, Effect effect) noexcept;

}  // namespace weir
