// Runs what is registered with Google Benchmark in rounds, and keeps the time of every run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace weir::bench {

// A round runs every benchmark once, those that are compared one right after the other. So a
// machine that is slower for a while is slower for all of them, and medians over rounds compare.
class Results final : public benchmark::BenchmarkReporter {
 public:
  // Fewer rounds on a machine that is too slow or too busy, but never fewer than three: the whole
  // suite has to end.
  void RunRounds(int rounds);

  // {"name": [ns per item, one for each round], ...}
  void PrintJson() const;

 private:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override;

  std::map<std::string, std::vector<double>> nanoseconds_;
};

}  // namespace weir::bench
