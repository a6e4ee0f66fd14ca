// What an epoll loop is made of: descriptors that are watched, timers, and tasks from elsewhere.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <weir/clock.h>

#include "net/loop.h"

namespace weir {

// Told what epoll says about a descriptor. May end itself, and others.
class Watcher {
 public:
  virtual void OnEvents(std::uint32_t events) noexcept = 0;

 protected:
  ~Watcher() = default;
};

class Reactor {
 public:
  explicit Reactor(Clock& clock);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  void Watch(int fd, Watcher& watcher, std::uint32_t events) noexcept;
  void Change(int fd, Watcher& watcher, std::uint32_t events) noexcept;
  // Nothing more is told, not even what epoll has said already.
  void Unwatch(int fd, const Watcher& watcher) noexcept;

  using TimerTask = std::shared_ptr<const std::function<void()>>;
  void AddTimer(SteadyTime due, TimerTask task);
  void RemoveTimer(SteadyTime due, const TimerTask& task) noexcept;

  void AtTurnEnd(TurnEnd& told) {
    if (std::ranges::find(turn_ends_, &told) == turn_ends_.end()) turn_ends_.push_back(&told);
  }
  void ForgetTurnEnd(TurnEnd& told) noexcept { std::erase(turn_ends_, &told); }

  void Post(std::function<void()> task);
  void Stop() noexcept;
  void Run();

  // The time of this turn.
  Now Time() noexcept {
    if (!std::exchange(has_time_, true)) time_ = clock_.Read();
    return time_;
  }
  Now ReadClock() const noexcept { return clock_.Read(); }

 private:
  // So many events are handled before the clock is read again.
  static constexpr std::size_t kEventsPerTurn = 64;

  void Turn();
  int MillisecondsToNextTimer() const noexcept;
  void RunTimers();
  void RunTasks();
  bool IsOnItsThread() const noexcept {
    return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  void EndTurn() noexcept;
  void Wake() const noexcept;
  void TakeWakes() const noexcept;

  Clock& clock_;
  const int epoll_;
  const int wake_;  // An eventfd.
  bool has_time_ = false;
  Now time_{};
  std::array<epoll_event, kEventsPerTurn> events_{};
  std::size_t next_event_ = 0;  // Of those of this turn.
  std::size_t event_count_ = 0;
  std::set<std::pair<SteadyTime, TimerTask>> timers_;

  std::vector<TurnEnd*> turn_ends_;  // Few, and in the order in which they asked.

  std::atomic<bool> stopping_{false};
  std::atomic<std::thread::id> thread_{};  // That runs it.
  bool has_own_tasks_ = false;             // Posted by itself, which need not wake it.
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  // Under the mutex.
  std::vector<std::function<void()>> running_;
};

}  // namespace weir
