#include "harness/results.h"

#include <chrono>
#include <cstdio>

#include <weir/clock.h>

#include "harness/require.h"

namespace weir::bench {

void Results::RunRounds(int rounds) {
  constexpr int kFewest = 3;
  constexpr auto kPatience = std::chrono::seconds(80);
  const SteadyTime deadline = SystemClock::Shared().Read().steady + kPatience;
  for (int round = 0; round < rounds; ++round) {
    if (round >= kFewest && SystemClock::Shared().Read().steady > deadline) break;
    benchmark::RunSpecifiedBenchmarks(this);
  }
}

void Results::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    Require(!run.error_occurred, "no benchmark fails");
    const auto rate = run.counters.find("items_per_second");
    Require(rate != run.counters.end(), "every benchmark counts its items");
    nanoseconds_[run.run_name.function_name].push_back(1e9 / rate->second.value);
  }
}

void Results::PrintJson() const {
  Require(!nanoseconds_.empty(), "something was measured");
  const char* before_name = "{\n";
  for (const auto& [name, values] : nanoseconds_) {
    std::printf("%s  \"%s\": [", before_name, name.c_str());
    const char* before_value = "";
    for (const double value : values) {
      std::printf("%s%.3f", before_value, value);
      before_value = ", ";
    }
    std::printf("]");
    before_name = ",\n";
  }
  std::printf("\n}\n");
}

}  // namespace weir::bench
