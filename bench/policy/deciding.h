// What a request costs under a policy, beside one check in the memory store.
#pragma once

#include "harness/results.h"

namespace weir::bench {

struct DecidingOptions {
  int rounds = 1;
  double scale = 1;  // Of the number of requests in a run.
};

// Matching and key building (match/3_of_1000), one bare check in a store of a million keys
// (store/1M), and finding out who is asking (identify).
void RunMatching(const DecidingOptions& options, Results& results);

// The whole of a check by an engine that knows a million users (engine/3_of_3); with /clock the
// clock is read, otherwise the time is handed in.
void RunEngines(const DecidingOptions& options, Results& results);

}  // namespace weir::bench
