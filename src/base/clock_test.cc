// threads
#include <weir/clock.h>

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Duration OffsetOf(const Now& now) {
  return now.wall.time_since_epoch() - now.steady.time_since_epoch();
}

// A thread that waits for a point in time, as users of a clock do. Its mutex and its condition
// variable are gone as soon as it is.
class Waiter {
 public:
  Waiter(Clock& clock, SteadyTime deadline)
      : thread_([this, &clock, deadline] {
          std::mutex mutex;
          std::condition_variable wake;
          std::unique_lock lock(mutex);
          while (clock.Read().steady < deadline) clock.WaitUntil(lock, wake, deadline);
          done_ = true;
        }) {}
  ~Waiter() { Join(); }

  bool done() const { return done_; }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void AwaitWaiting(const ManualClock& clock, int number) {
  while (clock.Waiting() != number) std::this_thread::yield();
}

TEST(SystemClock, NeverGoesBack) {
  SystemClock clock;
  Now before = clock.Read();
  for (int i = 0; i < 1000; ++i) {
    const Now now = clock.Read();
    EXPECT_GE(now.steady, before.steady);
    EXPECT_GE(now.wall, before.wall);
    before = now;
  }
  EXPECT_GT(before.wall, WallTime(std::chrono::sys_days(std::chrono::year(2025) / 1 / 1)));
}

TEST(SystemClock, KeepsItsOffsetForAsLongAsItWasTold) {
  SystemClock clock;
  const Duration offset = OffsetOf(clock.Read());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(OffsetOf(clock.Read()), offset);
}

TEST(SystemClock, ReadsAnOffsetThatIsTooOldAgain) {
  SystemClock always(Duration(0));
  SystemClock seldom;
  bool changed = false;
  // Two readings of two clocks are never exactly as far apart twice.
  for (int i = 0; i < 100'000 && !changed; ++i) {
    changed = OffsetOf(always.Read()) != OffsetOf(always.Read());
  }
  EXPECT_TRUE(changed);
  EXPECT_LT(std::chrono::abs(OffsetOf(always.Read()) - OffsetOf(seldom.Read())), seconds(10));
}

TEST(SystemClock, ReadsTheOffsetSafelyFromManyThreads) {
  SystemClock clock(Duration(0));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&clock] {
      for (int j = 0; j < 10'000; ++j) clock.Read();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SystemClock, WaitsNoLongerThanTheDeadline) {
  SystemClock& clock = SystemClock::Shared();
  const SteadyTime deadline = clock.Read().steady + milliseconds(5);
  Waiter waiter(clock, deadline);
  waiter.Join();
  EXPECT_GE(clock.Read().steady, deadline);
}

TEST(SystemClock, IsWokenBeforeTheDeadlineByANotification) {
  SystemClock clock;
  const SteadyTime deadline = clock.Read().steady + hours(1);
  std::mutex mutex;
  std::condition_variable wake;
  bool ready = false;
  std::thread notifier([&] {
    const std::scoped_lock guard(mutex);
    ready = true;
    wake.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    while (!ready) clock.WaitUntil(lock, wake, deadline);
  }
  notifier.join();
  EXPECT_LT(clock.Read().steady, deadline);
}

TEST(SystemClock, IsOneForAllWhoDoNotBringTheirOwn) {
  EXPECT_EQ(&SystemClock::Shared(), &SystemClock::Shared());
}

TEST(ManualClock, StartsAtTheBeginningOf2025AndStandsStill) {
  const ManualClock clock;
  const WallTime start = std::chrono::sys_days(std::chrono::year(2025) / 1 / 1);
  EXPECT_EQ(clock.Read().wall, start);
  EXPECT_EQ(clock.Read().wall, start);
  EXPECT_EQ(clock.Read().steady, clock.Read().steady);
}

TEST(ManualClock, StartsWhereItIsToldTo) {
  const WallTime start(hours(1'000));
  EXPECT_EQ(ManualClock(start).Read().wall, start);
}

TEST(ManualClock, MovesBothInstantsForwardAndBack) {
  ManualClock clock;
  const Now start = clock.Read();
  clock.Advance(seconds(5));
  EXPECT_EQ(clock.Read().steady, start.steady + seconds(5));
  EXPECT_EQ(clock.Read().wall, start.wall + seconds(5));
  clock.Advance(-seconds(7));
  EXPECT_EQ(clock.Read().steady, start.steady - seconds(2));
  EXPECT_EQ(clock.Read().wall, start.wall - seconds(2));
}

TEST(ManualClock, SetsTheWallInstantByItself) {
  ManualClock clock;
  const SteadyTime steady = clock.Read().steady;
  clock.SetWall(WallTime(hours(5)));
  EXPECT_EQ(clock.Read().wall, WallTime(hours(5)));
  EXPECT_EQ(clock.Read().steady, steady);
}

TEST(ManualClock, DoesNotWaitForWhatIsOver) {
  ManualClock clock;
  std::mutex mutex;
  std::condition_variable wake;
  std::unique_lock lock(mutex);
  clock.WaitUntil(lock, wake, clock.Read().steady);
  EXPECT_TRUE(lock.owns_lock());
  EXPECT_EQ(clock.Waiting(), 0);
}

TEST(ManualClock, WakesOnlyThoseWhoseTimeHasCome) {
  ManualClock clock;
  const SteadyTime start = clock.Read().steady;
  Waiter first(clock, start + seconds(1));
  Waiter second(clock, start + seconds(2));
  AwaitWaiting(clock, 2);
  clock.Advance(milliseconds(999));
  EXPECT_EQ(clock.Waiting(), 2);
  clock.Advance(milliseconds(1));
  first.Join();
  EXPECT_EQ(clock.Waiting(), 1);
  EXPECT_FALSE(second.done());
  clock.Advance(hours(1));
  second.Join();
  EXPECT_EQ(clock.Waiting(), 0);
}

TEST(ManualClock, DoesNotCountAThreadThatWasWokenAsWaiting) {
  ManualClock clock;
  Waiter waiter(clock, clock.Read().steady + seconds(1));
  AwaitWaiting(clock, 1);
  clock.Advance(seconds(1));
  EXPECT_EQ(clock.Waiting(), 0);
}

TEST(ManualClock, WakesAllWhoShareACondition) {
  ManualClock clock;
  const SteadyTime deadline = clock.Read().steady + seconds(1);
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::unique_lock lock(mutex);
      while (clock.Read().steady < deadline) clock.WaitUntil(lock, wake, deadline);
    });
  }
  AwaitWaiting(clock, 3);
  clock.Advance(seconds(1));
  for (std::thread& thread : threads) thread.join();
}

TEST(ManualClock, LeavesOtherNotificationsAlone) {
  ManualClock clock;
  std::mutex mutex;
  std::condition_variable wake;
  bool ready = false;
  std::thread thread([&] {
    std::unique_lock lock(mutex);
    while (!ready) clock.WaitUntil(lock, wake, clock.Read().steady + hours(1));
  });
  AwaitWaiting(clock, 1);
  {
    const std::scoped_lock guard(mutex);
    ready = true;
    wake.notify_all();
  }
  thread.join();
  EXPECT_EQ(clock.Waiting(), 0);
}

TEST(ManualClock, WakesASleeperWhoseMutexIsTakenOnceItIsFree) {
  ManualClock clock;
  const SteadyTime deadline = clock.Read().steady + seconds(1);
  std::mutex mutex;
  std::condition_variable wake;
  std::thread sleeper([&] {
    std::unique_lock lock(mutex);
    while (clock.Read().steady < deadline) clock.WaitUntil(lock, wake, deadline);
  });
  AwaitWaiting(clock, 1);
  std::unique_lock lock(mutex);
  std::thread mover([&] { clock.Advance(seconds(1)); });
  while (clock.Read().steady < deadline) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_EQ(clock.Waiting(), 1);
  lock.unlock();
  sleeper.join();
  mover.join();
}

// A sleeper that has looked at the time but does not wait yet must not miss the notification: this
// would hang.
TEST(ManualClock, LosesNoWakeUpWhenTimeMovesWhileSomebodyFallsAsleep) {
  ManualClock clock;
  for (int i = 0; i < 500; ++i) {
    const SteadyTime start = clock.Read().steady;
    Waiter first(clock, start + seconds(1));
    Waiter second(clock, start + seconds(2));
    clock.Advance(seconds(1));
    clock.Advance(seconds(1));
  }
  EXPECT_EQ(clock.Waiting(), 0);
}

}  // namespace
}  // namespace weir
