// What the tests of waiting share: a place where answers arrive, from whatever thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weir/clock.h>
#include <weir/limiter.h>

namespace weir {

// Thread-safe.
class WaitAnswers {
 public:
  // A callback that notes its answer under `name`.
  Limiter::WaitDone For(std::string name) {
    return [this, name = std::move(name)](const Decision& decision) {
      const std::scoped_lock lock(mutex_);
      names_.push_back(name);
      decisions_.push_back(decision);
      arrived_.notify_all();
    };
  }

  // In the order in which they came, once there are `count`.
  std::vector<std::string> Names(std::size_t count) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return names_.size() >= count; });
    return names_;
  }
  Decision At(std::size_t index) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return decisions_.size() > index; });
    return decisions_[index];
  }
  // How many there are by now.
  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return names_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> names_;
  std::vector<Decision> decisions_;
};

// Returns when the thread that serves waits has nothing to do before the clock moves.
inline void AwaitSleep(const ManualClock& clock) {
  while (clock.Waiting() == 0) std::this_thread::yield();
}

// Moves the clock and lets those whose time has come be served.
inline void AdvanceAndServe(ManualClock& clock, Duration step) {
  AwaitSleep(clock);
  clock.Advance(step);
  AwaitSleep(clock);
}

}  // namespace weir
