// Checks of keys that the stores know already.
#pragma once

#include <cstdint>
#include <string>

#include "harness/results.h"

namespace weir::bench {

enum class Outcome : std::uint8_t { kAllow, kDeny };

struct ChecksOptions {
  Outcome outcome = Outcome::kAllow;
  std::uint64_t keys = 1;
  int rounds = 1;
  double scale = 1;        // Of the number of checks in a run.
  std::string governor{};  // Where governor's library is; left out if empty.
};

// Fills one store of each kind with the same keys, makes sure that they are in, and measures all
// cases of this outcome and number of keys. Results are called STORE/CASE, for example
// "weir/allow/1M/uniform/single/1thread/clock".
void RunChecks(const ChecksOptions& options, Results& results);

}  // namespace weir::bench
