// Sliding window, estimated: the count of the window before, weighted by how much of it the last
// period still covers, plus the count of this one.
//
//   admits iff   floor(previous * (1 - f) + current) + cost <= limit, f = elapsed fraction
//   promise      at most limit + ceil(limit * t / W) in any interval t <= W, so 2 * limit in the
//                worst W: the estimate takes the previous window's requests for evenly spread
//   fresh        both windows are over
//
// For a limit that holds in every window of every alignment, see the strict window.
#pragma once

#include "algorithm/step.h"

namespace weir {

struct SlidingWindowState {
  Ticks end{0};  // Of the current window.
  std::int64_t previous = 0;
  std::int64_t current = 0;
};

Step<SlidingWindowState> StepSlidingWindow(const Limit& limit, const SlidingWindowState& state,
                                           const StepRequest& request, const Instant& at) noexcept;

SlidingWindowState CarrySlidingWindow(const Limit& from, const Limit& to,
                                      const SlidingWindowState& state) noexcept;

// What both have counted of one key under `limit`, for a key that was carried over to it while
// others were still counting it under the limit before.
SlidingWindowState MergeSlidingWindows(const Limit& limit, const SlidingWindowState& one,
                                       const SlidingWindowState& other, const Instant& at) noexcept;

}  // namespace weir
