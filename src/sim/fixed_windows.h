// Fixed windows as the servers count them, however their clocks were moved.
//
// A window ends when the server's clock says so. While that clock goes forward, by jumps or not,
// each window lets its limit through once. A clock that is set back may come to the same window
// twice, so each stretch between two such steps is looked at by itself; but what was counted when
// the step came goes on to count, in the first window that is looked at afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weir/limit.h>

#include "sim/promise.h"

namespace weir::sim {

// The window that a wall clock is in, since 1970.
std::int64_t WindowAt(const LimitSpec& spec, WallTime wall);

// The first window with more in it than there may be.
std::optional<std::string> FindFullWindow(const Limit& limit,
                                          const std::vector<Admission>& admissions,
                                          const PromiseTerms& terms);

// Something was asked of a key, whatever came of it.
struct Touch {
  Duration asked{0};
  Duration answered = Duration::max();   // Until then it may have reached the server.
  std::optional<std::int64_t> window{};  // By the server's clock, if it was decided for sure.
};

// The first step back after which what was counted before had gone.
std::optional<std::string> FindGainByStepBack(const Limit& limit,
                                              const std::vector<Admission>& admissions,
                                              const std::vector<Touch>& touches,
                                              const PromiseTerms& terms);

}  // namespace weir::sim
