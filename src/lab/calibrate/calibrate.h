// Learns limits from logs. They are read three times: for what each client asked for at most within
// each length of time, then for the burst that each needs at the rate that comes out of that, and
// then by the engine itself, under the policy that comes out of both, in shadow mode.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weir/result.h>

#include "lab/calibrate/calibration.h"
#include "lab/calibrate/client_key.h"
#include "lab/log/log_reader.h"

namespace weir::lab {

// Opens the same logs again, for the first, second and third time.
using OpenLogs = std::function<Result<std::unique_ptr<LogReader>>(int time)>;

// The error says that a log cannot be read, or that nothing can be learnt from it.
Result<Calibration> Calibrate(const ClientKey& key, const CalibrationSettings& settings,
                              const OpenLogs& open);

}  // namespace weir::lab
