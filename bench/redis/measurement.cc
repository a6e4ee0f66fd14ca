#include "measurement.h"

#include <algorithm>
#include <cstdio>

#include <weir/clock.h>

#include "harness/require.h"
#include "service/processor_time.h"

namespace weir::bench {
namespace {

double Quantile(std::vector<double>& times, double share) {
  if (times.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return times[static_cast<std::size_t>(at)];
}

}  // namespace

SteadyTime Clock() noexcept { return SystemClock::Shared().Read().steady; }

Measurement::Measurement(const RunOptions& options)
    : server_(options.server), begin_(Clock() + options.warm_up), end_(begin_ + options.length) {}

bool Measurement::HasBegun(SteadyTime now) {
  if (begun_ || now < begin_) return begun_;
  begun_ = true;
  processor_time_ = ProcessorTime(server_);
  begin_ = Clock();
  return true;
}

void Measurement::Print() {
  Require(begun_ && requests_ > 0, "something was measured");
  const auto processor = static_cast<double>((ProcessorTime(server_) - processor_time_).count());
  const auto time = static_cast<double>((Clock() - begin_).count());
  std::printf(R"({"requests": %llu, "seconds": %.4f, "cpu_ns": %.2f, "busy": %.4f)",
              static_cast<unsigned long long>(requests_), time * 1e-9,
              processor / static_cast<double>(requests_), processor / time);
  if (!times_.empty()) {
    std::printf(R"(, "p50": %.1f, "p99": %.1f, "p999": %.1f, "late_p99": %.1f)",
                Quantile(times_, 0.5), Quantile(times_, 0.99), Quantile(times_, 0.999),
                Quantile(late_, 0.99));
  }
  std::printf("}\n");
}

}  // namespace weir::bench
