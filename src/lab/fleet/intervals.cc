#include "lab/fleet/intervals.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include "sim/fixed_windows.h"

namespace weir::lab {
namespace {

using sim::Admission;
using sim::PromiseTerms;

constexpr std::size_t kFew = 1'000;

std::int64_t LapsesBegunIn(const PromiseTerms& terms, Duration after, Duration to) {
  return std::ranges::count_if(
      terms.lapses, [&](const sim::Lapse& it) { return it.begins > after && it.begins <= to; });
}

// The interval with the most above its rate, in one pass: one that is worth going on with begins
// where there is more to be had than by beginning anew.
std::optional<std::string> FindLongExcess(const Limit& limit,
                                          const std::vector<Admission>& admissions,
                                          const PromiseTerms& terms) {
  const LimitSpec& spec = limit.spec();
  const double rate = static_cast<double>(spec.count) / static_cast<double>(spec.period.count());
  const auto capacity = static_cast<double>(limit.capacity());
  // What a sliding window promises is rounded up.
  const double most = capacity + (spec.algorithm == Algorithm::kSlidingWindow ? 1 : 0) + 1e-3;
  double above = -std::numeric_limits<double>::infinity();
  Duration last{0};
  Duration last_answered = Duration::min();
  for (const Admission& it : admissions) {
    const double going_on =
        above - rate * static_cast<double>((it.at - last).count()) -
        capacity * static_cast<double>(LapsesBegunIn(terms, last_answered, it.answered));
    const double anew =
        -capacity * static_cast<double>(sim::LapsesBetween(terms, it.asked, it.answered));
    above = std::max(going_on, anew) + static_cast<double>(it.cost);
    if (above > most) {
      return std::to_string(above) + " above its rate at " + std::to_string(it.at.count()) + " ns";
    }
    last = it.at;
    last_answered = std::max(last_answered, it.answered);
  }
  return std::nullopt;
}

// What a queue let ahead, at the times that it told, above its rate.
std::optional<std::string> FindLongOutflow(const Limit& limit, std::vector<Admission> admissions) {
  const auto ahead = [](const Admission& it) { return it.at + it.delay; };
  std::ranges::sort(admissions, {}, ahead);
  const LimitSpec& spec = limit.spec();
  const double rate = static_cast<double>(spec.count) / static_cast<double>(spec.period.count());
  std::int64_t largest = 0;
  for (const Admission& it : admissions) largest = std::max(largest, it.cost);
  // A delay is told in whole nanoseconds.
  const double most = static_cast<double>(largest) + rate + 1e-3;
  double above = 0;
  Duration last{0};
  for (const Admission& it : admissions) {
    const auto passed = static_cast<double>((ahead(it) - last).count());
    above = std::max(0.0, above - rate * passed) + static_cast<double>(it.cost);
    if (above > most) {
      return std::to_string(above) + " above its rate went ahead at " +
             std::to_string(ahead(it).count()) + " ns";
    }
    last = ahead(it);
  }
  return std::nullopt;
}

// More than the limit in some period, of those who promise that there never is.
std::optional<std::string> FindFullPeriod(const Limit& limit,
                                          const std::vector<Admission>& admissions,
                                          const PromiseTerms& terms) {
  std::int64_t sum = 0;
  std::size_t oldest = 0;
  for (const Admission& it : admissions) {
    sum += it.cost;
    while (admissions[oldest].at <= it.at - limit.spec().period) sum -= admissions[oldest++].cost;
    if (sum <= limit.capacity()) continue;
    const std::int64_t lapses = sim::LapsesBetween(terms, admissions[oldest].asked, it.answered);
    if (sum <= limit.capacity() * (1 + lapses)) continue;
    return std::to_string(sum) + " let through in a period that ends at " +
           std::to_string(it.at.count()) + " ns";
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

}  // namespace

std::optional<std::string> FindAnyExcess(const Limit& limit, std::vector<Admission> admissions,
                                         const PromiseTerms& terms) {
  if (admissions.size() <= kFew) return FindExcess(limit, std::move(admissions), terms);
  std::ranges::sort(admissions, {}, &Admission::at);
  const LimitSpec& spec = limit.spec();
  if (spec.algorithm == Algorithm::kFixedWindow) {
    if (auto found = FindFullWindow(limit, admissions, terms)) return found;
  }
  const bool is_bucket =
      (spec.algorithm == Algorithm::kTokenBucket || spec.algorithm == Algorithm::kLeakyBucket) &&
      !spec.queue;
  const bool slides = spec.algorithm == Algorithm::kSlidingWindow && !spec.strict;
  if (terms.is_dated && terms.jumps.empty() && (is_bucket || slides)) {
    if (auto found = FindLongExcess(limit, admissions, terms)) return found;
  }
  const bool keeps = spec.strict || spec.algorithm == Algorithm::kSlidingLog;
  if (terms.is_dated && terms.jumps.empty() && keeps) {
    if (auto found = FindFullPeriod(limit, admissions, terms)) return found;
  }
  if (terms.is_dated && terms.jumps.empty() && terms.lapses.empty()) {
    if (spec.queue) {
      if (auto found = FindLongOutflow(limit, admissions)) return found;
    }
    if (spec.algorithm == Algorithm::kConcurrency) {
      if (auto found = FindManyLeases(limit, admissions)) return found;
    }
  }
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

void SumBetween::Add(Duration from, Duration to, std::int64_t units) {
  begun_[from] += units;
  ended_[to] += units;
}

std::int64_t SumBetween::Within(Duration first, Duration last) {
  const auto up_to = [](const std::map<Duration, std::int64_t>& sums, Duration at) {
    const auto after = sums.upper_bound(at);
    return after == sums.begin() ? 0 : std::prev(after)->second;
  };
  if (!are_sums_) {
    for (auto* const changes : {&begun_, &ended_}) {
      std::int64_t sum = 0;
      for (auto& [at, units] : *changes) units = sum += units;
    }
    are_sums_ = true;
  }
  return up_to(begun_, last) - up_to(ended_, first);
}

}  // namespace weir::lab
