// Sliding log: every admission is remembered until it is a full period old.
//
//   admits iff   cost admitted in (now - W, now] + cost <= limit
//   promise      at most limit in every interval of length W, exactly
//   fresh        the log is empty
//
// Admissions of the same instant share an event, so there are never more events that count than the
// limit; what was given back in between may leave holes, tidied up before they are the greater
// part. An event later than the clock says stays. When the last of them is more than a period
// later, the clock was broken, and every event of the future counts as of now.
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

LogStep StepSlidingLog(const Limit& limit, EventLog& log, const StepRequest& request,
                       const Instant& at, Effect effect) noexcept;

void CarrySlidingLog(const Limit& from, const Limit& to, EventLog& log) noexcept;

// Adds to `log` what `late` has counted of the same key, for a key that was carried over to `limit`
// while others were still counting it under the limit before.
void MergeSlidingLogs(const Limit& limit, EventLog& log, EventLog& late) noexcept;

}  // namespace weir
