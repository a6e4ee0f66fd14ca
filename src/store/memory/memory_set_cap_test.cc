// A cap that changes while the store is in use: who is forgotten, who is not, and what is held.
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::seconds;

std::string KeyOf(int i) { return "key " + std::to_string(i); }

CapChange SetCap(StoreUnderTest& under_test, std::size_t bytes) {
  const CapChange change = under_test.store.SetCap(bytes, under_test.clock.Read());
  EXPECT_EQ(change.bytes, under_test.store.Stats().bytes);
  EXPECT_TRUE(change.within_cap);
  EXPECT_LE(change.bytes, std::max(bytes, kMinCapBytes));
  return change;
}

std::uint64_t Evicted(const StoreUnderTest& under_test) {
  const MemoryStoreStats stats = under_test.store.Stats();
  return stats.evicted_live + stats.evicted_denied;
}

std::size_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long pages = 0;
  const bool read = std::fscanf(file, "%*u %lu", &pages) == 1;
  std::fclose(file);
  return read ? pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

TEST(SetCap, RaisedLetsAFullStoreGrowAgainAndForgetsNobody) {
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    SCOPED_TRACE(algorithm.name);
    StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
    int keys = 0;
    while (Evicted(under_test) == 0) under_test.Check(KeyOf(keys++), algorithm.limit);
    for (; keys % 1'000 != 0; ++keys) under_test.Check(KeyOf(keys), algorithm.limit);
    const std::uint64_t evicted = Evicted(under_test);
    const auto known = [&](int i) {
      return under_test.Remaining(KeyOf(i), algorithm.limit) < algorithm.at_once;
    };
    std::vector<int> before;
    for (int i = 0; i < keys; ++i) {
      if (known(i)) before.push_back(i);
    }
    ASSERT_GT(before.size(), static_cast<std::size_t>(keys) / 4);

    SetCap(under_test, 32 * kMiB);
    for (int i = keys; i < 4 * keys; ++i) {
      under_test.Check(KeyOf(i), algorithm.limit, algorithm.at_once);
    }
    EXPECT_EQ(Evicted(under_test), evicted);
    EXPECT_GT(under_test.store.Stats().bytes, kMinCapBytes);
    for (const int i : before) ASSERT_TRUE(known(i)) << i;
    for (int i = keys; i < 4 * keys; ++i) {
      ASSERT_FALSE(under_test.Check(KeyOf(i), algorithm.limit).allowed) << i;
    }
  }
}

// The next look whether to grow has moved out of reach then, if nobody moves it back.
TEST(SetCap, RaisedLetsATableGrowBeforeItIsFullToTheLastPlace) {
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
  const Limit limit = LimitOf("10/h");
  for (int i = 0; i < 300'000; ++i) under_test.Check(KeyOf(i), limit);
  const std::uint64_t growths = under_test.store.Stats().growths;
  SetCap(under_test, 64 * kMiB);
  EXPECT_EQ(under_test.store.Stats().growths, growths + 1);
}

TEST(SetCap, LoweredForgetsNobodyWhereThereIsRoom) {
  StoreUnderTest under_test({.cap_bytes = 256 * kMiB, .hash_seed = 7});
  const std::vector<AlgorithmCase> cases = EveryAlgorithm();
  for (const AlgorithmCase& algorithm : cases) {
    for (int i = 0; i < 2'000; ++i) {
      under_test.Check(KeyOf(i), algorithm.limit, algorithm.at_once);
    }
  }
  const MemoryStoreStats before = under_test.store.Stats();
  // What they take when they are packed as far as a table is filled by itself.
  SetCap(under_test, before.bytes * 9 / 10);
  for (const AlgorithmCase& algorithm : cases) {
    SCOPED_TRACE(algorithm.name);
    for (int i = 0; i < 2'000; ++i) {
      ASSERT_FALSE(under_test.Check(KeyOf(i), algorithm.limit).allowed) << i;
    }
  }
  EXPECT_EQ(Evicted(under_test), 0U);
}

// A table that many have left takes nothing from the others.
TEST(SetCap, LoweredTakesFirstWhatNobodyNeeds) {
  StoreUnderTest under_test({.cap_bytes = 64 * kMiB, .hash_seed = 7});
  const Limit shortly = LimitOf("10/s");
  for (int i = 0; i < 800'000; ++i) under_test.Check(KeyOf(i), shortly);
  under_test.clock.Advance(seconds(10));
  const Limit window = LimitOf("10/day", {.algorithm = Algorithm::kSlidingWindow});
  const Limit log = LimitOf("50/day", {.algorithm = Algorithm::kSlidingLog});
  const Limit bucket = LimitOf("10/day");
  for (int i = 0; i < 10'000; ++i) {
    under_test.Check(KeyOf(i), window, 10);
    under_test.Check(KeyOf(i), bucket, 10);
    under_test.Check(KeyOf(i), log, 50);
  }
  ASSERT_GT(under_test.store.Stats().bytes, 15 * kMiB);
  SetCap(under_test, 5 * kMiB);
  EXPECT_EQ(Evicted(under_test), 0U);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(under_test.Check(KeyOf(i), window).allowed) << i;
    ASSERT_FALSE(under_test.Check(KeyOf(i), bucket).allowed) << i;
    ASSERT_FALSE(under_test.Check(KeyOf(i), log).allowed) << i;
  }
}

TEST(SetCap, LoweredTakesFirstWhatLogsHeldWhoseTimeHasPassed) {
  StoreUnderTest under_test({.cap_bytes = 64 * kMiB, .hash_seed = 7});
  const Limit passing = LimitOf("10k/s", {.algorithm = Algorithm::kSlidingLog});
  for (int i = 0; i < 400'000; ++i) {
    under_test.clock.Advance(Duration(1));
    under_test.Check(KeyOf(i % 100), passing);
  }
  under_test.clock.Advance(seconds(2));
  const Limit bucket = LimitOf("1/day");
  for (int i = 0; i < 45'000; ++i) under_test.Check(KeyOf(i), bucket);
  ASSERT_GT(under_test.store.Stats().bytes, 7 * kMiB);
  SetCap(under_test, kMinCapBytes);
  EXPECT_EQ(Evicted(under_test), 0U);
  for (int i = 0; i < 45'000; ++i) ASSERT_FALSE(under_test.Check(KeyOf(i), bucket).allowed) << i;
}

TEST(SetCap, LoweredTooFarForgetsThoseBeingDeniedLast) {
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    SCOPED_TRACE(algorithm.name);
    StoreUnderTest under_test({.cap_bytes = 64 * kMiB, .hash_seed = 7});
    const int denied = algorithm.limit.spec().strict ? 150 : 600;
    for (int i = 0; i < denied; ++i) {
      under_test.Check(KeyOf(i), algorithm.limit, algorithm.at_once);
      EXPECT_FALSE(under_test.Check(KeyOf(i), algorithm.limit).allowed);
    }
    for (int i = denied; under_test.store.Stats().bytes < 6 * kMiB; ++i) {
      under_test.Check(KeyOf(i), algorithm.limit);
    }
    ASSERT_EQ(Evicted(under_test), 0U);
    SetCap(under_test, kMinCapBytes);
    const MemoryStoreStats stats = under_test.store.Stats();
    EXPECT_GT(stats.evicted_live, 0U);
    EXPECT_EQ(stats.evicted_denied, 0U);
    // It uses what it may.
    EXPECT_GT(stats.bytes, kMinCapBytes * 6 / 10);
    for (int i = 0; i < denied; ++i) {
      ASSERT_FALSE(under_test.Check(KeyOf(i), algorithm.limit).allowed) << i;
    }
  }
}

TEST(SetCap, LoweredGivesMemoryBackToTheSystem) {
  StoreUnderTest under_test({.cap_bytes = 256 * kMiB, .hash_seed = 7});
  const Limit bucket = LimitOf("10/day");
  const Limit log = LimitOf("60k/day", {.algorithm = Algorithm::kSlidingLog});
  for (int i = 0; i < 1'000'000; ++i) under_test.Check(KeyOf(i), bucket);
  for (int i = 0; i < 2'000'000; ++i) {
    under_test.clock.Advance(Duration(100));
    under_test.Check(KeyOf(i % 100), log);
  }
  const std::size_t held = under_test.store.Stats().bytes;
  ASSERT_GT(held, 40 * kMiB);
  const std::size_t before = ResidentBytes();
  const std::size_t after_bytes = SetCap(under_test, kMinCapBytes).bytes;
  const std::size_t after = ResidentBytes();
  // The ends of arrays may share a large page with what is there.
  EXPECT_LT(after + (held - after_bytes) * 9 / 10, before + 4 * kMiB);
}

// Logs of every length, whose every event counts until its own time is over.
TEST(SetCap, LoweredKeepsLogsToTheEvent) {
  constexpr int kKeys = 300;
  StoreUnderTest lowered({.cap_bytes = 64 * kMiB, .hash_seed = 7});
  StoreUnderTest untouched({.cap_bytes = 64 * kMiB, .hash_seed = 7});
  const Limit log = LimitOf("2k/h", {.algorithm = Algorithm::kSlidingLog});
  const Limit passing = LimitOf("10k/20s", {.algorithm = Algorithm::kSlidingLog});
  std::mt19937_64 random(5);
  const auto both = [&](Verb verb, const std::string& key, const Limit& limit, std::int64_t cost) {
    const Decision one = lowered.Do(verb, key, limit, cost);
    const Decision other = untouched.Do(verb, key, limit, cost);
    ASSERT_EQ(one.allowed, other.allowed);
    ASSERT_EQ(one.remaining, other.remaining);
    ASSERT_EQ(one.retry_after, other.retry_after);
    ASSERT_EQ(one.reset_after, other.reset_after);
  };
  const auto advance = [&](Duration by) {
    lowered.clock.Advance(by);
    untouched.clock.Advance(by);
  };
  const auto traffic = [&](int checks) {
    for (int i = 0; i < checks; ++i) {
      advance(microseconds(random() % 500));
      const std::string key = KeyOf(static_cast<int>(random() % (random() % kKeys + 1)));
      both(random() % 20 == 0 ? Verb::kRefund : Verb::kCheck, key, log,
           static_cast<std::int64_t>(random() % 4));
      if (HasFatalFailure()) return;
    }
  };
  // What is gone soon lies between what is kept.
  for (int i = 0; i < 200; ++i) {
    for (int n = 0; n < 1'000; ++n) lowered.Check("passing " + std::to_string(n), passing);
    traffic(200);
    if (HasFatalFailure()) return;
  }
  advance(seconds(20));
  const MemoryStoreStats before = lowered.store.Stats();
  ASSERT_GT(before.bytes, 3 * kMiB);
  SetCap(lowered, kMinCapBytes);
  EXPECT_EQ(Evicted(lowered), 0U);
  EXPECT_LT(lowered.store.Stats().event_chunks, before.event_chunks);
  traffic(20'000);
  advance(hours(1) - seconds(20));
  traffic(20'000);
  EXPECT_EQ(Evicted(lowered), 0U);
}

TEST(SetCap, LoweredKeepsLeases) {
  StoreUnderTest under_test({.cap_bytes = 64 * kMiB, .hash_seed = 7});
  const Limit places = LimitOf("50 concurrent lease 1h");
  const Limit passing = LimitOf("10k/s", {.algorithm = Algorithm::kSlidingLog});
  std::vector<ReservationId> leases;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 300; ++i) {
      under_test.clock.Advance(Duration(100));
      leases.push_back(under_test.Check(KeyOf(i), places).reservation);
      for (int n = 0; n < 30; ++n) {
        under_test.clock.Advance(Duration(1));
        under_test.Check("passing " + std::to_string((i * 30 + n) % 900), passing);
      }
    }
  }
  under_test.clock.Advance(seconds(2));
  const std::size_t before = under_test.store.Stats().bytes;
  ASSERT_GT(before, kMinCapBytes);
  SetCap(under_test, kMinCapBytes);
  ASSERT_EQ(Evicted(under_test), 0U);
  EXPECT_EQ(under_test.store.Stats().reservations, leases.size());
  for (int i = 0; i < 300; ++i) ASSERT_EQ(under_test.Remaining(KeyOf(i), places), 20) << i;
  for (std::size_t i = 0; i < leases.size(); ++i) {
    ASSERT_TRUE(under_test.Cancel(leases[i])) << i;
    const int key = static_cast<int>(i % 300);
    ASSERT_EQ(under_test.Remaining(KeyOf(key), places), 21 + static_cast<std::int64_t>(i / 300));
  }
  EXPECT_EQ(under_test.store.Stats().event_chunks, 0U);
}

TEST(SetCap, MayGoUpAndDownManyTimes) {
  StoreUnderTest under_test({.cap_bytes = 4 * kMiB, .hash_seed = 7});
  const std::vector<AlgorithmCase> cases = EveryAlgorithm();
  for (const AlgorithmCase& algorithm : cases) {
    for (int i = 0; i < 500; ++i) {
      under_test.Check(KeyOf(i), algorithm.limit, algorithm.at_once);
    }
  }
  const Limit shortly = LimitOf("10/ms", {.algorithm = Algorithm::kSlidingLog});
  const Limit bucket = LimitOf("10/ms");
  for (int round = 0; round < 30; ++round) {
    SetCap(under_test, (8 + static_cast<std::size_t>(round % 5)) * kMiB);
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = std::to_string(round) + " " + std::to_string(i);
      under_test.Check(key, shortly);
      under_test.Check(key, bucket);
    }
    ASSERT_GT(under_test.store.Stats().bytes, 3 * kMiB);
    under_test.clock.Advance(std::chrono::milliseconds(20));
    SetCap(under_test, 3 * kMiB);
    for (const AlgorithmCase& algorithm : cases) {
      // No time to speak of has passed for these.
      for (int i = 0; i < 500; i += 50) {
        ASSERT_LT(under_test.Remaining(KeyOf(i), algorithm.limit), 3) << algorithm.name << round;
      }
    }
  }
  EXPECT_EQ(Evicted(under_test), 0U);
}

TEST(SetCap, IsHeldWithinWhatAStoreCanHave) {
  StoreUnderTest under_test({.cap_bytes = 4 * kMiB});
  EXPECT_TRUE(under_test.store.SetCap(0, under_test.clock.Read()).within_cap);
  const Limit limit = LimitOf("10/h");
  for (int i = 0; i < 200'000; ++i) under_test.Check(KeyOf(i), limit);
  EXPECT_LE(under_test.store.Stats().bytes, kMinCapBytes);
  EXPECT_GT(under_test.store.Stats().bytes, kMinCapBytes / 2);
  EXPECT_TRUE(under_test.store.SetCap(~std::size_t{0}, under_test.clock.Read()).within_cap);
  for (int i = 0; i < 200'000; ++i) under_test.Check("more " + KeyOf(i), limit);
  EXPECT_GT(under_test.store.Stats().bytes, kMinCapBytes);
}

// As many keys are expected as the table would take long to grow to.
TEST(SetCap, LoweredTakesBackAlsoWhatWasTakenAtTheStart) {
  StoreUnderTest under_test({.cap_bytes = 64 * kMiB, .expected_keys = 1'000'000});
  ASSERT_GT(under_test.store.Stats().bytes, 20 * kMiB);
  const Limit limit = LimitOf("1/h");
  for (int i = 0; i < 10'000; ++i) under_test.Check(KeyOf(i), limit);
  SetCap(under_test, kMinCapBytes);
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(under_test.Check(KeyOf(i), limit).allowed);
}

// Every part is assured of its share of the new cap, as of the first.
TEST(SetCap, LeavesEveryAlgorithmItsShare) {
  for (const bool raised : {false, true}) {
    StoreUnderTest under_test({.cap_bytes = raised ? kMinCapBytes : 64 * kMiB, .hash_seed = 7});
    const Limit bucket = LimitOf("10/h");
    if (!raised) {
      for (int i = 0; i < 1'000'000; ++i) under_test.Check(KeyOf(i), bucket);
    }
    SetCap(under_test, 8 * kMiB);
    for (int i = 0; i < 400'000; ++i) under_test.Check("more " + KeyOf(i), bucket);
    const std::uint64_t evicted = Evicted(under_test);
    ASSERT_GT(evicted, 0U);
    for (const AlgorithmCase& late : EveryAlgorithm()) {
      if (late.is_bucket() || late.is_concurrency() || late.name == "SlidingWindow") continue;
      SCOPED_TRACE(late.name);
      const int keys = late.limit.spec().strict ? 40 : 1'600;
      for (int i = 0; i < keys; ++i) under_test.Check(KeyOf(i), late.limit, late.at_once);
      EXPECT_EQ(Evicted(under_test), evicted);
      for (int i = 0; i < keys; ++i) {
        ASSERT_FALSE(under_test.Check(KeyOf(i), late.limit).allowed) << i;
      }
    }
    EXPECT_LE(under_test.store.Stats().bytes, 8 * kMiB);
  }
}

}  // namespace
}  // namespace weir
