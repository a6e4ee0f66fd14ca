// Sliding window, strict: the period is cut into m sub-windows, and the last m + 1 of them are
// counted whole, the current one among them. Any interval of one period lies within m + 1
// sub-windows, so none ever sees more than the limit.
//
//   admits iff   sum of the last m + 1 sub-windows + cost <= limit
//   promise      at most limit in every interval of length W; refuses up to W / m longer than an
//                exact log would
//   fresh        all sub-windows are over
#pragma once

#include <array>

#include "algorithm/step.h"

namespace weir {

struct StrictWindowState {
  Ticks end{0};                                           // Of the current sub-window.
  std::array<std::int64_t, kMaxSubWindows + 1> counts{};  // The current one first.
};

// How many of `counts` the limit uses: m + 1.
inline std::size_t CountedSubWindows(const Limit& limit) noexcept {
  return static_cast<std::size_t>(limit.spec().sub_windows) + 1;
}

Step<StrictWindowState> StepStrictWindow(const Limit& limit, const StrictWindowState& state,
                                         const StepRequest& request, const Instant& at) noexcept;

StrictWindowState CarryStrictWindow(const Limit& from, const Limit& to,
                                    const StrictWindowState& state) noexcept;

// What both have counted of one key under `limit`, for a key that was carried over to it while
// others were still counting it under the limit before.
StrictWindowState MergeStrictWindows(const Limit& limit, const StrictWindowState& one,
                                     const StrictWindowState& other, const Instant& at) noexcept;

// When nothing of `state` counts any more.
Ticks FreshAt(const Limit& limit, const StrictWindowState& state) noexcept;

}  // namespace weir
