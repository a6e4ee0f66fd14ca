// threads
#include "store/memory/event_pool.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::size_t kPoolCap = std::size_t{2} << 20;

// One key's payload, opened anew for every change, as a store does.
struct ReopenedKey {
  std::uint64_t payload[2] = {0, 0};

  std::vector<Event> Events(EventPool& pool) {
    std::vector<Event> events;
    ChunkedLog log(pool, payload);
    for (Event* event = log.First(); event != nullptr; event = log.Next(event)) {
      events.push_back(*event);
    }
    return events;
  }
  bool Append(EventPool& pool, std::int64_t at, std::int64_t cost = 1) {
    ChunkedLog log(pool, payload);
    if (!log.MakeRoom()) return false;
    log.Append({.at = Ticks(at), .cost = cost});
    log.Save();
    return true;
  }
};

TEST(EventPool, NeverHandsOutAChunkTwice) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  std::set<std::uint32_t> chunks;
  for (int i = 0; i < 1'000; ++i) {
    const std::uint32_t chunk = pool.Take();
    ASSERT_NE(chunk, 0U);
    EXPECT_TRUE(chunks.insert(chunk).second);
  }
  EXPECT_EQ(pool.chunks_in_use(), 1'000U);
}

TEST(EventPool, StaysWithinTheBudgetAndSaysWhenItIsUsedUp) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  std::size_t taken = 0;
  while (pool.Take() != 0) ++taken;
  EXPECT_EQ(taken, kPoolCap / sizeof(EventChunk));
  EXPECT_LE(budget.used(), budget.cap());
  EXPECT_EQ(pool.Take(), 0U);
  EXPECT_EQ(pool.chunks_in_use(), taken);
}

TEST(EventPool, LeavesOthersWhatItWasToldToSpare) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, kPoolCap / 2);
  while (pool.Take() != 0) {
  }
  EXPECT_GE(budget.left(), kPoolCap / 2);
}

TEST(EventPool, HandsOutAgainWhatWasGivenBack) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> chunks;
  for (std::uint32_t chunk = pool.Take(); chunk != 0; chunk = pool.Take()) chunks.push_back(chunk);
  for (const std::uint32_t chunk : chunks) pool.GiveBack(chunk);
  EXPECT_EQ(pool.chunks_in_use(), 0U);
  for (std::size_t i = 0; i < chunks.size(); ++i) EXPECT_NE(pool.Take(), 0U);
  EXPECT_EQ(pool.Take(), 0U);
}

TEST(EventPool, HasNothingWithoutABudget) {
  ByteBudget budget(0);
  EventPool pool(budget, 0);
  EXPECT_EQ(pool.Take(), 0U);
}

TEST(EventPool, TakesAWholeLogBackAtOnce) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  for (const int length : {1, 7, 8, 14, 15, 100}) {
    ReopenedKey key;
    for (int i = 0; i < length; ++i) ASSERT_TRUE(key.Append(pool, i));
    EXPECT_EQ(pool.chunks_in_use(), static_cast<std::size_t>((length + 6) / 7));
    pool.GiveBackLog(key.payload);
    EXPECT_EQ(pool.chunks_in_use(), 0U);
    EXPECT_TRUE(key.Events(pool).empty());
    pool.GiveBackLog(key.payload);  // Of an empty log there is nothing to take.
    EXPECT_EQ(pool.chunks_in_use(), 0U);
  }
}

TEST(EventPool, ServesManyThreadsWithoutLosingAChunk) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&pool, i] {
        for (int n = 0; n < 300; ++n) {
          ReopenedKey key;
          for (int event = 0; event < 20; ++event) {
            ASSERT_TRUE(key.Append(pool, event, i * 1'000 + 1));
          }
          for (const Event& event : key.Events(pool)) EXPECT_EQ(event.cost, i * 1'000 + 1);
          pool.GiveBackLog(key.payload);
        }
      });
    }
  }
  EXPECT_EQ(pool.chunks_in_use(), 0U);
}

TEST(ChunkedLog, OfABlankPayloadIsEmpty) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  ReopenedKey key;
  ChunkedLog log(pool, key.payload);
  EXPECT_EQ(log.First(), nullptr);
  EXPECT_EQ(log.Last(), nullptr);
  EXPECT_EQ(log.size(), 0);
  EXPECT_EQ(log.total(), 0);
}

TEST(ChunkedLog, GivesBackTheRoomItMadeButDidNotUse) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  ReopenedKey key;
  {
    ChunkedLog log(pool, key.payload);
    ASSERT_TRUE(log.MakeRoom());
    ASSERT_TRUE(log.MakeRoom());
    EXPECT_EQ(pool.chunks_in_use(), 1U);
  }
  EXPECT_EQ(pool.chunks_in_use(), 0U);
}

TEST(ChunkedLog, SaysWhenThereIsNoMemoryAndStaysAsItWas) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  ReopenedKey key;
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(key.Append(pool, i));
  while (pool.Take() != 0) {
  }
  EXPECT_FALSE(key.Append(pool, 7));
  EXPECT_EQ(key.Events(pool).size(), 7U);
}

TEST(ChunkedLog, KeepsItsTotalAtTheLargestLimitTwiceOver) {
  ByteBudget budget(kPoolCap);
  EventPool pool(budget, 0);
  ReopenedKey key;
  ASSERT_TRUE(key.Append(pool, 1, 2 * 65'536));
  ChunkedLog log(pool, key.payload);
  EXPECT_EQ(log.total(), 2 * 65'536);
}

TEST(ChunkedLog, HoldsAsManyEventsAsTheLargestLimit) {
  constexpr std::int64_t kMost = 65'536;
  ByteBudget budget(kMost / 7 * 130 + kPoolCap);
  EventPool pool(budget, 0);
  ReopenedKey key;
  for (std::int64_t i = 0; i < kMost; ++i) ASSERT_TRUE(key.Append(pool, i));
  {
    ChunkedLog log(pool, key.payload);
    EXPECT_EQ(log.size(), kMost);
    EXPECT_EQ(log.total(), kMost);
    log.Clear();
    log.Save();
  }
  EXPECT_EQ(pool.chunks_in_use(), 0U);
}

// The same changes to a log and to a map from dates to costs; the log is read from its payload
// each time. Holes are the log's own business.
class ChunkedLogModel : public testing::TestWithParam<unsigned> {
 protected:
  void AddOne() {
    const std::int64_t cost = Random(1, 3);
    ASSERT_TRUE(key_.Append(pool_, ++last_, cost));
    model_[last_] = cost;
  }

  void DropOldest() {
    if (model_.empty()) return;
    ChunkedLog log(pool_, key_.payload);
    while (log.First()->cost == 0) log.DropFirst();
    log.DropFirst();
    log.Save();
    model_.erase(model_.begin());
  }

  void ChangeOne() {
    if (model_.empty()) return;
    const auto chosen = std::next(model_.begin(), Random(0, std::ssize(model_) - 1));
    ChunkedLog log(pool_, key_.payload);
    Event* event = log.First();
    while (event->at != Ticks(chosen->first)) event = log.Next(event);
    const std::int64_t by = Random(-3, 1);
    log.Change(*event, by);
    log.Tidy();
    log.Save();
    chosen->second += by;
    if (chosen->second <= 0) model_.erase(chosen);
  }

  void Clear() {
    ChunkedLog log(pool_, key_.payload);
    log.Clear();
    log.Save();
    model_.clear();
  }

  void Compare() {
    std::map<std::int64_t, std::int64_t> counting;
    std::int64_t total = 0;
    for (const Event& event : key_.Events(pool_)) {
      if (event.cost != 0) counting[event.at.count()] = event.cost;
      total += event.cost;
    }
    ASSERT_EQ(counting, model_);
    ChunkedLog log(pool_, key_.payload);
    ASSERT_EQ(log.total(), total);
    ASSERT_EQ(log.size(), std::ssize(key_.Events(pool_)));
    const std::int64_t holes = log.size() - std::ssize(model_);
    EXPECT_LE(holes, std::max<std::int64_t>(8, log.size() / 2));
    EXPECT_LE(pool_.chunks_in_use(), static_cast<std::size_t>(log.size() / 7 + 2));
  }

  std::int64_t Random(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  std::mt19937_64 random_{GetParam()};
  ByteBudget budget_{kPoolCap};
  EventPool pool_{budget_, 0};
  ReopenedKey key_;
  std::map<std::int64_t, std::int64_t> model_;
  std::int64_t last_ = 0;
};

TEST_P(ChunkedLogModel, CountsAsAMapDoesAndLeaksNoChunk) {
  for (int i = 0; i < 2'000; ++i) {
    const std::int64_t choice = Random(0, 199);
    if (choice < 90) {
      AddOne();
    } else if (choice < 120) {
      DropOldest();
    } else if (choice < 199) {
      ChangeOne();
    } else {
      Clear();
    }
    Compare();
    if (HasFatalFailure()) return;
  }
  Clear();
  EXPECT_EQ(pool_.chunks_in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChunkedLogModel, testing::Range(1U, 21U));

}  // namespace
}  // namespace weir
