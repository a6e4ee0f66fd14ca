// Sliding log: every admission is remembered until it is a full period old.
//
//   admits iff   cost admitted in (now - W, now] + cost <= limit
//   promise      at most limit in every interval of length W, exactly
//   fresh        the log is empty
//
// Admissions of the same instant share an event, so a log never holds more events than its limit.
// An event later than the clock says stays; one more than a period later is clock damage, and
// counts as of now.
#pragma once

#include "algorithm/event_log.h"
#include "algorithm/step.h"

namespace weir {

// A store decides first and charges later, when every limit of a group has agreed.
enum class Effect : bool { kDecideOnly, kApply };

struct LogStep {
  Decision decision;
  std::int64_t charged = 0;
  Ticks receipt{0};
  Ticks fresh_at{0};
};

LogStep StepSlidingLog(const Limit& limit, EventLog& log, const Request& request, const Instant& at,
                       Effect effect) noexcept;

void CarrySlidingLog(const Limit& from, const Limit& to, EventLog& log) noexcept;

}  // namespace weir
