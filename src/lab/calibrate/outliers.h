// Who does not belong to the others: the few whose peaks are far above those of everybody else.
//
// Limits must not be learnt from those whom they are to stop. But honest clients differ by orders
// of magnitude, too, and the largest of them must not be taken for abusers because they are large.
// What tells the two apart is a gap. In a tail without one, however heavy, the logarithms of the
// k-th and the (k+1)-th largest value differ by about 1/k of what their neighbours exceed the next
// ones by (exactly so for a Pareto tail: k times the difference is exponentially distributed with
// the mean that Hill's estimator finds; the tail of a log-normal is lighter). So a gap is one that
// such a tail would have with a probability below a thousandth (three below those who have been
// found already), the estimate's own error included, and it must be wide as well: at least
// three times the largest of the others, and by more than chance would add to a count. Ten times
// the largest of all others is a gap whatever their tail is, and somewhat less is for several at
// once. At most a tenth of all are set apart: more are not few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::lab {

struct Gap {
  std::size_t above = 0;    // So many are set apart: 0, nobody is.
  std::uint32_t from = 0;   // The least of theirs,
  std::uint32_t below = 0;  // and the largest of the others.
  // How likely a gap like that is in a tail like that of the others.
  double chance = 1;
};

// `sorted`: the least first.
Gap FindGap(std::span<const std::uint32_t> sorted) noexcept;

// Of fewer clients than this it cannot be said who is unlike the others.
inline constexpr std::size_t kFewestForGap = 8;

}  // namespace weir::lab
