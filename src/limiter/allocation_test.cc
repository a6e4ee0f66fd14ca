// That a limiter allocates nothing while it decides, and little for one who waits: the C++ heap is
// replaced by one that counts.
//
// Sanitizers bring a heap of their own, which must not be replaced; there every test is skipped.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weir/limiter.h>

#include "base/counting_heap.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Allocation : public testing::TestWithParam<AlgorithmCase> {
 protected:
  void SetUp() override {
#ifdef WEIR_SANITIZER_HEAP
    GTEST_SKIP() << "the sanitizer's own heap must not be replaced";
#endif
    ASSERT_GT(AllocationsOf([] { std::vector<int>(100).shrink_to_fit(); }), 0U)
        << "the counting heap is not in use";
    for (int i = 0; i < 30'000; ++i) keys_.push_back("key " + std::to_string(i));
  }

  ManualClock clock_;
  Limiter limiter_ = *Limiter::Make(GetParam().limit, {.clock = &clock_});
  std::vector<std::string> keys_;
};

TEST_P(Allocation, IsNotDoneByAHitOrADenial) {
  std::array<Decision, 100> decisions;
  const auto check = [&] {
    for (Decision& decision : decisions) decision = limiter_.Check("ann");
  };
  if (GetParam().is_concurrency()) {  // A lease needs a record, which is made once.
    check();
    for (const Decision& decision : decisions) std::ignore = limiter_.Release(decision.reservation);
  }
  EXPECT_EQ(AllocationsOf(check), 0U);
  EXPECT_TRUE(decisions.front().allowed);
  EXPECT_FALSE(decisions.back().allowed);
}

TEST_P(Allocation, IsNotDoneByNewKeysThoughTheTableGrows) {
  if (GetParam().is_concurrency()) return;  // Every lease is a first reservation.
  EXPECT_EQ(AllocationsOf([&] {
              for (const std::string& key : keys_) limiter_.Check(key);
            }),
            0U);
  EXPECT_GT(limiter_.Stats().growths, 2U);
}

TEST_P(Allocation, IsNotDoneAtTheCap) {
  if (GetParam().is_concurrency()) return;
  Limiter small =
      *Limiter::Make(GetParam().limit, {.clock = &clock_, .memory_cap = std::size_t{2} << 20});
  EXPECT_EQ(AllocationsOf([&] {
              for (int round = 0; round < 2; ++round) {
                for (const std::string& key : keys_) small.Check(key);
                clock_.Advance(milliseconds(1));
              }
            }),
            0U);
}

TEST_P(Allocation, IsNotDoneByABatch) {
  std::vector<BatchItem> items;
  for (int i = 0; i < 1'000; ++i) items.push_back({.key = keys_[static_cast<std::size_t>(i % 9)]});
  std::vector<Decision> decisions(items.size());
  ASSERT_TRUE(limiter_.CheckBatch(items, decisions));
  for (const Decision& decision : decisions) std::ignore = limiter_.Release(decision.reservation);
  EXPECT_EQ(AllocationsOf([&] { std::ignore = limiter_.CheckBatch(items, decisions); }), 0U);
}

TEST_P(Allocation, IsNotDoneByTheOtherVerbs) {
  EXPECT_EQ(AllocationsOf([&] {
              std::ignore = limiter_.Peek("ann");
              std::ignore = limiter_.Penalize("ann", {.cost = 7});
              std::ignore = limiter_.Refund("ann", {.cost = 2});
              std::ignore = limiter_.Reset("ann");
              std::ignore = limiter_.Check("ann", Ask{.cost = 0});
            }),
            0U);
}

TEST_P(Allocation, IsNotDoneByReserveAndCommitOnceTheirRecordsAreThere) {
  const auto reserve_and_settle = [&] {
    Result<Reservation> first = limiter_.Reserve("ann", {.cost = 4});
    Result<Reservation> second = limiter_.Reserve("bob", {.cost = 4});
    ASSERT_TRUE(first->Commit(2));
    ASSERT_TRUE(second->Cancel());
    std::ignore = limiter_.Reset("ann");
  };
  reserve_and_settle();
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 100; ++i) reserve_and_settle();
            }),
            0U);
}

TEST_P(Allocation, IsNotDoneByChecksAfterALimitHasChanged) {
  for (int i = 0; i < 100; ++i) limiter_.Penalize(keys_[static_cast<std::size_t>(i)]).value();
  LimitSpec spec = GetParam().limit.spec();
  spec.count = 20;
  ASSERT_TRUE(limiter_.SetLimit("", *Limit::Make(spec)));
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 200; ++i) {
                std::ignore = limiter_.Peek(keys_[static_cast<std::size_t>(i)]);
              }
            }),
            0U);
}

TEST_P(Allocation, IsNotDoneByAChangeToTheSameLimit) {
  const Limit same = *Limit::Make(GetParam().limit.spec());
  EXPECT_EQ(AllocationsOf([&] { std::ignore = limiter_.SetLimit("", same); }), 0U);
}

std::vector<AlgorithmCase> WithALongZone() {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  cases.push_back({"CalendarDay", LimitOf("10/day", {.algorithm = Algorithm::kFixedWindow,
                                                     .align = Align::kCalendar,
                                                     .zone = "America/Argentina/Buenos_Aires"})});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Allocation, testing::ValuesIn(WithALongZone()),
                         NameOfAlgorithm());

class OtherAllocation : public testing::Test {
 protected:
  void SetUp() override {
#ifdef WEIR_SANITIZER_HEAP
    GTEST_SKIP() << "the sanitizer's own heap must not be replaced";
#endif
    for (int i = 0; i < 1'000; ++i) keys_.push_back("key " + std::to_string(i));
  }
  ManualClock clock_;
  std::vector<std::string> keys_;
};

TEST_F(OtherAllocation, IsNotDoneByALayeredCheck) {
  std::vector<Layer> layers;
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    if (!algorithm.is_concurrency()) layers.push_back({algorithm.name, algorithm.limit});
  }
  layers.back().shadow = true;
  Limiter limiter = *Limiter::Make(layers, {.clock = &clock_});
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 20; ++i) limiter.Check("ann");
              for (int i = 0; i < 20; ++i) {
                std::ignore = limiter.Check({"a", "b", kSkip, "d", "e", "f", "g", "h"});
              }
            }),
            0U);
  EXPECT_FALSE(limiter.Check("ann").allowed);
}

TEST_F(OtherAllocation, IsNotDoneByLeasesOnceTheirRecordsAreThere) {
  Limiter limiter =
      *Limiter::Make({{"places", LimitOf("10 concurrent lease 30s")}, {"rate", LimitOf("1M/s")}},
                     {.clock = &clock_});
  const auto take_and_release = [&] {
    std::array<Decision, 12> decisions;
    for (Decision& decision : decisions) decision = limiter.Check("ann");
    for (int i = 0; i < 10; ++i) {
      clock_.Advance(milliseconds(1));
      std::ignore = limiter.Release(decisions[static_cast<std::size_t>(i)].reservation);
    }
    const Result<Lease> lease = limiter.Acquire("bob");
  };
  take_and_release();
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 100; ++i) take_and_release();
            }),
            0U);
}

// What the documents say: some 600 bytes, and 100 for each further layer.
TEST_F(OtherAllocation, OfAWaiterIsSmall) {
  constexpr std::size_t kWaiters = 1'000;
  for (const char* limit : {"1 concurrent lease 1min", "1/s burst 1"}) {
    for (const std::size_t layers : {1U, 4U}) {
      std::vector<Layer> all;
      for (std::size_t i = 0; i < layers; ++i) all.push_back({std::to_string(i), LimitOf(limit)});
      Limiter limiter = *Limiter::Make(all, {.clock = &clock_});
      for (std::size_t i = 0; i < kWaiters; ++i) limiter.Check(keys_[i]);
      const std::size_t before = held_bytes;
      for (std::size_t i = 0; i < kWaiters; ++i) {
        std::ignore = limiter.WaitThen(keys_[i], seconds(50), [](const Decision&) {});
      }
      EXPECT_EQ(limiter.Stats().waiters, kWaiters);
      EXPECT_LE((held_bytes - before) / kWaiters, 500 + 100 * layers) << limit << " " << layers;
    }
  }
}

}  // namespace
}  // namespace weir
