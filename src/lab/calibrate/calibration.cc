#include "lab/calibrate/calibration.h"

#include <algorithm>

namespace weir::lab {

std::string ProposedRule::limit() const {
  std::string text = std::to_string(count) + "/" + std::string(kAllPeriods[period].in_limits);
  if (burst != 0 && burst != count) text += " burst " + std::to_string(burst);
  return text;
}

bool Calibration::is_partial() const noexcept {
  return changed_meanwhile ||
         std::ranges::any_of(logs, [](const LogCounts& log) { return !log.cut_short.empty(); });
}

}  // namespace weir::lab
