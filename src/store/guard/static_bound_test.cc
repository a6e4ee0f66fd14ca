// What a fleet lets through while every one of its processes decides by its share.
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

__extension__ using Wide = __int128;

// Several processes and one store, on one clock.
class FleetUnderTest {
 public:
  explicit FleetUnderTest(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      processes_.push_back(
          std::make_unique<GuardedUnderTest>(GuardOptions{.fleet_size = nodes, .seed = 1}));
    }
    store_ = std::make_unique<StoreBehind>(processes_[0]->guard.hasher(), now());
    for (auto& process : processes_) {
      process->store = std::make_unique<GuardedStore>(*store_, process->guard, process->loop);
    }
  }

  Now now() { return processes_[0]->loop.now(); }
  void Advance(Duration step) {
    for (auto& process : processes_) process->loop.clock.Advance(step);
  }
  Decision Check(int node, const Limit& limit, std::int64_t cost = 1) {
    return processes_[static_cast<std::size_t>(node)]->Check("ann", limit, cost);
  }
  StoreBehind& store() { return *store_; }

 private:
  std::vector<std::unique_ptr<GuardedUnderTest>> processes_;
  std::unique_ptr<StoreBehind> store_;
};

struct Admission {
  SteadyTime at;
  std::int64_t cost;
};

// By how much the busiest interval is above burst + rate t; at most 0 if none is.
std::int64_t Excess(const std::vector<Admission>& admitted, const LimitSpec& limit,
                    std::int64_t burst) {
  std::int64_t worst = -burst;
  for (std::size_t first = 0; first < admitted.size(); ++first) {
    std::int64_t sum = 0;
    for (std::size_t last = first; last < admitted.size(); ++last) {
      sum += admitted[last].cost;
      const Duration time = admitted[last].at - admitted[first].at;
      const auto refilled =
          static_cast<std::int64_t>(Wide{time.count()} * limit.count / limit.period.count());
      worst = std::max(worst, sum - burst - refilled);
    }
  }
  return worst;
}

RC_GTEST_PROP(StaticBound, OfABucketHoldsForTheWholeFleet, ()) {
  const int nodes = *rc::gen::inRange(1, 9);
  LimitSpec spec;
  spec.count = *rc::gen::inRange<std::int64_t>(1, 50);
  spec.period = milliseconds(*rc::gen::inRange(10, 5'000));
  spec.burst = *rc::gen::inRange<std::int64_t>(1, 40);
  const Limit limit = *Limit::Make(spec);
  FleetUnderTest fleet(nodes);
  std::vector<Admission> by_store;
  std::vector<Admission> by_fleet;
  const int steps = *rc::gen::inRange(1, 300);
  const int fails_at = *rc::gen::inRange(0, 100);
  const int heals_at = fails_at + *rc::gen::inRange(0, 200);
  for (int i = 0; i < steps; ++i) {
    i >= fails_at&& i < heals_at ? fleet.store().Fail() : fleet.store().Recover();
    if (*rc::gen::inRange(0, 4) == 0) fleet.Advance(milliseconds(*rc::gen::inRange(0, 500)));
    const std::int64_t cost = *rc::gen::element<std::int64_t>(1, 1, 1, 2, 5);
    const Decision decision = fleet.Check(*rc::gen::inRange(0, nodes), limit, cost);
    if (!decision.allowed) continue;
    auto& admitted = decision.source == Source::kStore ? by_store : by_fleet;
    admitted.push_back({fleet.now().steady, cost});
  }
  RC_ASSERT(Excess(by_store, spec, spec.burst) <= 0);
  RC_ASSERT(Excess(by_fleet, spec, std::max<std::int64_t>(spec.burst, nodes)) <= 0);
}

RC_GTEST_PROP(StaticBound, OfALogHoldsForTheWholeFleet, ()) {
  const int nodes = *rc::gen::inRange(1, 9);
  LimitSpec spec{.algorithm = Algorithm::kSlidingLog};
  spec.count = *rc::gen::inRange<std::int64_t>(1, 40);
  spec.period = seconds(2);
  const Limit limit = *Limit::Make(spec);
  FleetUnderTest fleet(nodes);
  fleet.store().Fail();
  std::vector<Admission> admitted;
  const int steps = *rc::gen::inRange(1, 300);
  for (int i = 0; i < steps; ++i) {
    if (*rc::gen::inRange(0, 4) == 0) fleet.Advance(milliseconds(*rc::gen::inRange(0, 500)));
    if (!fleet.Check(*rc::gen::inRange(0, nodes), limit).allowed) continue;
    const SteadyTime now = fleet.now().steady;
    admitted.push_back({now, 1});
    const auto is_recent = [&](const Admission& it) { return now - it.at < spec.period; };
    RC_ASSERT(std::ranges::count_if(admitted, is_recent) <=
              std::max<std::int64_t>(spec.count, nodes));
  }
}

TEST(StaticBound, AdmitsInTheLongRunWhatTheLimitSaysIfLoadIsSpreadEvenly) {
  FleetUnderTest fleet(4);
  const Limit limit = LimitOf("40/s burst 20");
  fleet.store().Fail();
  std::int64_t admitted = 0;
  for (int i = 0; i < 40'000; ++i) {  // 40 s of 1000 a second.
    admitted += fleet.Check(i % 4, limit).allowed ? 1 : 0;
    fleet.Advance(milliseconds(1));
  }
  EXPECT_GE(admitted, 40 * 40);
  EXPECT_LE(admitted, 40 * 40 + 20);
}

TEST(StaticBound, AFleetThatIsSpentStaysSpentWhenTheStoreGoes) {
  FleetUnderTest fleet(4);
  const Limit limit = LimitOf("100/h");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(fleet.Check(i % 4, limit).allowed);
  fleet.store().Fail();
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(fleet.Check(i, limit).allowed);
}

}  // namespace
}  // namespace weir
