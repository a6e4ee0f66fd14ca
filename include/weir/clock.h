// Where time comes from. The engine never reads a clock by itself: it is handed a Now. These
// classes make one, and they are shipped so that a program's own tests can move time by hand.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include <weir/time.h>

namespace weir {

// Thread-safe. Waiting goes through the clock too, so that a test that moves a ManualClock also
// moves everyone who waits on it.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual Now Read() const noexcept = 0;

  // Waits on `wake` until it is notified or `deadline` has come; `lock` is held on return.
  // May return early, as condition variables do: look at what you waited for, and at the time.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                         SteadyTime deadline) = 0;
};

// The machine's clock. The wall instant is the steady one plus an offset; the offset is read at
// the start and again once a minute, so a wall clock that is set by hand is noticed within a
// minute and never makes steady time jump.
class SystemClock final : public Clock {
 public:
  // An offset older than `offset_lifetime` is read anew.
  explicit SystemClock(Duration offset_lifetime = std::chrono::minutes(1));

  Now Read() const noexcept override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                 SteadyTime deadline) override;

  // The one clock of the process, for those who do not bring their own.
  static SystemClock& Shared();

 private:
  const Duration offset_lifetime_;
  mutable std::atomic<Duration::rep> offset_;          // wall - steady
  mutable std::atomic<Duration::rep> offset_read_at_;  // steady
};

// A clock that stands still until it is moved. Both instants move together in Advance; either
// can be set by itself to play a clock that misbehaves.
//
//   ManualClock clock;
//   auto limiter = Limiter::Make("5/min", {.clock = &clock});
//   ... use up the five ...
//   clock.Advance(std::chrono::seconds(12));
//   assert(limiter->Check("ann").allowed);
class ManualClock final : public Clock {
 public:
  // Starts on 2025-01-01 at 00:00:00 UTC unless told otherwise.
  ManualClock();
  explicit ManualClock(WallTime start);

  Now Read() const noexcept override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                 SteadyTime deadline) override;

  // Moves both instants by `step`, which may be negative, and wakes those whose time has come.
  // Takes their mutexes one by one, so call it without holding any of them.
  void Advance(Duration step);
  // Moves only the wall instant, as when somebody sets the machine's clock.
  void SetWall(WallTime wall);

  // How many threads wait on this clock now: lets a test move time once everyone is asleep.
  int Waiting() const;

 private:
  struct Sleeper {
    std::mutex* mutex;
    std::condition_variable* wake;
    SteadyTime deadline;
    bool woken = false;
  };
  bool TryToWakeThoseDue();

  mutable std::mutex mutex_;
  Now now_;
  std::vector<Sleeper*> sleepers_;  // Each lives on the stack of the thread that waits.
};

}  // namespace weir
