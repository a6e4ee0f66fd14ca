#include "lab/fleet/usage.h"

#include <algorithm>
#include <cmath>

#include "sim/fixed_windows.h"
#include "sim/sim_loop.h"

namespace weir::lab {
namespace {

bool IsBucket(const LimitSpec& spec) {
  return spec.algorithm == Algorithm::kTokenBucket || spec.algorithm == Algorithm::kLeakyBucket;
}

}  // namespace

Usage::Usage(const Limit& limit, Duration wall_offset)
    : spec_(limit.spec()),
      wall_offset_(wall_offset),
      rate_(IsBucket(spec_)
                ? static_cast<double>(spec_.count) / static_cast<double>(spec_.period.count())
                : 0) {}

std::int64_t Usage::WindowOf(Duration at) const {
  return sim::WindowAt(spec_, sim::SimLoop::Beginning() + at + wall_offset_);
}

double Usage::Level(Duration at) const {
  const Duration passed = std::max(at - last_, Duration(0));
  return std::max(0.0, level_ - rate_ * static_cast<double>(passed.count()));
}

void Usage::Add(Duration at, std::int64_t cost, Duration live_until) {
  if (IsBucket(spec_)) {
    level_ = Level(at) + static_cast<double>(cost);
    last_ = std::max(last_, at);
    return;
  }
  charges_.push_back({at, cost, live_until, total_});
  total_ += cost;
}

void Usage::Fill(Duration at, double level) {
  level_ = level;
  last_ = at;
}

void Usage::Forget(Duration before) {
  while (!charges_.empty() && charges_.front().at < before) charges_.pop_front();
}

Usage::Place Usage::FirstAfter(Duration at) const {
  return std::ranges::partition_point(charges_, [at](const Charge& it) { return it.at <= at; });
}

Usage::Place Usage::FirstOfWindow(std::int64_t window) const {
  return std::ranges::partition_point(charges_,
                                      [&](const Charge& it) { return WindowOf(it.at) < window; });
}

double Usage::Sum(const Place& first, const Place& last) const {
  const auto before = [&](const Place& place) {
    return place == charges_.end() ? total_ : place->before;
  };
  return static_cast<double>(std::max(before(last) - before(first), std::int64_t{0}));
}

double Usage::InWindow(Duration at) const {
  return Sum(FirstOfWindow(WindowOf(at)), FirstAfter(at));
}

double Usage::InTwoWindows(Duration at) const {
  const std::int64_t window = WindowOf(at);
  const double current = Sum(FirstOfWindow(window), FirstAfter(at));
  const double previous = Sum(FirstOfWindow(window - 1), FirstOfWindow(window));
  const WallTime wall = sim::SimLoop::Beginning() + at + wall_offset_;
  const Duration left = spec_.period - wall.time_since_epoch() % spec_.period;
  const double part = static_cast<double>(left.count()) / static_cast<double>(spec_.period.count());
  return std::floor(previous * part + 1e-9) + current;
}

double Usage::Since(Duration since) const {
  return Sum(FirstAfter(since - Duration(1)), charges_.end());
}

double Usage::Live(Duration at) const {
  std::int64_t live = 0;
  for (const Charge& it : charges_) live += it.live_until >= at ? it.cost : 0;
  return static_cast<double>(live);
}

double Usage::Most(Duration at) {
  switch (spec_.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      // T is rounded up to a nanosecond, so what drains is a little less.
      return Level(at) * (1 + 1e-6) + 1e-3;
    case Algorithm::kFixedWindow:
      Forget(at - spec_.period);
      return InWindow(at);
    case Algorithm::kSlidingWindow:
      Forget(at - 2 * spec_.period);
      // The server's clock tells microseconds.
      if (!spec_.strict) return InTwoWindows(at) + 1;
      return Since(at - spec_.period - 2 * spec_.period / spec_.sub_windows);
    case Algorithm::kSlidingLog:
      Forget(at - spec_.period);
      return Since(at - spec_.period);
    case Algorithm::kConcurrency:
      Forget(at - spec_.lease - std::chrono::seconds(1));
      return Live(at);
  }
  return 0;
}

double Usage::Least(Duration at) {
  switch (spec_.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Level(at) - 1e-3;
    case Algorithm::kFixedWindow:
      return InWindow(at);
    case Algorithm::kSlidingWindow:
      if (!spec_.strict) return InTwoWindows(at) - 1;
      return Since(at - spec_.period + Duration(1));
    case Algorithm::kSlidingLog:
      return Since(at - spec_.period + std::chrono::microseconds(2));
    case Algorithm::kConcurrency:
      return 0;  // Leases end by themselves.
  }
  return 0;
}

}  // namespace weir::lab
