#include "net/reactor.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace weir {

Reactor::Reactor(Clock& clock)
    : clock_(clock),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      time_(clock.Read()) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
}

Reactor::~Reactor() {
  close(wake_);
  close(epoll_);
}

void Reactor::Watch(int fd, Watcher& watcher, std::uint32_t events) noexcept {
  epoll_event event{.events = events, .data = {.ptr = &watcher}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Reactor::Change(int fd, Watcher& watcher, std::uint32_t events) noexcept {
  epoll_event event{.events = events, .data = {.ptr = &watcher}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Reactor::Unwatch(int fd, const Watcher& watcher) noexcept {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  for (std::size_t i = next_event_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i] = {.events = 0, .data = {.ptr = nullptr}};
  }
}

void Reactor::AddTimer(SteadyTime due, TimerTask task) { timers_.emplace(due, std::move(task)); }

void Reactor::RemoveTimer(SteadyTime due, const TimerTask& task) noexcept {
  timers_.erase({due, task});
}

void Reactor::Post(std::function<void()> task) {
  bool first = false;
  {
    const std::scoped_lock lock(mutex_);
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (IsOnItsThread()) {
    has_own_tasks_ = true;
  } else if (first) {
    Wake();
  }
}

void Reactor::Stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  Wake();
}

void Reactor::Wake() const noexcept {
  const std::uint64_t one = 1;
  // It can only fail when the count is full: then it wakes up all the same.
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof(one));
}

void Reactor::Run() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!stopping_.load(std::memory_order_relaxed)) Turn();
}

void Reactor::Turn() {
  const bool has_own_tasks = std::exchange(has_own_tasks_, false);
  const int count = epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()),
                               has_own_tasks ? 0 : MillisecondsToNextTimer());
  has_time_ = false;
  event_count_ = static_cast<std::size_t>(std::max(count, 0));
  bool has_tasks = has_own_tasks;
  for (next_event_ = 0; next_event_ < event_count_;) {
    const epoll_event event = events_[next_event_++];
    if (event.data.ptr != nullptr) {
      static_cast<Watcher*>(event.data.ptr)->OnEvents(event.events);
    } else if (event.events != 0) {
      TakeWakes();
      has_tasks = true;
    }
  }
  event_count_ = 0;
  if (has_tasks) RunTasks();
  if (!timers_.empty()) RunTimers();
  EndTurn();
}

void Reactor::EndTurn() noexcept {
  while (!turn_ends_.empty()) {
    TurnEnd* const told = turn_ends_.front();
    turn_ends_.erase(turn_ends_.begin());
    told->OnTurnEnd();
  }
}

int Reactor::MillisecondsToNextTimer() const noexcept {
  constexpr std::int64_t kMost = 60'000;
  if (timers_.empty()) return static_cast<int>(kMost);
  // By the time of the turn that ends, which makes a timer late by what that took, at most.
  const Duration rest = timers_.begin()->first - time_.steady;
  // Rounded up: a turn before its time would only be another turn.
  return static_cast<int>(
      std::clamp<std::int64_t>(RoundUpTo<std::chrono::milliseconds>(rest), 0, kMost));
}

void Reactor::RunTimers() {
  const SteadyTime now = Time().steady;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const TimerTask task = timers_.begin()->second;  // It may end its own timer.
    timers_.erase(timers_.begin());
    (*task)();
  }
}

void Reactor::TakeWakes() const noexcept {
  std::uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t bytes = read(wake_, &ignored, sizeof(ignored));
}

void Reactor::RunTasks() {
  {
    const std::scoped_lock lock(mutex_);
    running_.swap(tasks_);
  }
  for (const std::function<void()>& task : running_) task();
  running_.clear();
}

}  // namespace weir
