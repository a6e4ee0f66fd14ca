// The policy that was learnt, as a file that can be run as it is: in shadow mode, with comments
// that say where its limits come from and how to enforce them, laid out as `weir fmt` does.
#pragma once

#include <string>
#include <string_view>

#include "lab/calibrate/calibration.h"
#include "lab/calibrate/client_key.h"

namespace weir::lab {

// Without comments on what rules would have denied until that is known.
enum class Comments : std::uint8_t { kNone, kAll };
std::string PolicyTextOf(const Calibration& calibration, const ClientKey& key, Comments comments);

// 2026-01-05 10:00:00, in UTC.
std::string TextOfTime(WallTime time);
// 12,345
std::string Grouped(std::uint64_t number);
// 1 line, 2 lines
std::string Counted(std::uint64_t number, const std::string& thing);
// 99.9, 1.5: no more digits than it takes.
std::string TextOfNumber(double number);

// Whether a value can stand in a list of those that a rule is for, as it is.
bool CanBeListed(std::string_view value) noexcept;

}  // namespace weir::lab
