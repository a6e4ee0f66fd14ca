// Yesterday's requests under tomorrow's policy: an access log through the real engine, in the time
// of the log.
//
//   const Result<ReplayResult> result = Replay({.logs = {.files = {"access.log"}}, .policy =
//   policy},
//                                              std::cin);
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include <weir/policy.h>
#include <weir/result.h>

#include "lab/log/log_account.h"
#include "lab/log/log_reader.h"
#include "lab/replay/policy_run.h"
#include "lab/replay/time_bins.h"

namespace weir::lab {

struct ReplaySettings {
  LogSettings logs{};
  Policy policy;                    // Its store is memory.
  std::optional<Policy> against{};  // The same requests under another.
  std::string decisions{};          // A file for those of `policy`; empty: none.
  std::size_t top = 10;             // How many keys are named; at most KeyTally::kMostNamed.
  bool spread = false;
};

// What one policy does otherwise than the other.
struct ReplayChange {
  struct ByRule {
    std::string rule{};  // Empty: a list of the policy.
    std::uint64_t requests = 0;
  };
  std::uint64_t requests = 0;
  std::vector<ByRule> rules{};
  std::vector<TalliedKey> keys{};  // `denied` says how many; by a place in the rules' policy.
};

struct ReplayResult {
  std::vector<LogCounts> counts{};
  std::vector<std::string> unanswered{};  // What rules asked for and the log did not have.
  WallTime first{};
  WallTime last{};
  PolicyOutcome outcome{};
  TimeBins bins{};  // As PolicyRun has them.

  std::optional<PolicyOutcome> against{};
  ReplayChange newly_denied{};   // Under `against`, by its rules;
  ReplayChange newly_allowed{};  // which `policy` denied, by its rules.
  TimeBins change_bins{};        // Series 0: newly denied, 1: newly allowed.

  std::string decisions_failed{};         // Why not all decisions could be written.
  std::uint64_t seconds_as_they_are = 0;  // Too full to be spread.
};

// An error if something cannot be opened, read or written at all; what was left out of a log is in
// the counts.
Result<ReplayResult> Replay(const ReplaySettings& settings, std::istream& standard_input);

}  // namespace weir::lab
