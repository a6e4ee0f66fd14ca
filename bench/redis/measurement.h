// The part of a run that counts: how many requests the server answered in it, and what they cost.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <weir/time.h>

namespace weir::bench {

SteadyTime Clock() noexcept;

struct RunOptions {
  std::uint16_t port = 0;
  pid_t server = 0;  // Whose processor time is charged.
  std::uint64_t keys = 100'000;
  Duration warm_up{0};  // Not measured,
  Duration length{0};   // unlike this.
};

class Measurement {
 public:
  explicit Measurement(const RunOptions& options);

  bool IsOver(SteadyTime now) const noexcept { return now >= end_; }
  // Whether what is answered counts. To be called in every turn.
  bool HasBegun(SteadyTime now);
  void Count(std::size_t requests) noexcept { requests_ += requests; }
  // Every time is kept, so quantiles are exact.
  void AddTime(Duration time) { times_.push_back(static_cast<double>(time.count()) * 1e-3); }
  // The generator's own share of those.
  void AddLate(Duration time) { late_.push_back(static_cast<double>(time.count()) * 1e-3); }

  // {"requests": ..., "seconds": ..., "cpu_ns": of the server per request, "busy": share of time},
  // and in microseconds "p50", "p99", "p999", "late_p99" if there are times.
  void Print();

 private:
  const pid_t server_;
  SteadyTime begin_;
  SteadyTime end_;
  bool begun_ = false;
  Duration processor_time_{0};
  std::uint64_t requests_ = 0;
  std::vector<double> times_;  // Microseconds.
  std::vector<double> late_;
};

}  // namespace weir::bench
