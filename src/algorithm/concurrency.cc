#include "algorithm/concurrency.h"

#include "algorithm/log_step.h"

namespace weir {

LogStep StepConcurrency(const Limit& limit, EventLog& log, const StepRequest& request,
                        const Instant& at, Effect effect) noexcept {
  StepRequest ending = request;
  if (request.verb == Verb::kSettle) ending.cost = 0;
  LogStep step = StepLog(limit, ToTicks(limit.spec().lease), log, ending, at.now, effect);
  step.decision.cost = request.cost;
  return step;
}

}  // namespace weir
