// threads
// A pool of event chunks that has to get along with fewer, or may have more, while it is used.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/event_pool.h"

namespace weir {
namespace {

constexpr std::size_t kStep = EventPool::kStepBytes;
constexpr std::size_t kChunksOfStep = kStep / sizeof(EventChunk);
constexpr std::size_t kCapOfSteps = 32 * kStep;

// A log that counts its events up from `first`.
struct CountingKey {
  std::uint64_t payload[2] = {0, 0};

  bool Append(EventPool& pool, std::int64_t at) {
    ChunkedLog log(pool, payload);
    if (!log.MakeRoom()) return false;
    log.Append({.at = Ticks(at), .cost = at % 5 + 1});
    log.Save();
    return true;
  }
  void Drop(EventPool& pool, int events) {
    ChunkedLog log(pool, payload);
    for (int i = 0; i < events && log.size() > 0; ++i) log.DropFirst();
    log.Save();
  }
  std::vector<std::int64_t> Events(EventPool& pool) {
    std::vector<std::int64_t> events;
    ChunkedLog log(pool, payload);
    for (Event* event = log.First(); event != nullptr; event = log.Next(event)) {
      EXPECT_EQ(event->cost, event->at.count() % 5 + 1);
      events.push_back(event->at.count());
    }
    EXPECT_EQ(log.size(), std::ssize(events));
    return events;
  }
};

bool IsResident(const EventChunk& chunk) {
  const auto address = reinterpret_cast<std::uintptr_t>(&chunk) / 4096 * 4096;
  unsigned char resident = 0;
  EXPECT_EQ(mincore(reinterpret_cast<void*>(address), 1, &resident), 0);
  return (resident & 1) != 0;
}

TEST(EventPoolSize, GrowsWithTheCap) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> chunks;
  const auto take_all = [&] {
    for (std::uint32_t chunk = pool.Take(); chunk != 0; chunk = pool.Take()) {
      pool.At(chunk).events[6].cost = chunk;
      chunks.push_back(chunk);
    }
  };
  take_all();
  std::size_t cap = kCapOfSteps;
  // By much and by little, and once by nothing.
  for (const std::size_t more : {std::size_t{1}, std::size_t{0}, std::size_t{40}, std::size_t{700},
                                 std::size_t{3}, std::size_t{2}}) {
    cap += more * kStep;
    budget.SetCap(cap);
    pool.Extend(cap);
    take_all();
    EXPECT_EQ(chunks.size(), cap / sizeof(EventChunk));
    EXPECT_EQ(budget.used(), cap);
  }
  EXPECT_EQ(std::set(chunks.begin(), chunks.end()).size(), chunks.size());
  for (const std::uint32_t chunk : chunks) ASSERT_EQ(pool.At(chunk).events[6].cost, chunk);
}

TEST(EventPoolSize, MayBeRaisedMoreOftenThanAnybodyWill) {
  ByteBudget budget(kStep);
  EventPool pool(budget, 0);
  for (std::size_t cap = kStep; cap < 3'000 * kStep; cap += kStep) {
    budget.SetCap(cap);
    pool.Extend(cap);
    std::size_t taken = 0;
    while (budget.used() < cap || taken < kChunksOfStep) {
      ASSERT_NE(pool.Take(), 0U) << cap;
      ++taken;
    }
  }
}

TEST(EventPoolSize, IsLoweredAtOnceWhereNobodyUsesWhatIsBeyond) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> chunks;
  for (std::size_t i = 0; i < 8 * kChunksOfStep; ++i) chunks.push_back(pool.Take());
  for (const std::uint32_t chunk : chunks) pool.At(chunk).events[0].cost = 1;
  for (std::size_t i = 2 * kChunksOfStep; i < chunks.size(); ++i) pool.GiveBack(chunks[i]);
  pool.StartLowering(3 * kStep + 5);
  EXPECT_EQ(pool.excess(), 0U);
  EXPECT_TRUE(pool.FinishLowering());
  EXPECT_EQ(budget.used(), 3 * kStep);
  EXPECT_EQ(pool.chunks_in_use(), 2 * kChunksOfStep);
  EXPECT_TRUE(IsResident(pool.At(chunks[0])));
  EXPECT_FALSE(IsResident(pool.At(chunks[3 * kChunksOfStep + 40])));
  EXPECT_FALSE(IsResident(pool.At(chunks.back())));
  // What was given back below is used first, then more is taken as ever.
  std::set<std::uint32_t> taken(chunks.begin(), chunks.begin() + 2 * kChunksOfStep);
  for (std::size_t i = 0; i < kChunksOfStep; ++i) EXPECT_TRUE(taken.insert(pool.Take()).second);
  EXPECT_EQ(budget.used(), 3 * kStep);
  EXPECT_EQ(*taken.rbegin(), 3 * kChunksOfStep);
  while (const std::uint32_t chunk = pool.Take()) EXPECT_TRUE(taken.insert(chunk).second);
  EXPECT_EQ(taken.size(), kCapOfSteps / sizeof(EventChunk));
  EXPECT_EQ(budget.used(), kCapOfSteps);
}

TEST(EventPoolSize, DoesNothingWhereThereIsNothingToLower) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  EXPECT_TRUE(pool.FinishLowering());
  ASSERT_NE(pool.Take(), 0U);
  pool.StartLowering(kStep);
  EXPECT_TRUE(pool.FinishLowering());
  EXPECT_EQ(budget.used(), kStep);
  EXPECT_EQ(pool.chunks_in_use(), 1U);
}

TEST(EventPoolSize, GivesBackWhatWasTakenAheadButNeverUsed) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  const std::uint32_t chunk = pool.Take();
  pool.StartLowering(0);
  EXPECT_EQ(pool.excess(), 1U);
  EXPECT_EQ(pool.Take(), 0U);
  EXPECT_FALSE(pool.FinishLowering());
  pool.GiveBack(chunk);
  EXPECT_TRUE(pool.FinishLowering());
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_NE(pool.Take(), 0U);
}

// Nobody is kept waiting for the one who lowers it, nor takes all that is given up for that.
TEST(EventPoolSize, HandsOutOneChunkForTwoWhileMoreAreInUseThanThereWillBe) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> chunks;
  for (std::size_t i = 0; i < 2 * kChunksOfStep; ++i) chunks.push_back(pool.Take());
  std::shuffle(chunks.begin(), chunks.end(), std::mt19937_64(1));
  pool.StartLowering(kStep);
  EXPECT_EQ(pool.excess(), kChunksOfStep);
  const auto give_back = [&] {
    pool.GiveBack(chunks.back());
    chunks.pop_back();
  };
  EXPECT_EQ(pool.Take(), 0U);
  std::size_t rounds = 0;
  for (; pool.excess() > 2; ++rounds) {
    give_back();
    give_back();
    const std::uint32_t chunk = pool.Take();
    ASSERT_NE(chunk, 0U);
    chunks.insert(chunks.begin() + static_cast<std::ptrdiff_t>(rounds % chunks.size()), chunk);
    ASSERT_EQ(pool.Take(), 0U);
  }
  EXPECT_EQ(rounds, kChunksOfStep - 2);
  give_back();
  give_back();
  EXPECT_EQ(pool.excess(), 0U);
  // From now on there are only so many, and none beyond is handed out any more.
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(pool.Take(), 0U);
    give_back();
    const std::uint32_t chunk = pool.Take();
    ASSERT_NE(chunk, 0U);
    ASSERT_LE(chunk, kChunksOfStep);
    chunks.insert(chunks.begin(), chunk);
  }
  EXPECT_EQ(std::set(chunks.begin(), chunks.end()).size(), kChunksOfStep);
  while (!chunks.empty()) give_back();
  EXPECT_TRUE(pool.FinishLowering());
  EXPECT_EQ(budget.used(), kStep);
}

TEST(EventPoolSize, DoesNotTakeWhatWasFreeBeforeForGivenBack) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> chunks;
  for (std::size_t i = 0; i < 3 * kChunksOfStep; ++i) chunks.push_back(pool.Take());
  for (std::size_t i = 0; i < chunks.size(); i += 4) pool.GiveBack(chunks[i]);
  pool.StartLowering(kStep);
  EXPECT_FALSE(pool.FinishLowering());
  EXPECT_EQ(pool.Take(), 0U);
}

TEST(EventPoolSize, MovesALogThatTakesAllThereWillBe) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> others;
  for (std::size_t i = 0; i < kChunksOfStep / 2; ++i) others.push_back(pool.Take());
  CountingKey key;
  std::vector<std::int64_t> events;
  for (std::size_t i = 0; i < kEventsPerChunk * kChunksOfStep; ++i) {
    events.push_back(static_cast<std::int64_t>(i));
    ASSERT_TRUE(key.Append(pool, events.back()));
  }
  for (const std::uint32_t chunk : others) pool.GiveBack(chunk);
  pool.StartLowering(kStep);
  EXPECT_TRUE(pool.MoveDown(key.payload));
  EXPECT_TRUE(pool.FinishLowering());
  EXPECT_EQ(key.Events(pool), events);
  EXPECT_EQ(budget.used(), kStep);
}

TEST(EventPoolSize, WaitsForThoseWhoHoldAChunkBeyond) {
  ByteBudget budget(kCapOfSteps);
  EventPool pool(budget, 0);
  std::vector<std::uint32_t> chunks;
  for (std::size_t i = 0; i < 2 * kChunksOfStep; ++i) chunks.push_back(pool.Take());
  CountingKey key;
  ASSERT_TRUE(key.Append(pool, 1));
  for (const std::uint32_t chunk : chunks) pool.GiveBack(chunk);
  pool.StartLowering(kStep);
  {
    CountingKey blank;
    ChunkedLog other(pool, blank.payload);  // It has room made, but no event yet.
    EXPECT_FALSE(pool.FinishLowering());
    ASSERT_TRUE(pool.MoveDown(key.payload));
    ASSERT_TRUE(other.MakeRoom());
  }
  EXPECT_TRUE(pool.FinishLowering());
  EXPECT_EQ(key.Events(pool), std::vector<std::int64_t>{1});
  EXPECT_EQ(pool.chunks_in_use(), 1U);
}

// Logs in chunks all over the pool, of every length, some of them begun anew.
class LoweredLogs : public testing::TestWithParam<unsigned> {
 protected:
  void Fill(std::size_t keys) {
    keys_.resize(keys);
    std::vector<std::uint32_t> others;
    for (int i = 0; i < 60'000; ++i) {
      const std::size_t n = random_() % keys;
      ASSERT_TRUE(keys_[n].Append(pool_, i));
      model_[n].push_back(i);
      if (random_() % 16 == 0) others.push_back(pool_.Take());
      if (random_() % 40 != 0) continue;
      const int dropped = static_cast<int>(random_() % 60);
      keys_[n].Drop(pool_, dropped);
      const std::ptrdiff_t gone = std::min<std::ptrdiff_t>(dropped, std::ssize(model_[n]));
      model_[n].erase(model_[n].begin(), model_[n].begin() + gone);
    }
    for (const std::uint32_t chunk : others) pool_.GiveBack(chunk);
  }
  std::size_t LeastBytes() const {
    return (pool_.chunks_in_use() + kChunksOfStep - 1) / kChunksOfStep * kStep;
  }
  void Compare() {
    for (std::size_t n = 0; n < keys_.size(); ++n) ASSERT_EQ(keys_[n].Events(pool_), model_[n]);
  }

  std::mt19937_64 random_{GetParam()};
  ByteBudget budget_{kCapOfSteps};
  EventPool pool_{budget_, 0};
  std::vector<CountingKey> keys_;
  std::map<std::size_t, std::vector<std::int64_t>> model_;
};

TEST_P(LoweredLogs, HaveTheEventsTheyHad) {
  Fill(1 + random_() % 300);
  const std::size_t in_use = pool_.chunks_in_use();
  const std::size_t bytes = LeastBytes();
  ASSERT_LT(bytes, budget_.used());
  pool_.StartLowering(bytes);
  EXPECT_EQ(pool_.excess(), 0U);
  for (CountingKey& key : keys_) ASSERT_TRUE(pool_.MoveDown(key.payload));
  ASSERT_TRUE(pool_.FinishLowering());
  EXPECT_EQ(budget_.used(), bytes);
  EXPECT_EQ(pool_.chunks_in_use(), in_use);
  Compare();
  // They go on as they are.
  for (std::size_t n = 0; n < keys_.size(); ++n) {
    ASSERT_TRUE(keys_[n].Append(pool_, 99'999));
    model_[n].push_back(99'999);
    keys_[n].Drop(pool_, 1);
    model_[n].erase(model_[n].begin());
  }
  Compare();
  for (CountingKey& key : keys_) pool_.GiveBackLog(key.payload);
  EXPECT_EQ(pool_.chunks_in_use(), 0U);
}

TEST_P(LoweredLogs, MayBeGivenUpToMakeRoomForTheOthers) {
  Fill(40);
  const std::size_t bytes = LeastBytes() / 2 / kStep * kStep;
  pool_.StartLowering(bytes);
  std::size_t first_kept = 0;
  for (; pool_.excess() > 0; ++first_kept) {
    pool_.GiveBackLog(keys_[first_kept].payload);
    model_[first_kept].clear();
  }
  EXPECT_GT(first_kept, 10U);
  for (CountingKey& key : keys_) ASSERT_TRUE(pool_.MoveDown(key.payload));
  ASSERT_TRUE(pool_.FinishLowering());
  EXPECT_EQ(budget_.used(), bytes);
  Compare();
}

TEST_P(LoweredLogs, SurviveAMoveThatFindsNoRoom) {
  Fill(40);
  pool_.StartLowering(LeastBytes() / 2);
  bool all = true;
  for (CountingKey& key : keys_) all = pool_.MoveDown(key.payload) && all;
  EXPECT_FALSE(all);
  EXPECT_FALSE(pool_.FinishLowering());
  Compare();
}

INSTANTIATE_TEST_SUITE_P(Seeds, LoweredLogs, testing::Range(1U, 6U));

TEST(EventPoolSize, ChangesWhileThreadsUseIt) {
  constexpr std::size_t kKeys = 40;
  struct LockedKey {
    std::mutex mutex;  // As a slot's lock.
    CountingKey key;
    std::int64_t first = 0;
    std::int64_t next = 0;
  };
  ByteBudget budget(8 * kStep);
  EventPool pool(budget, 0);
  std::array<LockedKey, kKeys> keys;
  std::atomic<bool> done{false};
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(i + 1);
      while (!done) {
        LockedKey& it = keys[random() % kKeys];
        const std::scoped_lock lock(it.mutex);
        // At most 64 chunks for every key: five steps for all.
        if (it.next - it.first < 400) {
          ASSERT_TRUE(it.key.Append(pool, it.next++));
        } else {
          it.key.Drop(pool, 300);
          it.first += 300;
        }
      }
    });
  }
  for (int round = 0; round < 400; ++round) {
    const std::size_t cap = (round % 2 == 0 ? 6 : 8 + static_cast<std::size_t>(round % 90)) * kStep;
    budget.SetCap(cap);
    pool.Extend(cap);
    pool.StartLowering(cap);
    while (!pool.FinishLowering()) {
      for (LockedKey& it : keys) {
        const std::scoped_lock lock(it.mutex);
        ASSERT_TRUE(pool.MoveDown(it.key.payload));
      }
    }
    EXPECT_LE(budget.used(), cap);
    // Some are far from the beginning when it is lowered next.
    std::vector<std::uint32_t> chunks;
    for (std::size_t i = 0; i < kChunksOfStep / 2; ++i) chunks.push_back(pool.Take());
    for (const std::uint32_t chunk : chunks) {
      if (chunk != 0) pool.GiveBack(chunk);
    }
    std::this_thread::yield();
  }
  done = true;
  threads.clear();
  for (LockedKey& it : keys) {
    const std::vector<std::int64_t> events = it.key.Events(pool);
    ASSERT_EQ(std::ssize(events), it.next - it.first);
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i], it.first + static_cast<std::int64_t>(i));
    }
    pool.GiveBackLog(it.key.payload);
  }
  EXPECT_EQ(pool.chunks_in_use(), 0U);
}

}  // namespace
}  // namespace weir
