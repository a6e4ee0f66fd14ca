#include "algorithm/concurrency.h"

#include "algorithm/log_step.h"

namespace weir {

LogStep StepConcurrency(const Limit& limit, EventLog& log, const Request& request,
                        const Instant& at, Effect effect) noexcept {
  return StepLog(limit, ToTicks(limit.spec().lease), log, request, at.now, effect);
}

}  // namespace weir
