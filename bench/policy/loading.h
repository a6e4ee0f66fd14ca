// What it costs to read, compile and take up policies.
#pragma once

#include <cstddef>
#include <string>

#include "harness/results.h"

namespace weir::bench {

// Results are called parse/RULES (from text to a policy), yaml/RULES (only the reading of YAML) and
// apply/RULES (an engine takes up a policy in which every limit is another).
void RunLoading(int rounds, Results& results);

struct OverridesOptions {
  std::string format = "csv";  // Or "jsonl".
  std::size_t rows = 1'000'000;
  std::size_t limits = 1'000;  // So many different ones.
  int rounds = 1;
  std::string folder{};  // Where the files go.
};
// Loads a policy with a file of overrides, and prints
//   {"seconds": [...], "resident": bytes, "table": bytes}
// where the bytes are by how much the process has grown, and the size of the table. For a fresh
// process.
void PrintOverrides(const OverridesOptions& options);

}  // namespace weir::bench
