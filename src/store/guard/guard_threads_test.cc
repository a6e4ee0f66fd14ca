// threads
// Several threads behind one guard, each with a store of its own that comes and goes.
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;

constexpr int kThreads = 4;

void OnAllThreads(const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      work(i);
    });
  }
}

Decision Check(GuardedStore& store, Loop& loop, const Limit& limit) {
  const Charge charge{.rule = "rule", .key = "ann", .hash = store.Hash("ann"), .limit = &limit};
  Decision decision;
  Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  SubmitOne(store, group, loop.now());
  return group.decision;
}

TEST(GuardThreads, HaveOneShareAmongThem) {
  ManualClock clock;
  Guard guard({.fleet_size = 2, .cap_bytes = kMinCapBytes}, clock);
  const Limit limit = LimitOf("1000/h");
  std::atomic<int> admitted{0};
  OnAllThreads([&](int) {
    LoopUnderTest loop;
    StoreBehind behind(guard.hasher(), loop.now());
    GuardedStore store(behind, guard, loop);
    behind.Fail();
    for (int i = 0; i < 1'000; ++i) admitted += Check(store, loop, limit).allowed ? 1 : 0;
  });
  EXPECT_EQ(admitted, 500);
  EXPECT_EQ(guard.stats().fallback, 4'000u);
}

TEST(GuardThreads, SayOnceThatADegradedTimeBeginsAndEnds) {
  ManualClock clock;
  std::vector<std::string> notices;  // Told one after the other.
  Guard guard({.fleet_size = 2,
               .cap_bytes = kMinCapBytes,
               .on_notice = [&](std::string_view text) { notices.emplace_back(text); }},
              clock);
  const Limit limit = LimitOf("1000/h");
  std::atomic<std::int64_t> time{0};
  OnAllThreads([&](int thread) {
    LoopUnderTest loop;
    StoreBehind behind(guard.hasher(), loop.now());
    GuardedStore store(behind, guard, loop);
    Duration passed{0};
    for (int i = 0; i < 5'000; ++i) {
      const Duration to = milliseconds(time.fetch_add(1));
      loop.clock.Advance(to - passed);
      passed = to;
      // Every four seconds or so two of them fail for a second.
      to.count() / 1'000'000 % 4'000 < 1'000 && thread % 2 == 0 ? behind.Fail() : behind.Recover();
      Check(store, loop, limit);
      (void)guard.IsDegraded();
      (void)guard.DegradedFor(loop.now().steady);
    }
  });
  EXPECT_GE(notices.size(), 2u);
  EXPECT_LE(notices.size(), 200u);  // Of 20,000 calls, half of them failing at times.
  for (std::size_t i = 0; i < notices.size(); ++i) {
    EXPECT_EQ(notices[i].starts_with("the store failed"), i % 2 == 0) << notices[i];
  }
}

TEST(GuardThreads, ReleaseEachOthersLeases) {
  ManualClock clock;
  Guard guard({.fleet_size = 1, .cap_bytes = kMinCapBytes}, clock);
  const Limit limit = LimitOf("1000 concurrent lease 30s");
  std::mutex mutex;
  std::vector<ReservationId> held;
  StoreBehind* behinds[kThreads] = {};
  LoopUnderTest loops[kThreads];
  std::vector<std::unique_ptr<StoreBehind>> owned;
  for (int i = 0; i < kThreads; ++i) {
    owned.push_back(std::make_unique<StoreBehind>(guard.hasher(), loops[i].now()));
    behinds[i] = owned.back().get();
  }
  OnAllThreads([&](int thread) {
    GuardedStore store(*behinds[thread], guard, loops[thread]);
    for (int i = 0; i < 500; ++i) {
      const ReservationId taken = Check(store, loops[thread], limit).reservation;
      ReservationId released = ReservationId::kNone;
      {
        const std::scoped_lock lock(mutex);
        held.push_back(taken);
        released = held.front();
        held.erase(held.begin());
      }
      // The other store does not know it; what is kept here is released all the same.
      Group group{.action = Action::kCancel, .reservation = released};
      SubmitOne(store, group, loops[thread].now());
    }
  });
  EXPECT_EQ(guard.stats().local.reservations, 0u);
}

}  // namespace
}  // namespace weir
