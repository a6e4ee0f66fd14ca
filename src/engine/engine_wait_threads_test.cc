// threads
// Waits that begin, end, are cancelled and are let through while places come back and the policy
// changes, all at once: nobody is lost, nobody is answered twice, and no place leaks.
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kWaitingThreads = 4;
constexpr int kWaitsOfEach = 400;

constexpr std::array<std::string_view, 3> kPolicies = {
    R"(
rules:
  - { name: places, key: user, limit: 3 concurrent lease 100day }
  - { name: steady, key: ip, limit: 10000/s burst 50 }
)",
    R"(
rules:
  - { name: steady, key: ip, limit: 20000/s burst 100 }
  - { name: places, key: user, limit: 4 concurrent lease 100day }
  - { name: daily, key: user, limit: 1000000/day, algorithm: fixed_window }
)",
    R"(
rules:
  - { name: places, key: user, limit: 2 concurrent lease 100day }
  - { name: shape, key: ip, limit: 50000/s burst 500, algorithm: leaky_bucket, queue: true }
)"};

// Places that were given out and wait to be released.
class Given {
 public:
  void Add(ReservationId place) {
    const std::scoped_lock lock(mutex_);
    places_.push_back(place);
  }
  ReservationId Take() {
    const std::scoped_lock lock(mutex_);
    if (places_.empty()) return ReservationId::kNone;
    const ReservationId place = places_.back();
    places_.pop_back();
    return place;
  }

 private:
  std::mutex mutex_;
  std::vector<ReservationId> places_;
};

TEST(EngineWaitThreads, LoseNobodyAndNoPlace) {
  EngineUnderTest under_test(PolicyOf(kPolicies[0]));
  Engine& engine = under_test.engine;
  Given given;
  std::vector<std::atomic<int>> answered(kWaitingThreads * kWaitsOfEach);
  std::atomic<int> ended{0};
  std::atomic<bool> stop{false};
  std::vector<std::jthread> disturbers;
  disturbers.emplace_back([&] {
    for (std::size_t i = 1; !stop; ++i) {
      ASSERT_TRUE(engine.Apply(PolicyOf(kPolicies[i % kPolicies.size()])));
      std::this_thread::yield();
    }
  });
  disturbers.emplace_back([&] {
    while (!stop) {
      const ReservationId place = given.Take();
      if (place != ReservationId::kNone) {
        EXPECT_TRUE(engine.Release(place).has_value());
      }
      under_test.clock.Advance(milliseconds(1));
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kWaitingThreads; ++t) {
      threads.emplace_back([&, t] {
        const std::string user = t % 2 == 0 ? "ann" : "bob";
        for (int i = 0; i < kWaitsOfEach; ++i) {
          const std::size_t number = static_cast<std::size_t>(t * kWaitsOfEach + i);
          const WaitId id =
              engine.CheckThen({.ip = "192.0.2.1", .user = user}, {}, seconds(i % 8),
                               [&, number](const Answer& answer, std::span<const RuleDecision>) {
                                 ++answered[number];
                                 const ReservationId place = answer.decision.reservation;
                                 if (place != ReservationId::kNone) given.Add(place);
                                 ++ended;
                               });
          if (i % 3 == 0 && engine.CancelWait(id)) {
            ++ended;
            --answered[number];  // So that an answer all the same shows.
          }
        }
      });
    }
  }
  while (ended < kWaitingThreads * kWaitsOfEach) std::this_thread::yield();
  stop = true;
  disturbers.clear();
  int cancelled = 0;
  for (const std::atomic<int>& times : answered) {
    EXPECT_TRUE(times == 1 || times == -1) << times;
    if (times == -1) ++cancelled;
  }
  EXPECT_LT(cancelled, kWaitingThreads * kWaitsOfEach / 2);
  EXPECT_EQ(engine.Stats().store.waiters, 0U);
  for (ReservationId place = given.Take(); place != ReservationId::kNone; place = given.Take()) {
    EXPECT_TRUE(engine.Release(place).has_value());
  }
  EXPECT_EQ(engine.Stats().store.reservations, 0U);
}

}  // namespace
}  // namespace weir
