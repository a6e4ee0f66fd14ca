// The range of limits and times that stores shared by many processes take: that of the script.
#pragma once

#include <weir/limit.h>

#include "trace.h"

namespace weir::conformance {

inline TraceOptions SharedOptions() {
  return {.ticks_per_nanosecond = 1,
          .most_per_second = kMaxSharedBucketRate,
          .most_cost = kMaxCount,
          .most_log_entries = kMaxSharedLogEntries,
          .server_clock = true};
}

inline Result<Limit> SharedLimit(const LimitSpec& spec) {
  const auto limit = Limit::Make(spec);
  return limit ? limit->ForSharedStore() : limit;
}

}  // namespace weir::conformance
