// weir calibrate: which limits would fit those who really come?
#pragma once

#include <string>

#include "server/console.h"
#include "server/log_options.h"

namespace weir {

struct CalibrateOptions {
  LogOptions logs{};
  std::string key = "ip";
  double quantile = 99.9;
  double margin = 1.5;
  std::string policy{};  // Where the policy goes; -: standard output, and nothing else does.
  std::string html{};
  bool json = false;
};

int RunCalibrate(const CalibrateOptions& options, const Console& console);

}  // namespace weir
