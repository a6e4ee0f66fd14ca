// A table that is made smaller, and larger again, while it is used.
#include <random>

#include <gtest/gtest.h>

#include "store/memory/table_under_test.h"

namespace weir {
namespace {

TEST(ShrinkingTable, KeepsEveryEntryWhereThereIsRoom) {
  constexpr std::uint64_t kKeys = 50'000;
  Buckets buckets;
  buckets.table.Expect(10 * kKeys);
  for (std::uint64_t n = 0; n < kKeys; ++n) buckets.Put(n, Later(n), n % 2 == 0 ? kDeniedBit : 0);
  ASSERT_EQ(buckets.table.CountLive(kTableNow), kKeys);
  const std::size_t before = buckets.budget.used();
  buckets.ShrinkToHold(kKeys);
  EXPECT_LE(buckets.budget.used(), Table<0>::BytesFor(kKeys));
  EXPECT_LT(buckets.budget.used(), before / 5);
  EXPECT_EQ(buckets.budget.used(), buckets.table.bytes());
  EXPECT_EQ(buckets.table.entries(), kKeys);
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    ASSERT_EQ(buckets.Word(n), MakeWord(Later(n)) | (n % 2 == 0 ? kDeniedBit : 0)) << n;
  }
  EXPECT_EQ(buckets.evicted(), 0U);
}

// Fuller than a table ever grows to be by itself.
TEST(ShrinkingTable, KeepsEveryEntryUntilNearlyAllPlacesAreTaken) {
  constexpr std::uint64_t kKeys = 50'000;
  Buckets buckets;
  buckets.table.Expect(4 * kKeys);
  for (std::uint64_t n = 0; n < kKeys; ++n) buckets.Put(n, Later(n));
  buckets.ShrinkToHold(kKeys * 18 / 25 * 10 / 9);  // Nine places of ten.
  EXPECT_LE(buckets.budget.used() / 16, kKeys * 115 / 100);
  EXPECT_EQ(buckets.CountKept(0, kKeys), kKeys);
  EXPECT_EQ(buckets.evicted(), 0U);
}

TEST(ShrinkingTable, LeavesOutThoseWhoseTimeHasPassed) {
  constexpr std::uint64_t kKeys = 20'000;
  Buckets buckets;
  for (std::uint64_t n = 0; n < kKeys; ++n) buckets.Put(n, Later(n));
  const Ticks past = kTableNow + ToTicks(std::chrono::seconds(1));
  for (std::uint64_t n = kKeys; n < kKeys + 500; ++n) buckets.Put(n, past + Ticks(1));
  EXPECT_EQ(buckets.table.CountLive(past), 500U);
  buckets.table.ShrinkTo({.bytes = Table<0>::BytesFor(500), .live = 500}, past);
  EXPECT_EQ(buckets.table.entries(), 500U);
  EXPECT_EQ(buckets.evicted(), 0U);
  EXPECT_EQ(buckets.CountKept(kKeys, kKeys + 500), 500U);
}

TEST(ShrinkingTable, GivesUpThoseBeingDeniedLast) {
  constexpr std::uint64_t kKeys = 50'000;
  Buckets buckets;
  // Denied ones are fresh sooner, so that nothing else speaks for them.
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    const bool denied = n < kKeys / 10;
    buckets.Put(n, denied ? Later(0) : Later(n), denied ? kDeniedBit : 0);
  }
  buckets.ShrinkToHold(kKeys * 18 / 25 / 2);  // A place for every other one.
  EXPECT_EQ(buckets.CountKept(0, kKeys / 10), kKeys / 10);
  EXPECT_EQ(buckets.table.counters().evicted_denied.Value(), 0U);
  const std::uint64_t kept = buckets.CountKept(0, kKeys);
  EXPECT_GT(kept, kKeys * 45 / 100);
  EXPECT_LT(kept, kKeys * 52 / 100);
  EXPECT_EQ(buckets.table.counters().evicted_live.Value(), kKeys - kept);
  EXPECT_EQ(buckets.table.entries(), kept);
}

// As many as nearly fill it. Others take nobody's place for having to move.
TEST(ShrinkingTable, GivesUpThoseWhoArriveBeforeThoseBeingDenied) {
  constexpr std::uint64_t kKeys = 50'000;
  Buckets buckets;
  const auto denied = [](std::uint64_t n) { return n % 5 == 0; };
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    buckets.Put(n, Later(n), denied(n) ? kDeniedBit : 0);
  }
  buckets.ShrinkToHold(kKeys * 18 / 25 / 4);  // A place for every fourth one.
  EXPECT_LT(buckets.table.counters().evicted_denied.Value(), kKeys / 5 * 7 / 100);
}

// Whether they come first, and would have to make way, or last, and would find no place.
TEST(ShrinkingTable, GivesUpThoseWhoAreFreshSoonestFirst) {
  constexpr std::uint64_t kKeys = 50'000;
  Buckets buckets;
  const auto lasts = [](std::uint64_t n) { return n % 3 == 0; };
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    buckets.Put(n, lasts(n) ? kTableNow + ToTicks(std::chrono::hours(1)) : Later(n));
  }
  buckets.ShrinkToHold(kKeys * 18 / 25 / 2);
  std::uint64_t lost = 0;
  for (std::uint64_t n = 0; n < kKeys; n += 3) lost += buckets.Word(n) == 0 ? 1U : 0U;
  EXPECT_LT(lost, kKeys / 3 * 3 / 100);
  EXPECT_GT(buckets.evicted(), kKeys * 4 / 10);
}

TEST(ShrinkingTable, GrowsAgainWhenItMay) {
  constexpr std::uint64_t kKeys = 30'000;
  Buckets buckets;
  for (std::uint64_t n = 0; n < kKeys; ++n) buckets.Put(n, Later(n));
  buckets.ShrinkToHold(kKeys * 4 / 5);
  ASSERT_EQ(buckets.evicted(), 0U);
  const std::size_t small = buckets.table.bytes();
  for (std::uint64_t n = kKeys; n < 3 * kKeys; ++n) buckets.Put(n, Later(n));
  EXPECT_EQ(buckets.evicted(), 0U);
  EXPECT_EQ(buckets.CountKept(0, 3 * kKeys), 3 * kKeys);
  EXPECT_GT(buckets.table.bytes(), 2 * small);
  EXPECT_EQ(buckets.table.bytes(), buckets.budget.used());
}

TEST(ShrinkingTable, IsDoneWithItsGrowthFirst) {
  Buckets buckets;
  std::uint64_t n = 0;
  for (; n < 20'000; ++n) buckets.Put(n, Later(n));
  const std::uint64_t growths = buckets.table.counters().growths.Value();
  for (; buckets.table.counters().growths.Value() == growths; ++n) buckets.Put(n, Later(n));
  buckets.ShrinkToHold(n);
  EXPECT_EQ(buckets.CountKept(0, n), n);
  EXPECT_EQ(buckets.evicted(), 0U);
  EXPECT_EQ(buckets.table.bytes(), buckets.budget.used());
}

TEST(ShrinkingTable, DoesNothingWhereThereIsNothingToGain) {
  Buckets buckets;
  for (std::uint64_t n = 0; n < 1'000; ++n) buckets.Put(n, Later(n));
  buckets.table.ShrinkTo({.bytes = kTableCap, .live = 1'000}, kTableNow);
  const std::size_t bytes = buckets.table.bytes();
  buckets.table.ShrinkTo({.bytes = bytes, .live = 1'000}, kTableNow);
  EXPECT_EQ(buckets.table.bytes(), bytes);
  EXPECT_EQ(buckets.CountKept(0, 1'000), 1'000U);
}

// And then goes on as it is rather than be unable to grow.
TEST(ShrinkingTable, CanBeMovedThousandsOfTimes) {
  constexpr std::uint64_t kKeys = 200;
  Buckets buckets;
  for (std::uint64_t n = 0; n < kKeys; ++n) buckets.Put(n, Later(n));
  const std::size_t small = Table<0>::BytesFor(kKeys * 18 / 25);
  int shrunk = 0;
  for (;; ++shrunk) {
    buckets.table.ShrinkTo({.bytes = small, .live = kKeys}, kTableNow);
    if (buckets.table.bytes() > small) break;
    buckets.table.UseMore(kTableNow);
    ASSERT_LT(shrunk, 10'000);
  }
  EXPECT_GT(shrunk, 1'000);
  EXPECT_EQ(buckets.CountKept(0, kKeys), kKeys);
  for (std::uint64_t n = kKeys; n < 100'000; ++n) buckets.Put(n, Later(n));
  EXPECT_EQ(buckets.CountKept(0, 100'000), 100'000U);
  EXPECT_EQ(buckets.evicted(), 0U);
}

// Sizes that come in no order, so that addresses are used again by arrays of other sizes.
TEST(ShrinkingTable, LosesNothingHoweverItsSizeChanges) {
  constexpr std::uint64_t kKeys = 3'000;
  const Ticks later = kTableNow + ToTicks(std::chrono::seconds(1));
  const auto lasts = [](std::uint64_t n) { return Later(n) + ToTicks(std::chrono::hours(1)); };
  Buckets buckets;
  std::mt19937_64 random(42);
  for (std::uint64_t n = 0; n < kKeys; ++n) buckets.Put(n, lasts(n));
  for (int round = 0; round < 200; ++round) {
    // Grows by as much as newcomers take, whose time is over soon.
    const auto newcomers = std::uniform_int_distribution<std::uint64_t>(0, 9'000)(random);
    for (std::uint64_t n = kKeys; n < kKeys + newcomers; ++n) buckets.Put(n, Later(0));
    const std::size_t room = std::uniform_int_distribution<std::size_t>(kKeys, 3 * kKeys)(random);
    const std::size_t bytes = Table<0>::BytesFor(room);
    const bool shrinks = bytes < buckets.table.bytes();
    buckets.table.ShrinkTo({.bytes = bytes, .live = kKeys}, later);
    ASSERT_EQ(buckets.table.bytes(), buckets.budget.used());
    if (shrinks) {
      ASSERT_EQ(buckets.table.bytes(), bytes);
      ASSERT_EQ(buckets.table.CountLive(later), kKeys);
    }
    for (std::uint64_t n = 0; n < kKeys; ++n) {
      ASSERT_EQ(buckets.Word(n), MakeWord(lasts(n))) << n << " in round " << round;
    }
  }
  EXPECT_EQ(buckets.evicted(), 0U);
}

TEST(ShrinkingTable, MovesPayloadsWithTheirKeysAndReleasesThoseItGivesUp) {
  constexpr std::uint64_t kKeys = 20'000;
  Wide wide;
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    const auto locked = wide.table.Lock(TableKey(n), kTableNow, CallerHolds::kNothing);
    ASSERT_TRUE(locked.absent);
    locked.slot->payload[0] = n + 1;
    locked.slot->payload[1] = ~n;
    wide.table.Unlock(locked, MakeWord(Later(n)));
  }
  wide.table.ShrinkTo({.bytes = Table<2>::BytesFor(kKeys * 18 / 25 / 2), .live = kKeys}, kTableNow);
  std::uint64_t kept = 0;
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    const auto locked = wide.table.LockIfPresent(TableKey(n));
    if (!locked) continue;
    ++kept;
    ASSERT_EQ(locked->slot->payload[0], n + 1);
    ASSERT_EQ(locked->slot->payload[1], ~n);
    ASSERT_EQ(locked->word, MakeWord(Later(n)));
    wide.table.Unlock(*locked, locked->word);
  }
  EXPECT_GT(kept, kKeys * 4 / 10);
  EXPECT_EQ(wide.released, kKeys - kept);
  EXPECT_EQ(wide.table.counters().evicted_live.Value(), kKeys - kept);
}

TEST(ShrinkingTable, HandsOutBlankPayloadsFromAddressesItHadBefore) {
  Wide wide;
  constexpr std::uint64_t kKeys = 400;
  Ticks now = kTableNow;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const std::size_t small = wide.table.bytes();
    for (std::uint64_t n = 0; n < kKeys; ++n) {
      const auto locked = wide.table.Lock(TableKey(round * kKeys + n), now, CallerHolds::kNothing);
      ASSERT_TRUE(locked.absent);
      ASSERT_EQ(locked.slot->payload[0], 0U);
      ASSERT_EQ(locked.slot->payload[1], 0U);
      locked.slot->payload[0] = locked.slot->payload[1] = ~std::uint64_t{0};
      wide.table.Unlock(locked, MakeWord(now + ToTicks(std::chrono::seconds(1))));
    }
    EXPECT_GT(wide.table.bytes(), small);
    now += ToTicks(std::chrono::minutes(1));
    wide.table.ShrinkTo({.bytes = 0, .live = 0}, now);
    EXPECT_EQ(wide.table.entries(), 0U);
  }
}

}  // namespace
}  // namespace weir
