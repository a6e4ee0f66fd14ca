// threads
// Many threads at one store. The clock stands still, so what may be let through is known exactly.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

constexpr int kStoreThreads = 4;

// Runs `work(thread, random)` on every thread at once.
void OnAllThreads(const std::function<void(int, std::mt19937_64&)>& work) {
  std::atomic<int> ready{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kStoreThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(static_cast<std::uint64_t>(i) + 1);
      ++ready;
      while (ready < kStoreThreads) std::this_thread::yield();
      work(i, random);
    });
  }
}

int Pick(std::mt19937_64& random, int most) {
  return std::uniform_int_distribution<int>(0, most)(random);
}

// Day-long windows, so that nothing comes back while a test runs.
std::vector<AlgorithmCase> DayLimits(std::int64_t count) {
  std::vector<AlgorithmCase> cases;
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    LimitSpec spec = algorithm.limit.spec();
    spec.count = count;
    spec.burst = 0;
    if (algorithm.is_concurrency()) {
      spec.lease = std::chrono::hours(24);
    } else {
      spec.period = std::chrono::hours(24);
    }
    const std::int64_t extra = algorithm.at_once - 10;  // The one a queue is serving.
    cases.push_back({algorithm.name, *Limit::Make(spec), count + extra});
  }
  return cases;
}

class ManyThreads : public testing::TestWithParam<AlgorithmCase> {
 protected:
  const Limit& limit() const { return GetParam().limit; }
};

TEST_P(ManyThreads, AdmitExactlyTheBurstOnALoneHotKey) {
  StoreUnderTest under_test;
  std::atomic<std::int64_t> admitted{0};
  OnAllThreads([&](int, std::mt19937_64&) {
    for (int i = 0; i < 600; ++i) {
      if (under_test.Check("hot", limit()).allowed) ++admitted;
    }
  });
  EXPECT_EQ(admitted, GetParam().at_once);
}

// New keys make the table grow and move while the others are being charged.
TEST_P(ManyThreads, AdmitExactlyTheBurstOnEveryKeyWhileTheTableGrows) {
  constexpr int kKeys = 200;
  StoreUnderTest under_test({.cap_bytes = std::size_t{64} << 20});
  std::array<std::atomic<std::int64_t>, kKeys> admitted{};
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back("key " + std::to_string(i));
  LimitSpec spec = limit().spec();
  spec.count = 3;
  const Limit three = *Limit::Make(spec);
  OnAllThreads([&](int thread, std::mt19937_64& random) {
    for (int i = 0; i < 2'500; ++i) {
      const auto key = static_cast<std::size_t>(Pick(random, kKeys - 1));
      if (under_test.Check(keys[key], three).allowed) ++admitted[key];
      under_test.Check("new " + std::to_string(thread * 10'000 + i), three);
    }
  });
  const MemoryStoreStats stats = under_test.store.Stats();
  EXPECT_GT(stats.growths, 0U);
  if (GetParam().is_bucket()) {
    EXPECT_EQ(stats.evicted_live + stats.evicted_denied, 0U);
  }
  const std::int64_t most = 3 + (spec.queue ? 1 : 0);
  for (std::size_t i = 0; i < kKeys; ++i) {
    while (under_test.Check(keys[i], three).allowed) ++admitted[i];
    EXPECT_GE(admitted[i], most) << i;
    // A key that was forgotten has a burst of its own again.
    if (stats.evicted_live + stats.evicted_denied == 0) {
      EXPECT_EQ(admitted[i], most) << i;
    }
  }
}

TEST_P(ManyThreads, StayWithinTheCapAndAdmitOneBurstMoreForEachKeyForgotten) {
  constexpr int kKeys = 1'000;
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes});
  std::atomic<std::int64_t> admitted{0};
  OnAllThreads([&](int thread, std::mt19937_64& random) {
    for (int i = 0; i < 4'000; ++i) {
      const std::string key = "key " + std::to_string(Pick(random, kKeys - 1));
      if (under_test.Check(key, limit()).allowed) ++admitted;
      under_test.Check("flood " + std::to_string(thread * 100'000 + i), limit(), 100);
      if (i % 100 == 0) {
        EXPECT_LE(under_test.store.Stats().bytes, kMinCapBytes);
      }
    }
  });
  const MemoryStoreStats stats = under_test.store.Stats();
  const auto forgotten = static_cast<std::int64_t>(stats.evicted_live + stats.evicted_denied);
  EXPECT_LE(admitted, GetParam().at_once * (kKeys + forgotten));
}

// Three keys, and groups of two of them each.
TEST_P(ManyThreads, LeaveNoTraceOfADeniedGroupOnAnyOfItsKeys) {
  StoreUnderTest under_test;
  const Limit bucket = DayLimits(400)[0].limit;
  const std::array<const Limit*, 3> limits{&limit(), &bucket, &limit()};
  const std::array<std::string, 3> keys{"a", "b", "c"};
  std::array<std::atomic<std::int64_t>, 3> admitted{};
  OnAllThreads([&](int, std::mt19937_64& random) {
    for (int i = 0; i < 600; ++i) {
      const auto one = static_cast<std::size_t>(Pick(random, 2));
      const std::size_t other = (one + 1) % 3;
      const std::int64_t cost = 1 + Pick(random, 1);
      if (under_test
              .Ask({under_test.ChargeFor(keys[one], *limits[one], cost),
                    under_test.ChargeFor(keys[other], *limits[other], cost)})
              .allowed) {
        admitted[one] += cost;
        admitted[other] += cost;
      }
      if (Pick(random, 9) == 0 && under_test.Check(keys[one], *limits[one]).allowed) {
        ++admitted[one];
      }
    }
  });
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t most = i == 1 ? 400 : GetParam().at_once;
    EXPECT_LE(admitted[i], most);
    const std::int64_t left = under_test.Exhaust(keys[i], *limits[i]);
    EXPECT_EQ(admitted[i] + left, most) << keys[i];
  }
}

TEST_P(ManyThreads, ConserveWhatIsReservedCommittedCancelledAndRefunded) {
  StoreUnderTest under_test;
  LimitSpec spec = limit().spec();
  spec.count = 50'000;
  const Limit roomy = *Limit::Make(spec);
  const std::array<std::string, 2> keys{"a", "b"};
  std::atomic<std::int64_t> used{0};
  OnAllThreads([&](int, std::mt19937_64& random) {
    for (int i = 0; i < 400; ++i) {
      const Decision reserved = under_test.Ask(
          {under_test.ChargeFor(keys[0], roomy, 5), under_test.ChargeFor(keys[1], roomy, 5)},
          Action::kReserve);
      ASSERT_TRUE(reserved.allowed);
      const std::int64_t real = Pick(random, 10);
      const bool cancelled = Pick(random, 2) == 0;
      ASSERT_TRUE(cancelled ? under_test.Cancel(reserved.reservation)
                            : under_test.Commit(reserved.reservation, real));
      EXPECT_FALSE(under_test.Cancel(reserved.reservation));
      if (!cancelled) used += GetParam().Settled(real);
    }
  });
  for (const std::string& key : keys) {
    EXPECT_EQ(under_test.Remaining(key, roomy),
              std::min(roomy.capacity(), roomy.capacity() + (spec.queue ? 1 : 0) - used));
  }
  EXPECT_EQ(under_test.store.Stats().reservations, 0U);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ManyThreads, testing::ValuesIn(DayLimits(300)),
                         NameOfAlgorithm());

// A limit that changes all the time, and the versions that threads may still be using.
class ChangingLimit {
 public:
  explicit ChangingLimit(const Limit& first) { Publish(first); }

  const Limit& Current() const { return *current_.load(); }
  void Change(std::int64_t count, Now now) {
    const std::scoped_lock lock(mutex_);
    LimitSpec spec = Current().spec();
    spec.count = count;
    Publish(Limit::Make(spec)->Replacing(Current(), now));
  }

 private:
  void Publish(const Limit& limit) {
    versions_.push_back(std::make_unique<Limit>(limit));
    current_ = versions_.back().get();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Limit>> versions_;
  std::atomic<const Limit*> current_{nullptr};
};

TEST(ManyThreadsAtPlaces, NeverHoldMoreThanThereAre) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("5 concurrent lease 1h");
  std::atomic<std::int64_t> holding{0};
  OnAllThreads([&](int, std::mt19937_64&) {
    for (int i = 0; i < 2'000; ++i) {
      const std::int64_t cost = 1 + i % 2;
      const Decision decision = under_test.Check("ann", limit, cost);
      if (!decision.allowed) continue;
      EXPECT_LE(holding += cost, 5);
      if (i % 3 == 0) std::this_thread::yield();
      holding -= cost;
      EXPECT_TRUE(under_test.Cancel(decision.reservation));
    }
  });
  EXPECT_EQ(under_test.Remaining("ann", limit), 5);
  EXPECT_EQ(under_test.store.Stats().event_chunks, 0U);
}

TEST(ManyThreadsAtPlaces, KeepTheirsThoughTheNumberOfPlacesChanges) {
  constexpr int kMost = 8;
  StoreUnderTest under_test;
  ChangingLimit limit(LimitOf("8 concurrent lease 1h"));
  std::shared_mutex change;  // Held by whoever asks, so that nobody asks under an old limit.
  std::atomic<int> holding{0};
  const auto release = [&](ReservationId id) {
    const std::shared_lock lock(change);
    const Charge in_force = under_test.ChargeFor("ann", limit.Current());
    --holding;
    ASSERT_TRUE(under_test.Cancel(id, {&in_force, 1}));
  };
  OnAllThreads([&](int thread, std::mt19937_64& random) {
    std::vector<ReservationId> mine;
    for (int i = 0; i < 1'000; ++i) {
      if (thread == 0 && i % 20 == 0) {
        const std::unique_lock lock(change);
        limit.Change(i % 40 == 0 ? 5 : kMost, under_test.clock.Read());
      }
      if (mine.size() >= 3 || Pick(random, 1) == 0) {
        if (mine.empty()) continue;
        release(mine.back());
        mine.pop_back();
        continue;
      }
      const std::shared_lock lock(change);
      const Decision decision = under_test.Check("ann", limit.Current());
      if (!decision.allowed) continue;
      EXPECT_LE(++holding, kMost);
      mine.push_back(decision.reservation);
    }
    for (const ReservationId id : mine) release(id);
  });
  EXPECT_EQ(under_test.Remaining("ann", limit.Current()), limit.Current().capacity());
  EXPECT_EQ(under_test.store.Stats().event_chunks, 0U);
}

// A request that had taken up the old limit when it changed finds nothing there any more, so each
// change may let through one more for each thread but the one that made it.
TEST(ManyThreadsUnderAChangingLimit, AdmitNoMoreThanTheLargestAndThoseUnderWay) {
  for (const AlgorithmCase& algorithm : DayLimits(300)) {
    SCOPED_TRACE(algorithm.name);
    constexpr int kChanges = 30;
    StoreUnderTest under_test;
    ChangingLimit limit(algorithm.limit);
    std::atomic<std::int64_t> admitted{0};
    OnAllThreads([&](int thread, std::mt19937_64&) {
      for (int i = 0; i < 300; ++i) {
        if (under_test.Check("ann", limit.Current()).allowed) ++admitted;
        if (thread == 0 && i % 10 == 0)
          limit.Change(i % 20 == 0 ? 299 : 300, under_test.clock.Read());
      }
    });
    admitted += under_test.Exhaust("ann", limit.Current());
    EXPECT_LE(admitted, algorithm.at_once + kChanges * (kStoreThreads - 1));
    EXPECT_GE(admitted, 300 - 2 * kChanges);
  }
}

TEST(ManyThreadsWithNewKeys, ForgetNoneWhileThereIsMemory) {
  constexpr int kKeysOfEach = 100'000;
  StoreUnderTest under_test;
  const Limit limit = LimitOf("1/day");
  const auto key = [](int thread, int i) { return std::to_string(thread * kKeysOfEach + i); };
  OnAllThreads([&](int thread, std::mt19937_64&) {
    for (int i = 0; i < kKeysOfEach; ++i) {
      EXPECT_TRUE(under_test.Check(key(thread, i), limit).allowed);
    }
  });
  const MemoryStoreStats stats = under_test.store.Stats();
  EXPECT_EQ(stats.entries, static_cast<std::size_t>(kStoreThreads) * kKeysOfEach);
  EXPECT_EQ(stats.evicted_live, 0U);
  for (int thread = 0; thread < kStoreThreads; ++thread) {
    for (int i = 0; i < kKeysOfEach; ++i) {
      ASSERT_FALSE(under_test.Check(key(thread, i), limit).allowed) << key(thread, i);
    }
  }
}

// It is counted all the same, by whoever asks next under a newer limit. What was charged more than
// eight changes ago is no longer looked for.
TEST(ManyThreadsUnderAChangingLimit, HaveAllTheyWereAdmittedForCounted) {
  for (const AlgorithmCase& algorithm : DayLimits(50'000)) {
    SCOPED_TRACE(algorithm.name);
    constexpr int kChanges = 40;
    StoreUnderTest under_test;
    ChangingLimit limit(algorithm.limit);
    std::atomic<std::int64_t> admitted{0};
    OnAllThreads([&](int thread, std::mt19937_64&) {
      for (int i = 1; i <= 1'000; ++i) {
        if (under_test.Check("ann", limit.Current()).allowed) ++admitted;
        if (thread == 0 && i % (1'000 / kChanges) == 0) {
          limit.Change(i % (2'000 / kChanges) == 0 ? 50'000 : 50'001, under_test.clock.Read());
        }
      }
    });
    EXPECT_EQ(admitted, kStoreThreads * 1'000);
    const std::int64_t used = algorithm.at_once - under_test.Remaining("ann", limit.Current());
    EXPECT_GE(used, admitted - (kStoreThreads - 1) * kChanges / 8);
    EXPECT_LE(used, admitted + (kStoreThreads + 1) * kChanges);  // Rounded up each time.
  }
}

TEST(ManyThreadsShortOfEventMemory, LoseNoChunk) {
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes});
  const Limit log = LimitOf("1k/h", {.algorithm = Algorithm::kSlidingLog});
  const Limit places = LimitOf("1k concurrent lease 1h");
  constexpr int kKeys = 60;
  // A clock for each request: events of one instant would share an event.
  std::atomic<std::int64_t> ticks{0};
  const Now start = under_test.clock.Read();
  const auto now = [&] {
    const Duration passed(++ticks);
    return Now{.steady = start.steady + passed, .wall = start.wall + passed};
  };
  OnAllThreads([&](int, std::mt19937_64& random) {
    for (int i = 0; i < 12'000; ++i) {
      const std::string key = "key " + std::to_string(Pick(random, kKeys - 1));
      const std::string other = "key " + std::to_string(Pick(random, kKeys - 1));
      switch (Pick(random, 20)) {
        case 0: {
          const std::array charges{under_test.ChargeFor(key, log),
                                   under_test.ChargeFor(other, places)};
          std::array<Decision, 2> decisions;
          Group group{.charges = charges, .decisions = decisions};
          under_test.store.Decide(group, now());
          break;
        }
        case 1:
          under_test.store.Decide(under_test.ChargeFor(key, log, 5, Verb::kRefund), now());
          break;
        default:
          under_test.store.Decide(under_test.ChargeFor(key, Pick(random, 1) == 0 ? log : places),
                                  now());
          break;
      }
    }
  });
  EXPECT_LE(under_test.store.Stats().bytes, kMinCapBytes);
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "key " + std::to_string(i);
    under_test.store.Decide(under_test.ChargeFor(key, log, 1, Verb::kReset), now());
    under_test.store.Decide(under_test.ChargeFor(key, places, 1, Verb::kReset), now());
  }
  EXPECT_EQ(under_test.store.Stats().event_chunks, 0U);
}

}  // namespace
}  // namespace weir
