// Checks in memory, beside the tables and limiters that one might use instead. Prints JSON.
//
//   bench_core checks OUTCOME KEYS ROUNDS SCALE [GOVERNOR]   OUTCOME: allow or deny
//   bench_core new ROUNDS SCALE [GOVERNOR]
//   bench_core bytes STORE LAST                              the process's memory, up to LAST keys
//
// SCALE is for quick looks: 0.1 does a tenth of the work. GOVERNOR is its library's path.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bytes_per_key.h"
#include "checks.h"
#include "harness/results.h"
#include "new_keys.h"

namespace weir::bench {
namespace {

int Main(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  const auto word = [&](std::size_t at) { return at < words.size() ? words[at] : std::string(); };
  Results results;
  if (command == "checks" && words.size() >= 5) {
    RunChecks({.outcome = word(1) == "deny" ? Outcome::kDeny : Outcome::kAllow,
               .keys = std::stoull(word(2)),
               .rounds = std::stoi(word(3)),
               .scale = std::stod(word(4)),
               .governor = word(5)},
              results);
    results.PrintJson();
  } else if (command == "new" && words.size() >= 3) {
    RunNewKeys({.rounds = std::stoi(word(1)), .scale = std::stod(word(2)), .governor = word(3)},
               results);
    results.PrintJson();
  } else if (command == "bytes" && words.size() == 3) {
    PrintBytesPerKey({.store = word(1), .last = std::stoull(word(2))});
  } else {
    std::fprintf(stderr,
                 "usage: bench_core checks allow|deny KEYS ROUNDS SCALE [GOVERNOR]\n"
                 "       bench_core new ROUNDS SCALE [GOVERNOR]\n"
                 "       bench_core bytes STORE LAST\n");
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
