// threads
// That the short way of groups says and leaves behind what the long way does: two stores are given
// the same groups, one of them with receipts, which only the long way writes.
#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, 4> kNames = {"ann", "bob", "carol", "dave"};

std::vector<Limit> Limits() {
  std::vector<Limit> limits = {LimitOf("10/10s"), LimitOf("3/s burst 5"), LimitOf("1/min"),
                               LimitOf("1000/s burst 7")};
  for (const AlgorithmCase& it : EveryAlgorithm()) limits.push_back(it.limit);
  for (const AlgorithmCase& it : EveryAlgorithm({.overdraft = true})) limits.push_back(it.limit);
  limits.push_back(LimitOf("unlimited"));
  limits.push_back(LimitOf("deny"));
  return limits;
}

void ExpectSame(const Decision& one, const Decision& other) {
  RC_ASSERT(one.allowed == other.allowed);
  RC_ASSERT(one.reason == other.reason);
  RC_ASSERT(one.rule == other.rule);
  RC_ASSERT(one.limit == other.limit);
  RC_ASSERT(one.remaining == other.remaining);
  RC_ASSERT(one.cost == other.cost);
  RC_ASSERT(one.retry_after == other.retry_after);
  RC_ASSERT(one.reset_after == other.reset_after);
  RC_ASSERT(one.delay == other.delay);
}

class BothWays {
 public:
  // The key of each rule's limit, and what it costs.
  struct Part {
    std::size_t key;
    std::size_t limit;
    std::int64_t cost;
    bool shadow;
  };

  void Decide(const std::vector<Part>& parts) {
    std::vector<Decision> short_decisions(parts.size());
    const std::vector<Charge> short_charges = ChargesFor(parts, short_way_);
    Group short_group{.charges = short_charges, .decisions = short_decisions};
    short_way_.store.Decide(short_group, short_way_.clock.Read());

    std::vector<Decision> long_decisions(parts.size());
    std::vector<Receipt> receipts(parts.size());
    const std::vector<Charge> long_charges = ChargesFor(parts, long_way_);
    Group long_group{.charges = long_charges, .decisions = long_decisions, .receipts = receipts};
    long_way_.store.Decide(long_group, long_way_.clock.Read());

    ExpectSame(short_group.decision, long_group.decision);
    for (std::size_t i = 0; i < parts.size(); ++i)
      ExpectSame(short_decisions[i], long_decisions[i]);
    RC_ASSERT(short_way_.store.Stats().shadow_denied == long_way_.store.Stats().shadow_denied);
  }

  void Advance(Duration step) {
    short_way_.clock.Advance(step);
    long_way_.clock.Advance(step);
  }

  const std::vector<Limit>& limits() const { return limits_; }

 private:
  std::vector<Charge> ChargesFor(const std::vector<Part>& parts, const StoreUnderTest& in) const {
    static constexpr std::array<std::string_view, 3> kRules = {"one", "two", "three"};
    std::vector<Charge> charges;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Charge charge = in.ChargeFor(kNames[parts[i].key], limits_[parts[i].limit], parts[i].cost);
      charge.rule = kRules[i % kRules.size()];
      charge.shadow = parts[i].shadow;
      charges.push_back(charge);
    }
    return charges;
  }

  const std::vector<Limit> limits_ = Limits();
  StoreUnderTest short_way_{{.hash_seed = 1}};
  StoreUnderTest long_way_{{.hash_seed = 1}};
};

RC_GTEST_PROP(ShortWay, SaysWhatTheLongWaySays, ()) {
  BothWays both;
  const auto kinds = *rc::gen::inRange<std::size_t>(1, both.limits().size() + 1);
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps; ++step) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 5);
    std::vector<BothWays::Part> parts;
    for (std::size_t i = 0; i < size; ++i) {
      parts.push_back({.key = *rc::gen::inRange<std::size_t>(0, kNames.size()),
                       .limit = *rc::gen::inRange<std::size_t>(0, kinds),
                       .cost = *rc::gen::weightedElement<std::int64_t>(
                           {{6, 1}, {1, 0}, {1, 2}, {1, 4}, {1, 11}}),
                       .shadow = *rc::gen::weightedElement<bool>({{5, false}, {1, true}})});
    }
    both.Decide(parts);
    const Duration pause = milliseconds(*rc::gen::inRange(0, 1'500));
    both.Advance(*rc::gen::weightedElement<Duration>({{3, Duration(0)}, {3, pause}, {1, -pause}}));
  }
}

// Windows and buckets in different orders, and some keys by themselves.
TEST(ShortWayOfManyThreads, CountsEveryGroupOnAllOfItsKeysOrOnNone) {
  constexpr int kThreads = 4;
  constexpr int kEach = 3'000;
  constexpr std::int64_t kBucketBurst = 9'000;
  constexpr std::int64_t kWindowLimit = 5'000;
  StoreUnderTest under_test;
  const Limit bucket = LimitOf("9000/day");
  const Limit window = LimitOf("5000/day", {.algorithm = Algorithm::kFixedWindow});
  const std::array<Charge, 4> keys = {
      under_test.ChargeFor("one", window), under_test.ChargeFor("two", bucket),
      under_test.ChargeFor("three", window), under_test.ChargeFor("four", bucket)};
  std::array<std::atomic<std::int64_t>, 4> admitted{};
  const Now now = under_test.clock.Read();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::array<std::size_t, 4> order = {0, 1, 2, 3};
        std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(t));
        for (std::size_t i = 0; i < kEach; ++i) {
          const std::size_t size = 1 + (i + t) % order.size();
          std::vector<Charge> charges;
          for (std::size_t k = 0; k < size; ++k) charges.push_back(keys[order[k]]);
          std::vector<Decision> decisions(size);
          Group group{.charges = charges, .decisions = decisions};
          under_test.store.Decide(group, now);
          if (!group.decision.allowed) continue;
          for (std::size_t k = 0; k < size; ++k) ++admitted[order[k]];
        }
      });
    }
  }
  EXPECT_EQ(under_test.Remaining("one", window), kWindowLimit - admitted[0]);
  EXPECT_EQ(under_test.Remaining("two", bucket), kBucketBurst - admitted[1]);
  EXPECT_EQ(under_test.Remaining("three", window), kWindowLimit - admitted[2]);
  EXPECT_EQ(under_test.Remaining("four", bucket), kBucketBurst - admitted[3]);
  EXPECT_EQ(std::max(admitted[0].load(), admitted[2].load()), kWindowLimit);
}

}  // namespace
}  // namespace weir
