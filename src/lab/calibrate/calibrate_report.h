// What was learnt from logs, as a report for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "lab/calibrate/calibration.h"
#include "lab/report.h"

namespace weir::lab {

Report ReportOf(const Calibration& of);
std::string JsonOf(const Calibration& of);

// What whoever reads a calibration must know first: what is missing.
std::vector<std::string> WarningsOf(const Calibration& of);
// What makes it less certain.
std::vector<std::string> CaveatsOf(const Calibration& of);

}  // namespace weir::lab
