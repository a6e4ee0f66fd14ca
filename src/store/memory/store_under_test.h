// What the tests of the memory store share: a store on a clock that is moved by hand, and every
// algorithm as a limit of the same size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <weir/clock.h>

#include "store/memory/memory_store.h"

namespace weir {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

// For limits that are known to be right; any other ends the test.
inline Limit LimitOf(std::string_view text, const LimitSpec& defaults = {}) {
  return Limit::Parse(text, defaults).value();
}

// Ten in ten seconds, and what sets the algorithms apart from each other.
struct AlgorithmCase {
  std::string name;
  Limit limit;
  std::int64_t at_once = 10;  // What a fresh key admits at one instant.

  bool is_bucket() const {
    return limit.algorithm() == Algorithm::kTokenBucket ||
           limit.algorithm() == Algorithm::kLeakyBucket;
  }
  bool is_concurrency() const { return limit.algorithm() == Algorithm::kConcurrency; }
  // What a commit of `cost` leaves behind: a place is free again, whatever the work cost.
  std::int64_t Settled(std::int64_t cost) const { return is_concurrency() ? 0 : cost; }

  friend std::ostream& operator<<(std::ostream& out, const AlgorithmCase& it) {
    return out << it.name;
  }
};

inline std::vector<AlgorithmCase> EveryAlgorithm(LimitSpec spec = {}) {
  const auto with = [&](Algorithm algorithm) {
    LimitSpec changed = spec;
    changed.algorithm = algorithm;
    return changed;
  };
  LimitSpec queue = with(Algorithm::kLeakyBucket);
  queue.queue = true;
  LimitSpec strict = with(Algorithm::kSlidingWindow);
  strict.strict = true;
  LimitSpec fine = strict;
  fine.sub_windows = 50;
  std::vector<AlgorithmCase> cases{
      {"TokenBucket", LimitOf("10/10s", with(Algorithm::kTokenBucket))},
      {"LeakyBucket", LimitOf("10/10s", with(Algorithm::kLeakyBucket))},
      {"FixedWindow", LimitOf("10/10s", with(Algorithm::kFixedWindow))},
      {"SlidingWindow", LimitOf("10/10s", with(Algorithm::kSlidingWindow))},
      {"StrictWindow", LimitOf("10/10s", strict)},
      {"FineStrictWindow", LimitOf("10/10s", fine)},
      {"SlidingLog", LimitOf("10/10s", with(Algorithm::kSlidingLog))},
  };
  if (!spec.overdraft) {
    cases.push_back({"LeakyQueue", LimitOf("10/10s", queue), 11});
    cases.push_back({"Concurrency", LimitOf("10 concurrent lease 10s")});
  }
  return cases;
}

// Names a test after its case, for INSTANTIATE_TEST_SUITE_P.
struct NameOfAlgorithm {
  template <typename Info>
  std::string operator()(const Info& case_info) const {
    return case_info.param.name;
  }
};

class StoreUnderTest {
 public:
  explicit StoreUnderTest(const MemoryStoreOptions& options = {}) : store(options, clock.Read()) {}
  StoreUnderTest(const MemoryStoreOptions& options, WallTime wall)
      : clock(wall), store(options, clock.Read()) {}

  Charge ChargeFor(std::string_view key, const Limit& limit, std::int64_t cost = 1,
                   Verb verb = Verb::kCheck) const {
    return {.rule = "rule",
            .key = key,
            .hash = store.Hash(key),
            .limit = &limit,
            .cost = cost,
            .verb = verb};
  }

  // A charge by itself.
  Decision Check(std::string_view key, const Limit& limit, std::int64_t cost = 1) {
    return Do(Verb::kCheck, key, limit, cost);
  }
  Decision Do(Verb verb, std::string_view key, const Limit& limit, std::int64_t cost = 1) {
    return store.Decide(ChargeFor(key, limit, cost, verb), clock.Read());
  }
  std::int64_t Remaining(std::string_view key, const Limit& limit) {
    return Do(Verb::kPeek, key, limit).remaining;
  }
  // How many of cost 1 pass until one is denied; at most `most`.
  std::int64_t Exhaust(std::string_view key, const Limit& limit, std::int64_t most = 1'000) {
    std::int64_t admitted = 0;
    while (admitted < most && Check(key, limit).allowed) ++admitted;
    return admitted;
  }

  // Several charges as a group.
  Group DecideGroup(std::span<const Charge> charges, std::span<Decision> decisions,
                    Action action = Action::kDecide, Duration ttl = std::chrono::seconds(60)) {
    Group group{.action = action, .charges = charges, .decisions = decisions, .ttl = ttl};
    store.Decide(group, clock.Read());
    return group;
  }
  // The same for those who want to know only the answer.
  Decision Ask(const std::vector<Charge>& charges, Action action = Action::kDecide,
               Duration ttl = std::chrono::seconds(60)) {
    std::vector<Decision> decisions(charges.size());
    return DecideGroup(charges, decisions, action, ttl).decision;
  }
  Result<Decision> Commit(ReservationId id, std::int64_t cost,
                          std::span<const Charge> in_force = {}) {
    return Settle(Action::kCommit, id, cost, in_force);
  }
  Result<Decision> Cancel(ReservationId id, std::span<const Charge> in_force = {}) {
    return Settle(Action::kCancel, id, 0, in_force);
  }

  ManualClock clock;
  MemoryStore store;

 private:
  Result<Decision> Settle(Action action, ReservationId id, std::int64_t cost,
                          std::span<const Charge> in_force) {
    std::vector<LimitInForce> limits;
    for (const Charge& charge : in_force) {
      limits.push_back({store.Hash(charge.rule), charge.rule, charge.limit});
    }
    std::ranges::sort(limits, {}, &LimitInForce::rule);
    Group group{.action = action, .in_force = limits, .reservation = id, .cost = cost};
    store.Decide(group, clock.Read());
    if (group.error) return std::unexpected(*group.error);
    return group.decision;
  }
};

}  // namespace weir
