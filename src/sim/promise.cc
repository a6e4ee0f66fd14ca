#include "sim/promise.h"

#include <algorithm>

#include "sim/fixed_windows.h"
#include "sim/sim_loop.h"

namespace weir::sim {
namespace {

__extension__ typedef __int128 Wide;  // NOLINT: only so it is taken for one of ours

// What may be let through in an interval of that length, both of its ends included.
Wide MostIn(const LimitSpec& spec, Duration length, std::int64_t largest_cost) {
  const Wide t = length.count();
  const Wide period = spec.period.count();
  const Wide count = spec.count;
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket: {
      const Wide burst = spec.burst == 0 ? spec.count : spec.burst;
      // A delay is told in whole nanoseconds.
      return (spec.queue ? Wide{largest_cost} : burst) + count * (t + 1) / period;
    }
    case Algorithm::kFixedWindow:
      return count * (t / period + 2);
    case Algorithm::kSlidingWindow:
      if (!spec.strict) return count + (count * t + period - 1) / period;
      return count * (t / period + 1);
    default:
      return count * (t / period + 1);
  }
}

std::string Text(std::int64_t sum, Duration from, Duration to) {
  return std::to_string(sum) + " let through from " + std::to_string(from.count()) + " to " +
         std::to_string(to.count()) + " ns";
}

std::optional<std::string> FindExcessOfLeases(const Limit& limit,
                                              const std::vector<Admission>& admissions,
                                              const PromiseTerms& terms) {
  for (const Admission& now : admissions) {
    std::int64_t live = 0;
    Duration first = now.asked;
    for (const Admission& lease : admissions) {
      if (lease.at > now.at || lease.live_until <= now.at) continue;
      live += lease.cost;
      first = std::min(first, lease.asked);
    }
    const std::int64_t most =
        limit.capacity() * (1 + BurstsBetween(limit, terms, first, now.answered));
    if (live > most) return std::to_string(live) + " leases at " + std::to_string(now.at.count());
  }
  return std::nullopt;
}

// By a clock that is never moved.
std::int64_t WindowOf(const LimitSpec& spec, Duration at, Duration wall_offset) {
  return WindowAt(spec, SimLoop::Beginning() + at + wall_offset);
}

}  // namespace

std::int64_t LapsesBetween(const PromiseTerms& terms, Duration first, Duration last) {
  return std::ranges::count_if(terms.lapses, [&](const Lapse& lapse) {
    return lapse.begins <= last && first <= lapse.ends;
  });
}

std::int64_t BurstsBetween(const Limit& limit, const PromiseTerms& terms, Duration first,
                           Duration last) {
  const auto within = [&](const std::vector<Duration>& jumps) {
    return std::ranges::count_if(jumps,
                                 [&](Duration jump) { return first <= jump && jump <= last; });
  };
  const bool slides = limit.algorithm() == Algorithm::kSlidingWindow;
  return LapsesBetween(terms, first, last) + within(terms.jumps) -
         (slides ? 0 : within(terms.steps_back));
}

std::int64_t GivenBackBetween(const PromiseTerms& terms, Duration first, Duration last) {
  std::int64_t units = 0;
  for (const GivenBack& it : terms.given_back) {
    if (it.begins <= last && first <= it.ends) units += it.units;
  }
  return units;
}

std::optional<std::string> FindExcess(const Limit& limit, std::vector<Admission> admissions,
                                      const PromiseTerms& terms) {
  const LimitSpec& spec = limit.spec();
  if (spec.algorithm == Algorithm::kConcurrency) {
    return terms.is_dated ? FindExcessOfLeases(limit, admissions, terms) : std::nullopt;
  }
  if (spec.algorithm == Algorithm::kFixedWindow) {
    auto found = FindFullWindow(limit, admissions, terms);
    // By another clock than the servers' a jump may make several windows end at any time.
    if (found || !terms.jumps.empty()) return found;
  }
  std::ranges::sort(admissions, {}, [](const Admission& it) { return it.at + it.delay; });
  std::int64_t largest = 0;
  for (const Admission& it : admissions) largest = std::max(largest, it.cost);
  for (std::size_t i = 0; i < admissions.size(); ++i) {
    std::int64_t sum = 0;
    Duration begins = Duration::max();
    Duration ends = Duration::min();
    Duration asked = Duration::max();
    Duration answered = Duration::min();
    for (std::size_t j = i; j < admissions.size(); ++j) {
      const Admission& it = admissions[j];
      sum += it.cost;
      begins = std::min(begins, it.earliest + it.delay);
      ends = std::max(ends, it.latest + it.delay);
      asked = std::min(asked, it.asked);
      answered = std::max(answered, it.answered);
      // One burst for each; those who wait in a queue go ahead besides.
      const Wide burst = Wide{limit.capacity()} + (spec.queue ? largest : 0);
      const std::int64_t bursts = BurstsBetween(limit, terms, asked, answered);
      // In a queue it is felt by those who booked after it, when they go ahead.
      const Duration felt = spec.queue ? limit.time_to_fresh() : Duration(0);
      const Wide more = burst * bursts + GivenBackBetween(terms, asked - felt, answered);
      if (Wide{sum} > MostIn(spec, ends - begins, largest) + more) return Text(sum, begins, ends);
    }
  }
  return std::nullopt;
}

bool MayDeny(const Limit& limit, const std::vector<Admission>& charged, std::int64_t unknown,
             Duration at, std::int64_t cost, Duration wall_offset) {
  const LimitSpec& spec = limit.spec();
  const auto sum_since = [&](Duration since) {
    std::int64_t sum = unknown + cost;
    for (const Admission& it : charged) {
      if (it.at >= since && it.at <= at) sum += it.cost;
    }
    return sum;
  };
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket: {
      double level = 0;
      Duration last{0};
      const double rate =
          static_cast<double>(spec.count) / static_cast<double>(spec.period.count());
      for (const Admission& it : charged) {
        if (it.at > at) break;
        level = std::max(0.0, level - rate * static_cast<double>((it.at - last).count()));
        level += static_cast<double>(it.cost);
        last = it.at;
      }
      level = std::max(0.0, level - rate * static_cast<double>((at - last).count()));
      const auto room = static_cast<double>(limit.capacity() + (spec.queue ? 1 : 0));
      // T is rounded up to a nanosecond, so what drains is a little less.
      return level * (1 + 1e-6) + static_cast<double>(unknown + cost) > room - 1e-3;
    }
    case Algorithm::kFixedWindow: {
      std::int64_t sum = unknown + cost;
      for (const Admission& it : charged) {
        const bool same = WindowOf(spec, it.at, wall_offset) == WindowOf(spec, at, wall_offset);
        if (it.at <= at && same) sum += it.cost;
      }
      return sum > spec.count;
    }
    case Algorithm::kSlidingWindow:
      if (!spec.strict) return sum_since(at - 2 * spec.period) > spec.count;
      return sum_since(at - spec.period - 2 * spec.period / spec.sub_windows) > spec.count;
    case Algorithm::kSlidingLog:
      return sum_since(at - spec.period) > spec.count;
    case Algorithm::kConcurrency: {
      std::int64_t live = unknown + cost;
      for (const Admission& it : charged) {
        if (it.at <= at && it.live_until >= at) live += it.cost;
      }
      return live > spec.count;
    }
  }
  return true;
}

}  // namespace weir::sim
