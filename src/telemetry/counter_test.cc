// threads
#include "telemetry/counter.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Counter, StartsAtNothing) { EXPECT_EQ(Counter().Value(), 0U); }

TEST(Counter, AddsOneUnlessToldOtherwise) {
  Counter counter;
  counter.Add();
  counter.Add(41);
  counter.Add(0);
  EXPECT_EQ(counter.Value(), 42U);
}

TEST(Counter, CountsApartFromOtherCountersOfTheSameThread) {
  Counter one;
  Counter other;
  one.Add(3);
  other.Add(5);
  EXPECT_EQ(one.Value(), 3U);
  EXPECT_EQ(other.Value(), 5U);
}

// More threads than cells, so that some share one.
TEST(Counter, LosesNothingWhenMoreThreadsAddThanItHasCells) {
  constexpr std::size_t kThreads = 40;
  constexpr std::uint64_t kEach = 5'000;
  Counter counter;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kEach; ++n) counter.Add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.Value(), kThreads * kEach);
}

TEST(Counter, NeverShowsLessThanItShowedBefore) {
  Counter counter;
  std::atomic<bool> stop{false};
  std::thread adder([&] {
    while (!stop.load()) counter.Add();
  });
  std::uint64_t last = 0;
  for (int i = 0; i < 2'000; ++i) {
    const std::uint64_t value = counter.Value();
    EXPECT_GE(value, last);
    last = value;
  }
  stop = true;
  adder.join();
}

}  // namespace
}  // namespace weir
