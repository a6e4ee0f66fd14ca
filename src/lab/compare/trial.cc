#include "lab/compare/trial.h"

#include <algorithm>
#include <cmath>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/policy.h>

#include "lab/compare/engine_alone.h"

namespace weir::lab {
namespace {

// Looks at one decision after the other, as they are made.
class Judge {
 public:
  Judge(const Limit& limit, Trial& trial)
      : count_(limit.spec().count), period_(limit.spec().period), trial_(trial) {
    if (!IsBucket(limit)) trial_.error.emplace();
    if (!limit.spec().queue) trial_.otherwise.emplace();
  }

  void Hear(const Arrival& arrival, const Decision& decision) {
    const std::int64_t before = TrueCount(arrival.at);
    if (decision.allowed) {
      Admit(arrival, decision);
    } else {
      Deny(arrival, decision);
    }
    if (trial_.otherwise) {
      const bool fits = before + arrival.cost <= count_;
      if (decision.allowed && !fits) ++trial_.otherwise->allowed;
      if (!decision.allowed && fits) ++trial_.otherwise->denied;
    }
    if (trial_.error) {
      const std::int64_t truth = before + (decision.allowed ? arrival.cost : 0);
      Compare(decision.limit - decision.remaining, truth);
    }
  }

  void Finish() {
    EndLockOut(lock_out_end_);
    if (trial_.admitted > 0) trial_.mean_delay = Duration(std::llround(delays_ / Admitted()));
    const auto decisions = static_cast<double>(trial_.admitted + trial_.denied);
    if (trial_.error && decisions > 0) trial_.error->typical = errors_ / decisions;
  }

 private:
  double Admitted() const { return static_cast<double>(trial_.admitted); }

  // What went ahead in the last period, if nothing is delayed.
  std::int64_t TrueCount(Duration at) {
    while (oldest_ < trial_.passed.size() && trial_.passed[oldest_].at <= at - period_) {
      recent_ -= trial_.passed[oldest_++].cost;
    }
    return recent_;
  }

  void Admit(const Arrival& arrival, const Decision& decision) {
    ++trial_.admitted;
    trial_.admitted_cost += arrival.cost;
    trial_.passed.push_back({.at = arrival.at + decision.delay, .cost = arrival.cost});
    recent_ += arrival.cost;
    delays_ += static_cast<double>(decision.delay.count());
    trial_.max_delay = std::max(trial_.max_delay, decision.delay);
    EndLockOut(arrival.at);
  }

  void Deny(const Arrival& arrival, const Decision& decision) {
    ++trial_.denied;
    if (decision.reason == Reason::kNeverFits) {
      ++trial_.never_fits;
      return;
    }
    if (!is_locked_out_) lock_out_from_ = arrival.at;
    is_locked_out_ = true;
    lock_out_end_ = arrival.at + decision.retry_after;
  }

  void EndLockOut(Duration at) {
    if (!is_locked_out_) return;
    is_locked_out_ = false;
    const Duration length = std::min(at, lock_out_end_) - lock_out_from_;
    if (length <= trial_.lock_out) return;
    trial_.lock_out = length;
    trial_.lock_out_from = lock_out_from_;
  }

  void Compare(std::int64_t believed, std::int64_t truth) {
    const double off = static_cast<double>(believed - truth) / static_cast<double>(count_);
    errors_ += std::abs(off);
    trial_.error->too_high = std::max(trial_.error->too_high, off);
    trial_.error->too_low = std::max(trial_.error->too_low, -off);
  }

  const std::int64_t count_;
  const Duration period_;
  Trial& trial_;
  std::size_t oldest_ = 0;  // Of what is recent.
  std::int64_t recent_ = 0;
  double delays_ = 0;
  double errors_ = 0;
  bool is_locked_out_ = false;
  Duration lock_out_from_{0};
  Duration lock_out_end_{0};
};

constexpr std::uint64_t kProgressEvery = 4'096;

}  // namespace

Trial RunTrial(const Limit& limit, const Traffic& traffic, Progress* progress) {
  EngineAlone alone(traffic.start);
  Trial trial;
  Judge judge(limit, trial);
  std::int64_t largest_cost = 1;
  std::uint64_t done = 0;
  for (const Arrival& arrival : traffic.arrivals) {
    LimitRequest request{.key = "the key", .limit = &limit, .cost = arrival.cost};
    alone.Check({&request, 1}, arrival.at);
    judge.Hear(arrival, request.decision);
    largest_cost = std::max(largest_cost, arrival.cost);
    if (progress != nullptr && ++done % kProgressEvery == 0) {
      progress->Advance(kProgressEvery, kProgressEvery);
    }
  }
  judge.Finish();

  const std::int64_t count = limit.spec().count;
  const Duration period = limit.spec().period;
  trial.promise = PromiseOf(limit, largest_cost);
  trial.worst_window = FindWorstWindow(trial.passed, period);
  trial.factor = static_cast<double>(trial.worst_window.cost) / static_cast<double>(count);
  // A delay is told in whole nanoseconds.
  const Duration rounding(limit.spec().queue ? 1 : 0);
  trial.worst_burst = FindWorstBurst(
      trial.passed,
      {.count = count, .period = period, .allowed = trial.promise.burst, .rounding = rounding});
  const bool is_burst_kept = !IsBucket(limit) || trial.worst_burst.is_within;
  trial.is_kept = trial.worst_window.cost <= trial.promise.in_window && is_burst_kept;
  return trial;
}

}  // namespace weir::lab
