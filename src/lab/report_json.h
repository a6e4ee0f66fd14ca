// A report as the page reads it (web/src/report.ts): compact, since a plot may have thousands of
// values, and harmless inside a script element, whatever text it holds.
#pragma once

#include <string>

#include "lab/report.h"

namespace weir::lab {

std::string ReportJson(const Report& report);

}  // namespace weir::lab
