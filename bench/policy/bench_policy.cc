// Policies: what a request costs under them, and what it costs to load them. Prints JSON.
//
//   bench_policy matching ROUNDS SCALE
//   bench_policy engine ROUNDS SCALE
//   bench_policy loading ROUNDS
//   bench_policy overrides FORMAT LIMITS ROWS ROUNDS FOLDER     FORMAT: csv or jsonl
//
// SCALE is for quick looks: 0.1 does a tenth of the work. FOLDER is where files may be written.
#include <cstdio>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "deciding.h"
#include "harness/results.h"
#include "loading.h"

namespace weir::bench {
namespace {

int Main(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  Results results;
  if ((command == "matching" || command == "engine") && words.size() == 3) {
    const auto run = command == "matching" ? RunMatching : RunEngines;
    run({.rounds = std::stoi(words[1]), .scale = std::stod(words[2])}, results);
    results.PrintJson();
  } else if (command == "loading" && words.size() == 2) {
    RunLoading(std::stoi(words[1]), results);
    results.PrintJson();
  } else if (command == "overrides" && words.size() == 6) {
    PrintOverrides({.format = words[1],
                    .rows = std::stoull(words[3]),
                    .limits = std::stoull(words[2]),
                    .rounds = std::stoi(words[4]),
                    .folder = words[5]});
  } else {
    std::fprintf(stderr,
                 "usage: bench_policy matching|engine ROUNDS SCALE\n"
                 "       bench_policy loading ROUNDS\n"
                 "       bench_policy overrides csv|jsonl LIMITS ROWS ROUNDS FOLDER\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  return weir::bench::Main({argv + 1, argv + argc});
}
