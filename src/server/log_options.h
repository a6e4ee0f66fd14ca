// What the commands that read access logs have in common on the command line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <weir/result.h>

#include "lab/log/log_reader.h"

namespace weir {

struct LogOptions {
  std::vector<std::string> files{};    // - for standard input.
  std::string format = "auto";         // combined, envoy, alb, caddy, csv, jsonl
  std::vector<std::string> columns{};  // user=account_id: which column says what.
  std::string horizon = "60s";         // Lines may come so much later than others of a later time.
  std::string max_bad = "1%";          // With more lines than these left out it ends with 1.
  int threads = 0;                     // 0: one for each core.
};

// An error names the option that cannot be read: the command was called wrongly.
Result<lab::LogSettings> SettingsOf(const LogOptions& options);

// "0.1%" or "0.1 %" as a fraction: 0.001. From 0 to 100 %. `option` is for the error.
Result<double> ParsePercent(std::string_view option, std::string_view text);

}  // namespace weir
