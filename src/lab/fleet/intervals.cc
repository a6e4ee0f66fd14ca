#include "lab/fleet/intervals.h"

#include <algorithm>
#include <set>
#include <span>

#include "sim/fixed_windows.h"

namespace weir::lab {
namespace {

using sim::Admission;
using sim::PromiseTerms;

constexpr std::size_t kFew = 1'000;

// Some that follow each other, and the time that they may have taken.
struct Run {
  std::int64_t sum = 0;
  Duration begins = Duration::max();
  Duration asked = Duration::max();
  Duration answered = Duration::min();

  Run With(const Admission& it) const {
    return {.sum = sum + it.cost,
            .begins = std::min(begins, it.earliest),
            .asked = std::min(asked, it.asked),
            .answered = std::max(answered, it.answered)};
  }
};

// The interval with the most above its rate, in one pass: one that is worth going on with begins
// where there is more to be had than by beginning anew. What is not exactly dated makes it as long
// as it can have been.
std::optional<std::string> FindLongExcess(const Limit& limit,
                                          const std::vector<Admission>& admissions,
                                          const PromiseTerms& terms) {
  const LimitSpec& spec = limit.spec();
  const double rate = static_cast<double>(spec.count) / static_cast<double>(spec.period.count());
  const auto capacity = static_cast<double>(limit.capacity());
  // What a sliding window promises is rounded up.
  const double most = capacity + (spec.algorithm == Algorithm::kSlidingWindow ? 1 : 0) + 1e-3;
  Run run;
  for (const Admission& it : admissions) {
    const auto above = [&](const Run& candidate) {
      const auto length = static_cast<double>((it.latest - candidate.begins).count());
      const std::int64_t bursts = BurstsBetween(limit, terms, candidate.asked, candidate.answered);
      return static_cast<double>(candidate.sum) - rate * length -
             capacity * static_cast<double>(bursts);
    };
    const Run going_on = run.With(it);
    const Run anew = Run().With(it);
    run = above(going_on) > above(anew) ? going_on : anew;
    if (above(run) > most) {
      return std::to_string(above(run)) + " above its rate from " +
             std::to_string(run.begins.count()) + " to " + std::to_string(it.latest.count()) +
             " ns";
    }
  }
  return std::nullopt;
}

// What a queue let ahead, at the times that it told, above its rate.
std::optional<std::string> FindLongOutflow(const Limit& limit, std::vector<Admission> admissions) {
  std::ranges::sort(admissions, {}, [](const Admission& it) { return it.latest + it.delay; });
  const LimitSpec& spec = limit.spec();
  const double rate = static_cast<double>(spec.count) / static_cast<double>(spec.period.count());
  std::int64_t largest = 0;
  for (const Admission& it : admissions) largest = std::max(largest, it.cost);
  // A delay is told in whole nanoseconds.
  const double most = static_cast<double>(largest) + rate + 1e-3;
  Run run;
  for (Admission it : admissions) {
    it.earliest += it.delay;
    it.latest += it.delay;
    const auto above = [&](const Run& candidate) {
      const auto length = static_cast<double>((it.latest - candidate.begins).count());
      return static_cast<double>(candidate.sum) - rate * length;
    };
    const Run going_on = run.With(it);
    const Run anew = Run().With(it);
    run = above(going_on) > above(anew) ? going_on : anew;
    if (above(run) > most) {
      return std::to_string(above(run)) + " above its rate went ahead at " +
             std::to_string(it.latest.count()) + " ns";
    }
  }
  return std::nullopt;
}

// More than the limit in some period, of those who promise that there never is: those that surely
// lie within it.
std::optional<std::string> FindFullPeriod(const Limit& limit,
                                          const std::vector<Admission>& admissions,
                                          const PromiseTerms& terms) {
  const auto by_earliest = [](const Admission* it, const Admission* other) {
    return it->earliest < other->earliest;
  };
  std::multiset<const Admission*, decltype(by_earliest)> within(by_earliest);
  std::int64_t sum = 0;
  for (const Admission& it : admissions) {
    within.insert(&it);
    sum += it.cost;
    while (!within.empty() && (*within.begin())->earliest <= it.latest - limit.spec().period) {
      sum -= (*within.begin())->cost;
      within.erase(within.begin());
    }
    if (sum <= limit.capacity()) continue;
    Duration asked = Duration::max();
    for (const Admission* const one : within) asked = std::min(asked, one->asked);
    if (sum <= limit.capacity() * (1 + BurstsBetween(limit, terms, asked, it.answered))) continue;
    return std::to_string(sum) + " let through in a period that ends at " +
           std::to_string(it.latest.count()) + " ns";
  }
  return std::nullopt;
}

// More leases at a time than there may be.
std::optional<std::string> FindManyLeases(const Limit& limit,
                                          const std::vector<Admission>& admissions) {
  std::vector<const Admission*> by_end;
  for (const Admission& it : admissions) {
    if (it.live_until > it.at) by_end.push_back(&it);
  }
  std::ranges::sort(by_end, {}, [](const Admission* it) { return it->live_until; });
  std::int64_t live = 0;
  auto ending = by_end.begin();
  for (const Admission& it : admissions) {
    for (; ending != by_end.end() && (*ending)->live_until <= it.at; ++ending) {
      live -= (*ending)->cost;
    }
    if (it.live_until > it.at) live += it.cost;
    if (live > limit.capacity()) {
      return std::to_string(live) + " leases at " + std::to_string(it.at.count());
    }
  }
  return std::nullopt;
}

// Whatever lies in between.
std::optional<std::string> FindAmongAll(const Limit& limit,
                                        const std::vector<Admission>& admissions,
                                        const PromiseTerms& terms) {
  const LimitSpec& spec = limit.spec();
  // What these may have been given besides is looked at in short intervals only.
  const bool is_steady = terms.jumps.empty() && terms.lapses.empty();
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      if (!spec.queue) return FindLongExcess(limit, admissions, terms);
      return is_steady ? FindLongOutflow(limit, admissions) : std::nullopt;
    case Algorithm::kFixedWindow:
      return FindFullWindow(limit, admissions, terms);
    case Algorithm::kSlidingWindow:
      return spec.strict ? FindFullPeriod(limit, admissions, terms)
                         : FindLongExcess(limit, admissions, terms);
    case Algorithm::kSlidingLog:
      return FindFullPeriod(limit, admissions, terms);
    case Algorithm::kConcurrency:
      return is_steady ? FindManyLeases(limit, admissions) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindAnyExcess(const Limit& limit, std::vector<Admission> admissions,
                                         const PromiseTerms& terms) {
  if (admissions.size() <= kFew) return FindExcess(limit, std::move(admissions), terms);
  std::ranges::sort(admissions, {}, &Admission::latest);
  if (auto found = FindAmongAll(limit, admissions, terms)) return found;
  const std::span<const Admission> all(admissions);
  for (std::size_t from = 0; from < all.size(); from += kFew / 2) {
    const auto part = all.subspan(from, std::min(kFew, all.size() - from));
    if (auto found = FindExcess(limit, {part.begin(), part.end()}, terms)) return found;
  }
  return std::nullopt;
}

void SumOverTime::Add(Duration from, Duration to, std::int64_t units) {
  if (from >= to) return;
  changes_[from] += units;
  if (to != Duration::max()) changes_[to] -= units;
}

std::int64_t SumOverTime::At(Duration at) {
  while (!changes_.empty() && changes_.begin()->first <= at) {
    sum_ += changes_.begin()->second;
    changes_.erase(changes_.begin());
  }
  return sum_;
}

}  // namespace weir::lab
