#include "algorithm/sliding_log.h"

#include <algorithm>

#include "algorithm/log_step.h"

namespace weir {

LogStep StepSlidingLog(const Limit& limit, EventLog& log, const StepRequest& request,
                       const Instant& at, Effect effect) noexcept {
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

void MergeSlidingLogs(const Limit& limit, EventLog& log, EventLog& late) noexcept {
  Event* place = log.First();
  for (Event* event = late.First(); event != nullptr; event = late.Next(event)) {
    const std::int64_t cost = AddUpTo(log.total(), event->cost, MostCounted(limit)) - log.total();
    if (cost == 0) continue;
    // Nothing can be put in between, so it counts for as long as the next one does: a little longer
    // than by itself, and never shorter.
    while (place != nullptr && place->at < event->at) place = log.Next(place);
    if (place == nullptr && log.MakeRoom()) {
      log.Append({.at = event->at, .cost = cost});
      continue;
    }
    if (place == nullptr) place = log.Last();
    if (place == nullptr) return;  // No memory at all: there is nowhere to remember it.
    place->at = std::max(place->at, event->at);
    log.Change(*place, cost);
  }
}

}  // namespace weir
