#include "algorithm/sliding_log.h"

#include <algorithm>

#include "algorithm/log_step.h"

namespace weir {

LogStep StepSlidingLog(const Limit& limit, EventLog& log, const Request& request, const Instant& at,
                       Effect effect) noexcept {
  return StepLog(limit, Ticks(limit.window()), log, request, at.now, effect);
}

void CarrySlidingLog(const Limit& from, const Limit& to, EventLog& log) noexcept {
  // Rounds the running total rather than each event: a log of many ones would not shrink at all.
  std::int64_t before = 0;
  std::int64_t carried = 0;
  for (Event* event = log.First(); event != nullptr; event = log.Next(event)) {
    before += event->cost;
    const std::int64_t total = std::min(InProportion(before, from, to), MostCounted(to));
    log.Change(*event, total - carried - event->cost);
    carried = total;
  }
  log.Tidy();
}

}  // namespace weir
