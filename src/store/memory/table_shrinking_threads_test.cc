// threads
// A table that is made smaller, and larger again, while other threads use it.
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/table_under_test.h"

namespace weir {
namespace {

constexpr std::size_t kCharged = 3'000;
using Counts = std::array<std::atomic<std::int64_t>, kCharged>;

// Every charge of every thread is there in the end, whatever moved in between.
template <typename Charge>
std::unique_ptr<Counts> ChargeWhileTheSizeChanges(auto& table, Charge&& charge) {
  auto counts = std::make_unique<Counts>();
  Counts& charged = *counts;
  std::atomic<bool> done{false};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(i + 1);
      while (!done) {
        const std::size_t n = random() % kCharged;
        charge(n);
        ++charged[n];
      }
    });
  }
  constexpr std::size_t kRoom = 3'600;
  for (int round = 0; round < 150; ++round) {
    table.ShrinkTo({.bytes = table.BytesFor(kRoom), .live = table.CountLive(kTableNow)}, kTableNow);
    table.UseMore(kTableNow);
    std::this_thread::yield();
  }
  done = true;
  threads.clear();
  return counts;
}

TEST(ShrinkingTableAmongThreads, LosesNoChargeOfOtherThreads) {
  Buckets buckets;
  buckets.table.Expect(20'000);
  const auto charge = [&](std::size_t n) {
    buckets.table.Update(TableKey(n), kTableNow, [](std::uint64_t word) {
      return MakeWord(std::max(FreshAt(word), kTableNow) + Ticks(1));
    });
  };
  const auto charged = ChargeWhileTheSizeChanges(buckets.table, charge);
  EXPECT_EQ(buckets.evicted(), 0U);
  for (std::size_t n = 0; n < kCharged; ++n) {
    const std::uint64_t word = buckets.Word(n);
    ASSERT_EQ(word == 0 ? 0 : (FreshAt(word) - kTableNow).count(), (*charged)[n]) << n;
  }
}

TEST(ShrinkingTableAmongThreads, LosesNoChargeOfOtherThreadsThatLock) {
  Wide wide;
  wide.table.Expect(20'000);
  const auto charge = [&](std::size_t n) {
    const auto locked = wide.table.Lock(TableKey(n), kTableNow, CallerHolds::kNothing);
    ++locked.slot->payload[0];
    // Held together with another, as a group would.
    if (n % 7 == 0 && n + 1 < kCharged && TableKey(n) < TableKey(n + 1)) {
      const auto other = wide.table.Lock(TableKey(n + 1), kTableNow, CallerHolds::kSlots);
      wide.table.Unlock(other, MakeWord(kTableNow + Ticks(5)));
    }
    wide.table.Unlock(locked, MakeWord(kTableNow + Ticks(5)));
  };
  const auto charged = ChargeWhileTheSizeChanges(wide.table, charge);
  EXPECT_EQ(wide.released, 0U);
  for (std::size_t n = 0; n < kCharged; ++n) {
    const auto locked = wide.table.LockIfPresent(TableKey(n));
    const std::uint64_t count = locked ? locked->slot->payload[0] : 0;
    ASSERT_EQ(static_cast<std::int64_t>(count), (*charged)[n]) << n;
    if (locked) wide.table.Unlock(*locked, locked->word);
  }
}

}  // namespace
}  // namespace weir
