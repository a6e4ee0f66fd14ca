// threads
// A table that grows while a thread holds one of its slots.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "store/memory/table_under_test.h"

namespace weir {
namespace {

// Growth cannot move a line of which a slot is held. The thread that holds the slot may be
// preempted for longer than other threads need to fill the larger array, too.
TEST(GrowingTableAmongThreads, EvictsNothingWhileAnotherThreadHoldsASlotOfTheNextLine) {
  constexpr std::uint64_t kKeys = 4000;
  Wide wide;
  const auto held = wide.table.Lock(TableKey(0), kTableNow, CallerHolds::kNothing);
  std::atomic<std::uint64_t> inserted{1};
  std::jthread inserter([&] {
    for (std::uint64_t n = 1; n < kKeys; ++n) {
      const auto locked = wide.table.Lock(TableKey(n), kTableNow, CallerHolds::kNothing);
      wide.table.Unlock(locked, MakeWord(Later(n)));
      ++inserted;
    }
  });
  // Keys that the table has room for without growth. Then until the inserting thread makes no more
  // progress, or evicts.
  while (inserted < 200) std::this_thread::yield();
  std::uint64_t seen = 0;
  while (seen != inserted && wide.released == 0) {
    seen = inserted;
    for (int i = 0; i < 5000; ++i) std::this_thread::yield();
  }
  EXPECT_LT(inserted, kKeys);
  wide.table.Unlock(held, MakeWord(Later(0)));
  inserter.join();
  EXPECT_EQ(wide.released, 0U);
  EXPECT_EQ(wide.table.CountLive(kTableNow), kKeys);
}

}  // namespace
}  // namespace weir
