// What happens when memory is short: who is forgotten, who is not, and that the cap holds.
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

TEST(MemoryCap, MakesTheStoreForgetNobodyBelowIt) {
  StoreUnderTest under_test({.hash_seed = 7});
  const std::vector<AlgorithmCase> cases = EveryAlgorithm();
  for (const AlgorithmCase& algorithm : cases) {
    for (int i = 0; i < 3'000; ++i) {
      under_test.Check("key " + std::to_string(i), algorithm.limit, algorithm.at_once);
    }
  }
  for (const AlgorithmCase& algorithm : cases) {
    SCOPED_TRACE(algorithm.name);
    for (int i = 0; i < 3'000; ++i) {
      ASSERT_FALSE(under_test.Check("key " + std::to_string(i), algorithm.limit).allowed) << i;
    }
  }
  const MemoryStoreStats stats = under_test.store.Stats();
  EXPECT_EQ(stats.entries, 3'000U * cases.size());
  EXPECT_GT(stats.growths, 0U);
  EXPECT_EQ(stats.evicted_live, 0U);
  EXPECT_EQ(stats.evicted_denied, 0U);
}

// One algorithm for each part of the store that competes with the others for memory.
std::vector<AlgorithmCase> OneForEachPart() {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  std::erase_if(cases, [](const AlgorithmCase& it) {
    return it.name.starts_with("Leaky") || it.name == "SlidingWindow" || it.is_concurrency();
  });
  return cases;
}

TEST(MemoryCap, HoldsWhateverComes) {
  const MemoryStoreOptions options{.cap_bytes = kMinCapBytes, .hash_seed = 7};
  for (const AlgorithmCase& algorithm : OneForEachPart()) {
    SCOPED_TRACE(algorithm.name);
    StoreUnderTest under_test(options);
    for (int i = 0; i < 150'000; ++i) {
      under_test.Check("key " + std::to_string(i), algorithm.limit);
      if (i % 64 == 0) {
        ASSERT_LE(under_test.store.Stats().bytes, kMinCapBytes);
      }
    }
    EXPECT_GT(under_test.store.Stats().evicted_live, 0U);
  }
}

// Every part is assured of its share, however greedy those that came first.
TEST(MemoryCap, LeavesEveryAlgorithmItsShareWhenTheOthersHaveFilledTheRest) {
  const std::vector<AlgorithmCase> all = OneForEachPart();
  for (const AlgorithmCase& late : all) {
    SCOPED_TRACE(late.name);
    StoreUnderTest under_test({.cap_bytes = std::size_t{4} << 20, .hash_seed = 7});
    for (const AlgorithmCase& early : all) {
      if (early.name == late.name) continue;
      for (int i = 0; i < 200'000; i += early.is_bucket() ? 1 : 8) {
        under_test.Check("key " + std::to_string(i), early.limit);
      }
    }
    const std::uint64_t evicted = under_test.store.Stats().evicted_live;
    ASSERT_GT(evicted, 0U);
    // As many as a thirty-second of the cap, or the first few lines, have room for.
    const int keys = !late.limit.spec().strict ? 800 : late.name == "StrictWindow" ? 200 : 40;
    for (int i = 0; i < keys; ++i) {
      under_test.Check("key " + std::to_string(i), late.limit, late.at_once);
    }
    EXPECT_EQ(under_test.store.Stats().evicted_live, evicted);
    for (int i = 0; i < keys; ++i) {
      ASSERT_FALSE(under_test.Check("key " + std::to_string(i), late.limit).allowed) << i;
    }
  }
}

TEST(MemoryCap, MakesTheStoreForgetThoseBeingDeniedLast) {
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
  const Limit limit = LimitOf("10/min");
  constexpr int kDenied = 1'000;
  const auto key = [](int i) { return "denied " + std::to_string(i); };
  for (int i = 0; i < kDenied; ++i) {
    under_test.Check(key(i), limit, 10);
    EXPECT_FALSE(under_test.Check(key(i), limit).allowed);
  }
  for (int i = 0; i < 300'000; ++i) under_test.Check("flood " + std::to_string(i), limit);
  ASSERT_GT(under_test.store.Stats().evicted_live, 0U);
  EXPECT_EQ(under_test.store.Stats().evicted_denied, 0U);
  for (int i = 0; i < kDenied; ++i) ASSERT_FALSE(under_test.Check(key(i), limit).allowed) << i;
}

// Those who were denied once are let in again and have something left: they are as any other.
TEST(MemoryCap, MakesTheStoreForgetThoseThatAreNoLongerDeniedAsAnyOther) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kSlidingWindow}) {
    StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
    const Limit limit = LimitOf("10/h", {.algorithm = algorithm});
    constexpr int kEased = 200;
    const auto key = [](int i) { return "eased " + std::to_string(i); };
    for (int i = 0; i < kEased; ++i) {
      under_test.Check(key(i), limit, 10);
      EXPECT_FALSE(under_test.Check(key(i), limit).allowed);
      under_test.Do(Verb::kRefund, key(i), limit, 8);
      EXPECT_TRUE(under_test.Check(key(i), limit).allowed);
    }
    for (int i = 0; i < 200'000; ++i) under_test.Check("flood " + std::to_string(i), limit, 10);
    ASSERT_GT(under_test.store.Stats().evicted_live, 0U);
    int forgotten = 0;
    for (int i = 0; i < kEased; ++i) {
      forgotten += under_test.Remaining(key(i), limit) == 10 ? 1 : 0;
    }
    EXPECT_GT(forgotten, kEased / 8);
  }
}

TEST(MemoryCap, KeepsTheMarkOfThoseBeingDeniedWhoAreMerelyLookedAt) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kSlidingWindow}) {
    StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
    const Limit limit = LimitOf("10/h", {.algorithm = algorithm});
    const Limit deny = LimitOf("deny");
    constexpr int kDenied = 200;
    const auto key = [](int i) { return "denied " + std::to_string(i); };
    for (int i = 0; i < kDenied; ++i) {
      under_test.Check(key(i), limit, 9);
      EXPECT_FALSE(under_test.Check(key(i), limit, 2).allowed);
      EXPECT_EQ(under_test.Remaining(key(i), limit), 1);
      EXPECT_TRUE(under_test.Check(key(i), limit, 0).allowed);
      under_test.Ask({under_test.ChargeFor(key(i), limit), under_test.ChargeFor("", deny)});
    }
    for (int i = 0; i < 200'000; ++i) under_test.Check("flood " + std::to_string(i), limit, 10);
    ASSERT_GT(under_test.store.Stats().evicted_live, 0U);
    for (int i = 0; i < kDenied; ++i) ASSERT_EQ(under_test.Remaining(key(i), limit), 1) << i;
  }
}

// All that may be asked about a key without leaving anything behind, in every way.
void LeaveNothing(StoreUnderTest& under_test, const std::string& key,
                  const AlgorithmCase& algorithm) {
  const Limit& limit = algorithm.limit;
  const Limit bucket = LimitOf("10/10s");
  const std::int64_t too_much = algorithm.at_once + 1;
  struct Asked {
    Verb verb;
    std::int64_t cost;
  };
  for (const Asked& asked :
       {Asked{Verb::kCheck, too_much}, Asked{Verb::kCheck, 0}, Asked{Verb::kPeek, 1},
        Asked{Verb::kRefund, 3}, Asked{Verb::kPenalize, 0}, Asked{Verb::kReset, 1}}) {
    const Charge charge = under_test.ChargeFor(key, limit, asked.cost, asked.verb);
    const Charge other = under_test.ChargeFor(key, bucket, 0, asked.verb);
    EXPECT_EQ(under_test.Do(asked.verb, key, limit, asked.cost).remaining, 10);
    EXPECT_EQ(under_test.Ask({charge}).remaining, 10);
    EXPECT_EQ(under_test.Ask({charge, other}).remaining, 10);
  }
  // Together too much, though each by itself would do.
  EXPECT_EQ(under_test
                .Ask({under_test.ChargeFor(key, limit, 6), under_test.ChargeFor(key, limit, 6),
                      under_test.ChargeFor(key, bucket)})
                .reason,
            Reason::kNeverFits);
  EXPECT_EQ(under_test
                .Ask({under_test.ChargeFor(key, bucket, 6), under_test.ChargeFor(key, bucket, 6),
                      under_test.ChargeFor(key, limit)})
                .reason,
            Reason::kNeverFits);
  const std::vector<Charge> nothing{under_test.ChargeFor(key, limit, 0)};
  EXPECT_TRUE(under_test.Commit(under_test.Ask(nothing, Action::kReserve).reservation,
                                algorithm.is_concurrency() ? 5 : 0));
  EXPECT_TRUE(under_test.Cancel(under_test.Ask(nothing, Action::kReserve).reservation));
}

TEST(MemoryCap, MakesNobodyGiveWayToThoseWhoLeaveNothing) {
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    SCOPED_TRACE(algorithm.name);
    StoreUnderTest empty;
    LeaveNothing(empty, "ann", algorithm);
    EXPECT_EQ(empty.store.Stats().entries, 0U);

    StoreUnderTest full({.cap_bytes = kMinCapBytes, .hash_seed = 7});
    const Limit bucket = LimitOf("10/10s");
    for (int i = 0; i < 60'000; ++i) {
      full.Check("key " + std::to_string(i), algorithm.limit);
      full.Check("key " + std::to_string(i), bucket);
    }
    const MemoryStoreStats before = full.store.Stats();
    ASSERT_GT(before.evicted_live, 0U);
    for (int i = 0; i < 300; ++i) LeaveNothing(full, "new " + std::to_string(i), algorithm);
    const MemoryStoreStats after = full.store.Stats();
    EXPECT_EQ(after.entries, before.entries);
    EXPECT_EQ(after.evicted_live, before.evicted_live);
    EXPECT_EQ(after.evicted_denied, before.evicted_denied);
    EXPECT_EQ(after.event_chunks, before.event_chunks);
  }
}

TEST(MemoryCap, DoesNotCountKeysWhoseTimeHasPassed) {
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
  const Limit limit = LimitOf("10/s");
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5'000; ++i) {
      under_test.Check(std::to_string(round) + " " + std::to_string(i), limit);
    }
    under_test.clock.Advance(seconds(2));
  }
  EXPECT_EQ(under_test.store.Stats().evicted_live, 0U);
}

TEST(MemoryCap, IsTakenAtTheStartForAsManyKeysAsAreExpected) {
  StoreUnderTest under_test({.expected_keys = 100'000});
  const Limit limit = LimitOf("10/min");
  for (int i = 0; i < 100'000; ++i) under_test.Check("key " + std::to_string(i), limit);
  EXPECT_EQ(under_test.store.Stats().growths, 0U);
  EXPECT_LE(StoreUnderTest({.cap_bytes = kMinCapBytes, .expected_keys = ~std::size_t{0}})
                .store.Stats()
                .bytes,
            kMinCapBytes);
}

// Its own locks are in the way then, and nobody else would ever let go of them.
TEST(MemoryCap, DecidesTheLargestGroupOfTheWidestKeysThoughThereIsHardlyRoomForThem) {
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes, .hash_seed = 7});
  const Limit bucket = LimitOf("10/day");
  for (int i = 0; i < 200'000; ++i) under_test.Check("key " + std::to_string(i), bucket);
  const Limit strict = LimitOf(
      "10/day", {.algorithm = Algorithm::kSlidingWindow, .strict = true, .sub_windows = 60});
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < kMaxGroupCharges; ++i) {
      keys.push_back(std::to_string(round) + " " + std::to_string(i));
    }
    std::vector<Charge> charges;
    for (const std::string& key : keys) charges.push_back(under_test.ChargeFor(key, strict));
    EXPECT_TRUE(under_test.Ask(charges).allowed);
  }
}

// Logs of which two fill the memory that there is for events.
class EventMemory : public testing::Test {
 protected:
  // Adds events, one chunk for every seven, until `key` has so many or memory is short.
  void Fill(std::string_view key, std::int64_t events) {
    for (std::int64_t i = 0; i < events; ++i) {
      under_test_.clock.Advance(microseconds(1));
      ASSERT_TRUE(under_test_.Check(key, limit_).allowed) << key << " " << i;
      if (under_test_.store.Stats().evicted_live > 0) return;
    }
  }
  std::int64_t Used(std::string_view key) {
    return limit_.capacity() - under_test_.Remaining(key, limit_);
  }
  std::size_t Chunks() const { return under_test_.store.Stats().event_chunks; }
  std::uint64_t Evicted() const {
    const MemoryStoreStats stats = under_test_.store.Stats();
    return stats.evicted_live + stats.evicted_denied;
  }

  StoreUnderTest under_test_{{.cap_bytes = kMinCapBytes, .hash_seed = 7}};
  const Limit limit_ = LimitOf("60k/h", {.algorithm = Algorithm::kSlidingLog});
};

TEST_F(EventMemory, IsGivenUpByTheLogThatIsFreshSoonest) {
  Fill("first", 40'000);
  Fill("second", 40'000);
  ASSERT_EQ(Evicted(), 0U);
  Fill("third", 60'000);
  EXPECT_EQ(Evicted(), 1U);
  EXPECT_EQ(Used("first"), 0);
  EXPECT_EQ(Used("second"), 40'000);
  EXPECT_GT(Used("third"), 1'000);
}

TEST_F(EventMemory, IsGivenUpLastByLogsThatAreBeingDenied) {
  Fill("first", 40'000);
  EXPECT_FALSE(under_test_.Check("first", limit_, 59'999).allowed);
  Fill("second", 40'000);
  Fill("third", 60'000);
  EXPECT_EQ(Used("first"), 40'000);
  EXPECT_EQ(Used("second"), 0);
}

TEST_F(EventMemory, IsGivenUpEvenByLogsThatAreBeingDeniedWhenThereAreNoOthers) {
  Fill("first", 40'000);
  Fill("second", 40'000);
  EXPECT_FALSE(under_test_.Check("first", limit_, 59'999).allowed);
  EXPECT_FALSE(under_test_.Check("second", limit_, 59'999).allowed);
  while (Evicted() == 0) {
    under_test_.clock.Advance(microseconds(1));
    ASSERT_TRUE(under_test_.Check("third", limit_).allowed);
  }
  EXPECT_EQ(under_test_.store.Stats().evicted_denied, 1U);
  EXPECT_EQ(Used("first"), 0);
  EXPECT_EQ(Used("second"), 40'000);
}

TEST_F(EventMemory, OfLogsWhoseTimeHasPassedIsUsedBeforeAnyoneElses) {
  Fill("past", 40'000);
  under_test_.clock.Advance(hours(1));
  Fill("live", 30'000);
  Fill("new", 45'000);
  EXPECT_EQ(Evicted(), 0U);
  EXPECT_EQ(Used("live"), 30'000);
  EXPECT_EQ(Used("new"), 45'000);
}

// Entries move only as keys come, so a table may be left half moved for long.
TEST_F(EventMemory, OfLogsWhoseTimeHasPassedIsUsedAlsoWhileTheirTableGrows) {
  int keys = 0;
  const auto growths = [&] { return under_test_.store.Stats().growths; };
  while (growths() == 0) Fill("key " + std::to_string(keys++), 300);
  ASSERT_EQ(Evicted(), 0U);
  under_test_.clock.Advance(hours(1));
  Fill("key 0", 59'000);
  EXPECT_EQ(Evicted(), 0U);
  EXPECT_EQ(Used("key 0"), 59'000);
}

// A group holds its keys, so neither can give anything up to the other.
TEST_F(EventMemory, ThatNobodyCanGiveUpIsAnOverloadAndLeavesNoTrace) {
  Fill("first", 42'000);
  const auto ask = [&] {
    return under_test_.Ask(
        {under_test_.ChargeFor("second", limit_), under_test_.ChargeFor("first", limit_, 0)});
  };
  Decision decision;
  do {
    under_test_.clock.Advance(microseconds(1));
    decision = ask();
  } while (decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kOverload);
  EXPECT_GT(decision.retry_after, Duration(0));
  EXPECT_EQ(Evicted(), 0U);
  EXPECT_EQ(Used("first"), 42'000);
  const std::int64_t used = Used("second");
  const std::size_t chunks = Chunks();
  // Of those that would have passed it says how they are, as if they had not been asked.
  const Limit bucket = LimitOf("10/min");
  const std::vector<Charge> charges{under_test_.ChargeFor("second", limit_),
                                    under_test_.ChargeFor("first", limit_, 0),
                                    under_test_.ChargeFor("third", bucket, 4)};
  std::vector<Decision> decisions(3);
  EXPECT_EQ(under_test_.DecideGroup(charges, decisions).decision.reason, Reason::kOverload);
  EXPECT_TRUE(decisions[2].allowed);
  EXPECT_EQ(decisions[2].remaining, 10);
  EXPECT_EQ(decisions[2].reset_after, Duration(0));
  EXPECT_EQ(ask().reason, Reason::kOverload);
  EXPECT_EQ(Used("second"), used);
  EXPECT_EQ(Chunks(), chunks);
  // By itself the first gives way.
  EXPECT_TRUE(under_test_.Check("second", limit_).allowed);
  EXPECT_EQ(Used("first"), 0);
}

TEST_F(EventMemory, ThatIsShortKeepsNobodyFromMakingFreshOrGivingBack) {
  Fill("first", 59'000);
  Fill("second", 59'000);
  ASSERT_EQ(Evicted(), 1U);
  EXPECT_EQ(under_test_.Do(Verb::kRefund, "second", limit_, kMaxCount).remaining, 60'000);
  EXPECT_EQ(under_test_.Do(Verb::kReset, "first", limit_).remaining, 60'000);
  EXPECT_EQ(Chunks(), 0U);
}

TEST_F(EventMemory, ReturnsAsAWholeHoweverItWasUsed) {
  std::mt19937_64 random(42);
  const auto pick = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
  const Limit log = LimitOf("5k/min", {.algorithm = Algorithm::kSlidingLog});
  const Limit places = LimitOf("500 concurrent lease 1min");
  std::vector<ReservationId> leases;
  constexpr int kKeys = 400;
  for (int i = 0; i < 300'000; ++i) {
    const std::string key = "key " + std::to_string(pick(kKeys - 1));
    if (pick(3) == 0) under_test_.clock.Advance(microseconds(pick(500)));
    switch (pick(9)) {
      case 0:
        under_test_.Do(Verb::kRefund, key, log, pick(20));
        break;
      case 1:
        under_test_.Do(pick(20) == 0 ? Verb::kReset : Verb::kPeek, key, log);
        break;
      case 2:
      case 3:
        leases.push_back(under_test_.Check(key, places).reservation);
        break;
      case 4:
        if (leases.empty()) break;
        std::swap(leases[static_cast<std::size_t>(pick(static_cast<int>(leases.size()) - 1))],
                  leases.back());
        std::ignore = under_test_.Cancel(leases.back());
        leases.pop_back();
        break;
      case 5:
        under_test_.Ask({under_test_.ChargeFor(key, log, pick(3)),
                         under_test_.ChargeFor(key, places),
                         under_test_.ChargeFor("key " + std::to_string(pick(kKeys)), log)});
        break;
      default:
        under_test_.Check(key, log, 1 + pick(2));
        break;
    }
  }
  ASSERT_GT(Evicted(), 0U);
  for (int i = 0; i <= kKeys; ++i) {
    const std::string key = "key " + std::to_string(i);
    under_test_.Do(Verb::kReset, key, log);
    under_test_.Do(Verb::kReset, key, places);
  }
  EXPECT_EQ(Chunks(), 0U);
}

}  // namespace
}  // namespace weir
