// threads
// Many threads at one store whose cap goes up and down meanwhile.
#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

constexpr int kCapThreads = 3;

class CapAmongThreads : public testing::TestWithParam<AlgorithmCase> {
 protected:
  // The limit as it is, but for how long it remembers.
  static Limit Lasting(const Limit& limit, Duration time) {
    LimitSpec spec = limit.spec();
    (limit.algorithm() == Algorithm::kConcurrency ? spec.lease : spec.period) = time;
    return *Limit::Make(spec);
  }

  Now Read() const {
    const Duration passed(passed_.load());
    return {.steady = start_.steady + passed, .wall = start_.wall + passed};
  }
  Decision Check(std::string_view key, const Limit& limit) {
    return under_test_.store.Decide(under_test_.ChargeFor(key, limit), Read());
  }
  bool CheckBoth(std::string_view one, std::string_view other, const Limit& limit) {
    const std::array charges{under_test_.ChargeFor(one, limit),
                             under_test_.ChargeFor(other, limit)};
    std::array<Decision, 2> decisions;
    Group group{.charges = charges, .decisions = decisions};
    under_test_.store.Decide(group, Read());
    return group.decision.allowed;
  }
  // On every thread, until the test is done.
  void Start(const std::function<void(int, std::mt19937_64&)>& step) {
    for (int i = 0; i < kCapThreads; ++i) {
      threads_.emplace_back([this, i, step] {
        std::mt19937_64 random(static_cast<std::uint64_t>(i) + 1);
        while (!done_) {
          step(i, random);
          steps_[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
  }
  // Until every thread has begun and ended so many steps.
  void Await(std::int64_t steps) {
    for (const std::atomic<std::int64_t>& count : steps_) {
      const std::int64_t before = count.load(std::memory_order_relaxed);
      while (count.load(std::memory_order_relaxed) <= before + steps) std::this_thread::yield();
    }
  }
  void Stop() {
    done_ = true;
    threads_.clear();
  }
  std::uint64_t Evicted() const {
    const MemoryStoreStats stats = under_test_.store.Stats();
    return stats.evicted_live + stats.evicted_denied;
  }

  StoreUnderTest under_test_{{.cap_bytes = 64 * kMiB, .max_reservations = 1U << 20}};
  const Now start_ = under_test_.clock.Read();
  const Limit lasting_ = Lasting(GetParam().limit, std::chrono::hours(24));
  const Limit passing_ = Lasting(GetParam().limit, std::chrono::seconds(1));
  std::atomic<std::int64_t> passed_{0};  // In nanoseconds.
  std::array<std::atomic<std::int64_t>, kCapThreads> steps_{};
  std::atomic<bool> done_{false};
  std::vector<std::jthread> threads_;
};

// What passes makes the tables large while the cap is high, and is over when it is lowered; so
// there is always room for what lasts.
TEST_P(CapAmongThreads, AdmitsExactlyTheBurstOnEveryKeyWhereNobodyHasToGiveWay) {
  constexpr int kKeys = 400;
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back("key " + std::to_string(i));
  std::array<std::atomic<std::int64_t>, kKeys> admitted{};
  std::atomic<int> known{20};  // More and more of them are asked for.
  std::atomic<bool> flood{false};
  std::array<std::int64_t, kCapThreads> flooded{};
  Start([&](int thread, std::mt19937_64& random) {
    const auto one = random() % static_cast<std::size_t>(known.load());
    const auto other = random() % static_cast<std::size_t>(known.load());
    if (random() % 4 == 0 && one != other) {
      if (CheckBoth(keys[one], keys[other], lasting_)) {
        ++admitted[one];
        ++admitted[other];
      }
    } else if (Check(keys[one], lasting_).allowed) {
      ++admitted[one];
    }
    for (int i = 0; i < 20 && flood; ++i) {
      Check(std::to_string(flooded[static_cast<std::size_t>(thread)]++ * kCapThreads + thread),
            passing_);
    }
    if (random() % 16 == 0 && known < kKeys - kCapThreads) ++known;
  });
  const auto bytes = [&] { return under_test_.store.Stats().bytes; };
  for (int round = 0; round < 4; ++round) {
    flood = true;
    while (bytes() < 3 * kMiB) std::this_thread::yield();
    flood = false;
    passed_ += 5'000'000'000;
    Await(1);  // For whoever still goes by the time before, nothing is over.
    const CapChange lowered = under_test_.store.SetCap(kMinCapBytes, Read());
    EXPECT_TRUE(lowered.within_cap);
    EXPECT_LE(lowered.bytes, kMinCapBytes);
    EXPECT_LE(bytes(), kMinCapBytes);
    EXPECT_TRUE(under_test_.store.SetCap(64 * kMiB, Read()).within_cap);
  }
  Stop();
  EXPECT_EQ(Evicted(), 0U);
  for (std::size_t i = 0; i < static_cast<std::size_t>(known); ++i) {
    while (Check(keys[i], lasting_).allowed) ++admitted[i];
    ASSERT_EQ(admitted[i], GetParam().at_once) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, CapAmongThreads, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

// One for each part of a store.
std::vector<AlgorithmCase> OneForEachFloodedPart() {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  std::erase_if(cases, [](const AlgorithmCase& it) {
    return it.name.starts_with("Leaky") || it.name == "FixedWindow" || it.name == "SlidingLog";
  });
  return cases;
}

class FloodedCapAmongThreads : public CapAmongThreads {};

TEST_P(FloodedCapAmongThreads, IsKeptThoughMoreComeThanItHasRoomFor) {
  constexpr int kKeys = 300;
  std::atomic<std::int64_t> admitted{0};
  std::array<std::int64_t, kCapThreads> flooded{};
  Start([&](int thread, std::mt19937_64& random) {
    const std::string key = "key " + std::to_string(random() % kKeys);
    if (Check(key, lasting_).allowed) ++admitted;
    for (int i = 0; i < 10; ++i) {
      Check(std::to_string(flooded[static_cast<std::size_t>(thread)]++ * kCapThreads + thread),
            passing_);
    }
    passed_ += 1'000;
  });
  for (const std::size_t cap : {kMinCapBytes, 5 * kMiB, kMinCapBytes}) {
    EXPECT_TRUE(under_test_.store.SetCap(cap, Read()).within_cap);
    Await(250);
  }
  Stop();
  EXPECT_LE(under_test_.store.Stats().bytes, kMinCapBytes);
  const auto forgotten = static_cast<std::int64_t>(Evicted());
  EXPECT_LE(admitted, GetParam().at_once * (kKeys + forgotten));
  if (under_test_.store.Stats().event_chunks == 0) return;
  // No chunk is lost.
  const auto reset = [&](const std::string& key, const Limit& limit) {
    under_test_.store.Decide(under_test_.ChargeFor(key, limit, 1, Verb::kReset), Read());
  };
  for (int i = 0; i < kKeys; ++i) reset("key " + std::to_string(i), lasting_);
  for (int thread = 0; thread < kCapThreads; ++thread) {
    for (std::int64_t i = 0; i < flooded[static_cast<std::size_t>(thread)]; ++i) {
      reset(std::to_string(i * kCapThreads + thread), passing_);
    }
  }
  EXPECT_EQ(under_test_.store.Stats().event_chunks, 0U);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, FloodedCapAmongThreads,
                         testing::ValuesIn(OneForEachFloodedPart()), NameOfAlgorithm());

}  // namespace
}  // namespace weir
