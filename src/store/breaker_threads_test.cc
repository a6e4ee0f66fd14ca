// threads
// Many threads at one breaker.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/breaker.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = Breaker::Outcome;

constexpr int kBreakerThreads = 4;

void OnAllThreads(const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kBreakerThreads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kBreakerThreads) std::this_thread::yield();
      work(i);
    });
  }
}

TEST(BreakerThreads, GiveEachProbeToOneOfThem) {
  Breaker breaker({.seed = 1});
  breaker.Note(Outcome::kTimedOut, milliseconds(50), SteadyTime{seconds(1)}, 5);
  ASSERT_FALSE(breaker.IsClosed());
  std::atomic<int> probes{0};
  OnAllThreads([&](int) {
    for (int i = 0; i < 10'000; ++i) probes += breaker.TakeProbe(SteadyTime{seconds(3)}) ? 1 : 0;
  });
  EXPECT_EQ(probes, 1);
}

TEST(BreakerThreads, LoseNoCall) {
  // One more bad call than good ones opens it; one fewer must not.
  for (const int bad : {9'999, 10'000}) {
    Breaker breaker({.seed = 1});
    const SteadyTime now{seconds(1)};
    std::atomic<int> left{0};
    OnAllThreads([&](int) {
      for (int i = 0; i < 2'500; ++i) breaker.Note(Outcome::kAnswered, milliseconds(1), now);
    });
    ASSERT_TRUE(breaker.IsClosed());
    left = bad;
    OnAllThreads([&](int) {
      while (left.fetch_sub(1) > 0) breaker.Note(Outcome::kFailed, milliseconds(1), now);
    });
    EXPECT_EQ(breaker.IsClosed(), bad < 10'000);
  }
}

TEST(BreakerThreads, OpenAndCloseItWithoutLosingTheirWay) {
  Breaker breaker({.seed = 1});
  std::atomic<std::int64_t> time{seconds(1) / milliseconds(1)};
  OnAllThreads([&](int thread) {
    for (int i = 0; i < 20'000; ++i) {
      const SteadyTime now{milliseconds(time.fetch_add(1))};
      if (breaker.IsClosed()) {
        breaker.Note(thread % 2 == 0 ? Outcome::kFailed : Outcome::kAnswered, milliseconds(1), now);
      } else if (breaker.TakeProbe(now)) {
        breaker.NoteProbe(true, now);
      }
    }
  });
  EXPECT_GT(breaker.openings(), 1u);
  const SteadyTime later{seconds(1'000)};
  if (!breaker.IsClosed()) {
    EXPECT_TRUE(breaker.TakeProbe(later));
    breaker.NoteProbe(true, later);
  }
  EXPECT_TRUE(breaker.IsClosed());
}

}  // namespace
}  // namespace weir
