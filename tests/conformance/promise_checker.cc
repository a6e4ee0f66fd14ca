#include "promise_checker.h"

#include <algorithm>

#include "counting_oracle.h"

namespace weir::conformance {

void PromiseChecker::Add(const TraceAction& action, Now now, const Decision& decision) {
  const Duration at = now.steady - start_.steady;
  if (action.verb == TraceVerb::kSettle) {
    Admission& lease = admissions_[by_number_.at(action.of)];
    lease.end = std::min(lease.end, at);
    return;
  }
  if (!decision.allowed) return;
  by_number_[action.number] = admissions_.size();
  admissions_.push_back(
      {at + decision.delay, at + spec_.lease, action.cost, decision.delay > Duration(0)});
  largest_cost_ = std::max(largest_cost_, action.cost);
}

std::optional<std::string> PromiseChecker::Broken() const {
  if (spec_.algorithm == Algorithm::kConcurrency) return BrokenLeases();
  if (auto broken = BrokenWindows()) return broken;
  // Later requests go ahead later (first in, first out), so every interval is a run of admissions.
  for (std::size_t i = 0; i < admissions_.size(); ++i) {
    std::int64_t sum = 0;
    for (std::size_t j = i; j < admissions_.size(); ++j) {
      sum += admissions_[j].cost;
      if (TooMuch(admissions_[i], admissions_[j], sum)) {
        return std::to_string(sum) +
               " admitted from t=" + std::to_string(admissions_[i].at.count()) +
               " to t=" + std::to_string(admissions_[j].at.count());
      }
    }
  }
  return std::nullopt;
}

bool PromiseChecker::TooMuch(const Admission& first, const Admission& last,
                             std::int64_t sum) const {
  const Wide t = (last.at - first.at).count();
  const Wide period = spec_.period.count();
  const Wide limit = spec_.count;
  switch (spec_.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket: {
      const Wide burst = spec_.burst == 0 ? spec_.count : spec_.burst;
      const Wide at_once = spec_.queue ? Wide(largest_cost_) : burst;
      // A delay is told in whole nanoseconds, rounded up, which may shorten an interval by one.
      const Wide told_late = first.delayed ? 1 : 0;
      return Wide(sum) * period > at_once * period + limit * (t + told_late);
    }
    case Algorithm::kFixedWindow:
      return spec_.align == Align::kEpoch && t <= period && Wide(sum) > 2 * limit;
    case Algorithm::kSlidingWindow:
      if (!spec_.strict) return Wide(sum) > limit + CeilDiv(limit * t, period);
      return t < period && Wide(sum) > limit;
    default:
      return t < period && Wide(sum) > limit;
  }
}

std::optional<std::string> PromiseChecker::BrokenWindows() const {
  if (spec_.algorithm != Algorithm::kFixedWindow) return std::nullopt;
  std::map<WallTime, std::int64_t> sums;
  for (const Admission& admission : admissions_) {
    const WallTime wall = start_.wall + admission.at;
    const WallTime window = spec_.align == Align::kCalendar
                                ? CalendarEnd(spec_, wall)
                                : WallTime(wall.time_since_epoch() / spec_.period * spec_.period);
    std::int64_t& sum = sums[window];
    sum += admission.cost;
    if (sum > spec_.count) {
      return std::to_string(sum) +
             " admitted in the window of t=" + std::to_string(admission.at.count());
    }
  }
  return std::nullopt;
}

std::optional<std::string> PromiseChecker::BrokenLeases() const {
  for (const Admission& instant : admissions_) {
    std::int64_t live = 0;
    for (const Admission& lease : admissions_) {
      if (lease.at <= instant.at && instant.at < lease.end) live += lease.cost;
    }
    // Those given back at this very instant have not been counted; those taken at it all have.
    if (live > spec_.count) {
      return std::to_string(live) + " live leases at t=" + std::to_string(instant.at.count());
    }
  }
  return std::nullopt;
}

}  // namespace weir::conformance
