// Fixed window: a count that starts again at every boundary. Windows begin at whole multiples of
// the period since 1970, or with the local day, week, month or year of a zone.
//
//   admits iff   count + cost <= limit
//   promise      at most limit per window, at most 2 * limit across a boundary
//   fresh        the window is over
//
// If the stored window is later than the clock says (another thread's reading, a step back), the
// stored one goes on; if it is more than one period later, the current window takes its count.
//
// A calendar window ends by the wall clock, and is forgotten by the steady one: one longest window
// after its end, as far as that is known when the key is charged or denied. So a wall clock that is
// set back by less than a window in all hands out nothing twice; one that is set back further may
// do so for keys that nobody asks for until they are forgotten.
#pragma once

#include "algorithm/step.h"

namespace weir {

// `end` counts ticks since the origin for windows aligned to the epoch, and nanoseconds since
// 1970 on the wall for calendar windows: the one thing that stays the same when clocks are set.
struct FixedWindowState {
  std::int64_t end = 0;
  std::int64_t count = 0;
  Ticks fresh_at{0};  // On the steady clock: the end, or for calendar windows a window later.
};

Step<FixedWindowState> StepFixedWindow(const Limit& limit, const FixedWindowState& state,
                                       const StepRequest& request, const Instant& at) noexcept;

FixedWindowState CarryFixedWindow(const Limit& from, const Limit& to,
                                  const FixedWindowState& state) noexcept;

// What both have counted of one key under `limit`, for a key that was carried over to it while
// others were still counting it under the limit before.
FixedWindowState MergeFixedWindows(const Limit& limit, const FixedWindowState& one,
                                   const FixedWindowState& other, const Instant& at) noexcept;

// The end of the window of length `window` that `at` lies in, windows being aligned to the epoch.
Ticks EpochWindowEnd(std::int64_t window, const Instant& at) noexcept;

}  // namespace weir
