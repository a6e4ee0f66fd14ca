// What a replay found, to be shown, and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "lab/replay/replay.h"
#include "lab/report.h"

namespace weir::lab {

// What was asked for.
struct ReplayShown {
  std::string policy{};   // The names of their files.
  std::string against{};  // Empty: there is none.
  bool spread = false;
  Duration horizon{};
  std::vector<std::string> warnings{};  // Known before it began: rules that had to be left out.
};

Report ReportOf(const ReplayResult& result, const ReplayShown& shown);
// Numbers as they are; times in seconds since 1970.
std::string JsonOf(const ReplayResult& result, const ReplayShown& shown);

}  // namespace weir::lab
