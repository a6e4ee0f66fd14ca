// Traffic through one limit, on the engine itself in virtual time, and what is to be said of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <weir/limit.h>

#include "lab/compare/contender.h"
#include "lab/compare/passage.h"
#include "lab/compare/traffic.h"
#include "lab/progress.h"

namespace weir::lab {

// How far off it is what a limiter believes to have let through in the last period, after each
// decision, as a part of the limit.
struct CountError {
  double typical = 0;  // The mean of the absolute values.
  double too_low = 0;  // The worst on either side: it believed less than was true,
  double too_high = 0;
  double worst() const { return too_low > too_high ? too_low : too_high; }
};

// Decisions that an exact count of what went ahead in the last period would have made otherwise.
struct Otherwise {
  std::int64_t allowed = 0;  // Although the limit was used up.
  std::int64_t denied = 0;   // Although there was room.
};

struct Trial {
  std::int64_t admitted = 0;  // Requests.
  std::int64_t denied = 0;
  std::int64_t never_fits = 0;  // Of those denied; they cost more than the limit ever has.
  std::int64_t admitted_cost = 0;

  Stretch worst_window{};
  double factor = 0;  // That, as a multiple of the limit.
  Promise promise{};
  bool is_kept = true;
  WorstBurst worst_burst{};

  // Not for buckets, which count no window,
  std::optional<CountError> error{};
  // nor for a queue, which lets ahead later what it decides on now.
  std::optional<Otherwise> otherwise{};

  // From a denial until the next request passes, or would have passed had it come; the longest.
  Duration lock_out{0};
  Duration lock_out_from{0};

  Duration mean_delay{0};
  Duration max_delay{0};

  std::vector<Arrival> passed{};  // When each went ahead, in the order of time.
};

Trial RunTrial(const Limit& limit, const Traffic& traffic, Progress* progress = nullptr);

// What one key takes in a large store in memory, measured: a bucket or a window with something in
// it, and a log that remembers as much as its limit lets it.
double BytesPerKey(const Limit& limit);

}  // namespace weir::lab
