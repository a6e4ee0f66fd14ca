// What a report says of the logs it was made from: what was read, and what was left out and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/log/log_reader.h"
#include "lab/report.h"

namespace weir::lab {

struct LogAccount {
  std::uint64_t lines = 0;
  std::uint64_t requests = 0;
  std::uint64_t left_out = 0;
  double left_out_share = 0;  // Of the lines that are not blank.
  bool is_cut_short = false;
  bool whole_seconds = true;            // No request has a finer time.
  std::vector<std::string> warnings{};  // For the head of a report.
  std::vector<Section> sections{};      // What was left out, if something was, with examples.
};

// Of LogReader::counts, once all was read.
LogAccount AccountOf(const std::vector<LogCounts>& counts, Duration horizon);

}  // namespace weir::lab
