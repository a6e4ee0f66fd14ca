// threads
// Limits that are changed while a limiter is in use.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/limiter.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;

class SetLimit : public testing::TestWithParam<AlgorithmCase> {
 protected:
  Limit WithCount(std::int64_t count) const {
    LimitSpec spec = GetParam().limit.spec();
    spec.count = count;
    return *Limit::Make(spec);
  }
  std::int64_t Exhaust() {
    std::int64_t admitted = 0;
    while (admitted < 100 && limiter_.Check("ann").allowed) ++admitted;
    return admitted - (GetParam().limit.spec().queue ? 1 : 0);
  }

  ManualClock clock_;
  Limiter limiter_ = *Limiter::Make(GetParam().limit, {.clock = &clock_});
};

TEST_P(SetLimit, KeepsWhatKeysHaveUsedInProportion) {
  limiter_.Check("ann", Ask{.cost = 5}).value();
  ASSERT_TRUE(limiter_.SetLimit("", WithCount(20)));
  EXPECT_EQ(limiter_.Peek("bob")->limit, 20);
  EXPECT_EQ(Exhaust(), GetParam().is_concurrency() ? 15 : 10);
}

TEST_P(SetLimit, ToTheSameChangesNothing) {
  limiter_.Check("ann", Ask{.cost = 5}).value();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(limiter_.SetLimit("", WithCount(10)).value(), LimitChange::kNone);
  }
  EXPECT_EQ(Exhaust(), 5);
}

TEST_P(SetLimit, SaysWhetherKeysGoOnOrStartAnew) {
  EXPECT_EQ(limiter_.SetLimit("", WithCount(20)).value(), LimitChange::kGoesOn);
  EXPECT_EQ(limiter_.SetLimit("", WithCount(20)).value(), LimitChange::kNone);
  EXPECT_EQ(limiter_.SetLimit("", WithCount(10)).value(), LimitChange::kGoesOn);
  LimitSpec other = GetParam().limit.spec();
  if (GetParam().is_concurrency()) {
    other.lease = seconds(20);
  } else if (GetParam().is_bucket()) {
    other.algorithm = Algorithm::kFixedWindow;
    other.queue = false;
  } else {
    other.period = seconds(20);
  }
  EXPECT_EQ(limiter_.SetLimit("", *Limit::Make(other)).value(), LimitChange::kStartsAnew);
  EXPECT_EQ(limiter_.SetLimit("", LimitOf("deny")).value(), LimitChange::kStartsAnew);
  EXPECT_EQ(limiter_.SetLimit("", LimitOf("unlimited")).value(), LimitChange::kStartsAnew);
  EXPECT_EQ(limiter_.SetLimit("", LimitOf("unlimited")).value(), LimitChange::kNone);
}

TEST_P(SetLimit, ManyTimesKeepsWhatKeysHaveUsed) {
  limiter_.Check("ann", Ask{.cost = 5}).value();
  for (const std::int64_t count : {20, 40, 80, 20}) {
    ASSERT_TRUE(limiter_.SetLimit("", WithCount(count)));
    EXPECT_TRUE(limiter_.Peek("ann")->allowed);
  }
  EXPECT_EQ(Exhaust(), GetParam().is_concurrency() ? 15 : 10);
}

TEST_P(SetLimit, SettlesWhatWasReservedBefore) {
  Result<Reservation> cancelled = limiter_.Reserve("ann", {.cost = 3});
  clock_.Advance(Duration(1));
  Result<Reservation> committed = limiter_.Reserve("ann", {.cost = 5});
  ASSERT_TRUE(limiter_.SetLimit("", WithCount(20)));
  ASSERT_TRUE(limiter_.SetLimit("", WithCount(40)));
  ASSERT_TRUE(cancelled->Cancel());
  const Result<Decision> settled = committed->Commit(1);
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->limit, 40);
  // One of ten is four of forty.
  EXPECT_EQ(Exhaust(), 40 - GetParam().Settled(4));
}

TEST_P(SetLimit, ToUnlimitedAndDenyTakesEffectAtOnce) {
  Exhaust();
  ASSERT_TRUE(limiter_.SetLimit("", LimitOf("unlimited")));
  EXPECT_TRUE(limiter_.Check("ann").allowed);
  ASSERT_TRUE(limiter_.SetLimit("", LimitOf("deny")));
  EXPECT_FALSE(limiter_.Check("ann").allowed);
}

TEST_P(SetLimit, ToAnotherAlgorithmStartsAnew) {
  Exhaust();
  const bool was_bucket = GetParam().is_bucket();
  ASSERT_TRUE(limiter_.SetLimit(
      "", LimitOf("7/10s",
                  {.algorithm = was_bucket ? Algorithm::kFixedWindow : Algorithm::kTokenBucket})));
  EXPECT_EQ(limiter_.Peek("ann")->remaining, 7);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, SetLimit, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

TEST(SetLimitOfALayer, ChangesThatLayerAlone) {
  ManualClock clock;
  Limiter limiter =
      *Limiter::Make({{"user", LimitOf("10/10s")}, {"all", LimitOf("10/10s")}}, {.clock = &clock});
  limiter.Check("ann", Ask{.cost = 4}).value();
  ASSERT_TRUE(limiter.SetLimit("all", LimitOf("100/10s")));
  EXPECT_EQ(limiter.Peek({"ann", kSkip})->remaining, 6);
  EXPECT_EQ(limiter.Peek({kSkip, "ann"})->remaining, 60);
}

TEST(SetLimitOfALayer, ThatDoesNotExistIsNotFound) {
  ManualClock clock;
  Limiter limiter = *Limiter::Make({{"user", LimitOf("10/10s")}}, {.clock = &clock});
  for (const char* name : {"", "users", "User"}) {
    const auto result = limiter.SetLimit(name, LimitOf("1/s"));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(result.error().message, testing::HasSubstr('"' + std::string(name) + '"'));
  }
  EXPECT_EQ(limiter.Peek("ann")->limit, 10);
}

TEST(SetLimitOfALayer, SettlesReservationsInTheLayersTheyWereMadeIn) {
  ManualClock clock;
  // Alike, so that only their names tell them apart.
  Limiter limiter =
      *Limiter::Make({{"one", LimitOf("10/10s")}, {"other", LimitOf("10/10s")}}, {.clock = &clock});
  Result<Reservation> reservation = limiter.Reserve({kSkip, "ann"}, {.cost = 6});
  Result<Reservation> both = limiter.Reserve({"ann", "ann"}, {.cost = 4});
  ASSERT_TRUE(limiter.SetLimit("one", LimitOf("20/10s")));
  ASSERT_TRUE(reservation->Cancel());
  EXPECT_EQ(limiter.Peek({kSkip, "ann"})->remaining, 6);
  EXPECT_EQ(limiter.Peek({"ann", kSkip})->remaining, 12);
  ASSERT_TRUE(both->Cancel());
  EXPECT_EQ(limiter.Peek({kSkip, "ann"})->remaining, 10);
  EXPECT_EQ(limiter.Peek({"ann", kSkip})->remaining, 20);
}

TEST(SetLimitOfPlaces, LeavesLeasesToTheirHolders) {
  ManualClock clock;
  Limiter limiter = *Limiter::Make("3 concurrent lease 1h", {.clock = &clock});
  std::vector<Lease> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(*limiter.Acquire("ann"));
  ASSERT_TRUE(limiter.SetLimit("", LimitOf("4 concurrent lease 1h")));
  leases.push_back(*limiter.Acquire("ann"));
  EXPECT_TRUE(leases.back().allowed());
  ASSERT_TRUE(limiter.SetLimit("", LimitOf("2 concurrent lease 1h")));
  EXPECT_FALSE(limiter.Acquire("ann")->allowed());
  leases.clear();
  EXPECT_EQ(limiter.Peek("ann")->remaining, 2);
}

// Whoever asks under the old limit while it changes may add to what the new one lets through at
// most once; over a frozen clock nobody may have more than the largest of the limits.
TEST(SetLimitWhileInUse, NeverAdmitsMoreThanTheLargestLimitOnce) {
  for (const bool bucket : {true, false}) {
    ManualClock clock;
    const LimitSpec spec{.algorithm = bucket ? Algorithm::kTokenBucket : Algorithm::kSlidingLog};
    Limiter limiter = *Limiter::Make(LimitOf("1000/h", spec), {.clock = &clock});
    std::atomic<std::int64_t> admitted{0};
    std::atomic<bool> stop{false};
    constexpr int kThreads = 3;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
          while (!stop) admitted += limiter.Check("ann").allowed ? 1 : 0;
        });
      }
      int changes = 0;
      while (changes < 50) {
        const bool more = changes++ % 2 == 0;
        ASSERT_TRUE(limiter.SetLimit("", LimitOf(more ? "1001/h" : "1000/h", spec)));
        // Of limits that nobody asked under only the last eight are remembered.
        if (changes % 4 == 0) std::ignore = limiter.Peek("ann");
      }
      while (limiter.Check("ann").allowed) ++admitted;
      stop = true;
    }
    // Every change rounds what was used; a request that was under way when it came may be lost.
    EXPECT_LE(admitted, 1'001 + 50 * (kThreads + 1));
    EXPECT_GE(admitted, 900);
    EXPECT_FALSE(limiter.Check("ann").allowed);
  }
}

// The batch is so long that the change comes in its midst, or at the next attempt.
TEST(SetLimitWhileInUse, TakesEffectWithinABatch) {
  const std::vector<BatchItem> items(100'000, BatchItem{.key = "ann"});
  for (const bool layered : {false, true}) {
    bool seen = false;
    for (int attempt = 0; attempt < 100 && !seen; ++attempt) {
      ManualClock clock;
      std::vector<Layer> layers{{"one", LimitOf("1M/s")}};
      if (layered) layers.push_back({"other", LimitOf("1M/s")});
      Limiter limiter = *Limiter::Make(layers, {.clock = &clock});
      std::vector<Decision> decisions(items.size());
      std::jthread batch([&] { EXPECT_TRUE(limiter.CheckBatch(items, decisions)); });
      while (limiter.Stats().entries == 0) std::this_thread::yield();
      ASSERT_TRUE(limiter.SetLimit("one", LimitOf("deny")));
      batch.join();
      EXPECT_TRUE(decisions.front().allowed);
      seen = !decisions.back().allowed;
    }
    EXPECT_TRUE(seen);
  }
}

}  // namespace
}  // namespace weir
