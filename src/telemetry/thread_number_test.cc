// threads
#include "telemetry/thread_number.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

std::size_t NumberOfAnotherThread() {
  std::size_t number = 0;
  std::thread([&] { number = ThreadNumber::OfThisThread(); }).join();
  return number;
}

TEST(ThreadNumber, StaysTheSameForAThread) {
  EXPECT_EQ(ThreadNumber::OfThisThread(), ThreadNumber::OfThisThread());
  EXPECT_LT(ThreadNumber::OfThisThread(), ThreadNumber::kNumbers);
}

TEST(ThreadNumber, IsGivenAgainWhenItsThreadHasEnded) {
  const std::size_t first = NumberOfAnotherThread();
  EXPECT_NE(first, ThreadNumber::OfThisThread());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(NumberOfAnotherThread(), first);
}

TEST(ThreadNumber, BelongsToOneThreadAtATimeAndIsSharedWhenNoneIsLeft) {
  constexpr std::size_t kThreads = 100;
  std::mutex mutex;
  std::condition_variable all_there;
  std::set<std::size_t> own;
  std::size_t shared = 0;
  std::size_t there = 0;
  ThreadNumber::OfThisThread();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const std::size_t number = ThreadNumber::OfThisThread();
        std::unique_lock lock(mutex);
        if (number == ThreadNumber::kNumbers) {
          ++shared;
        } else {
          EXPECT_TRUE(own.insert(number).second);
        }
        ++there;
        all_there.notify_all();
        all_there.wait(lock, [&] { return there == kThreads; });
      });
    }
  }
  EXPECT_EQ(own.size(), ThreadNumber::kNumbers - 1);  // The other is this thread's.
  EXPECT_EQ(shared, kThreads - own.size());
}

}  // namespace
}  // namespace weir
