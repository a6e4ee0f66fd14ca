// What was learnt from logs, as a report for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lab/calibrate/calibration.h"
#include "lab/report.h"

namespace weir::lab {

Report ReportOf(const Calibration& calibration);
nlohmann::ordered_json JsonOf(const Calibration& calibration);

// What whoever reads a calibration must know first: what is missing.
std::vector<std::string> WarningsOf(const Calibration& calibration);
// What makes it less certain.
std::vector<std::string> CaveatsOf(const Calibration& calibration);

}  // namespace weir::lab
