// The one file that reads the machine's clock.
#include <weir/clock.h>

#include <algorithm>
#include <thread>

namespace weir {
namespace {

SteadyTime ReadSteady() noexcept { return std::chrono::steady_clock::now(); }

Duration ReadOffset(SteadyTime steady) noexcept {
  const WallTime wall = std::chrono::system_clock::now();
  return wall.time_since_epoch() - steady.time_since_epoch();
}

}  // namespace

SystemClock::SystemClock(Duration offset_lifetime) : offset_lifetime_(offset_lifetime) {
  const SteadyTime steady = ReadSteady();
  offset_.store(ReadOffset(steady).count(), std::memory_order_relaxed);
  offset_read_at_.store(steady.time_since_epoch().count(), std::memory_order_relaxed);
}

Now SystemClock::Read() const noexcept {
  const SteadyTime steady = ReadSteady();
  const Duration::rep now = steady.time_since_epoch().count();
  Duration::rep read_at = offset_read_at_.load(std::memory_order_relaxed);
  // One thread reads the offset, the others go on with the old one. Nothing else is published
  // with it, so relaxed order is enough.
  if (now - read_at >= offset_lifetime_.count() &&
      offset_read_at_.compare_exchange_strong(read_at, now, std::memory_order_relaxed)) {
    offset_.store(ReadOffset(steady).count(), std::memory_order_relaxed);
  }
  const Duration offset(offset_.load(std::memory_order_relaxed));
  return {.steady = steady, .wall = WallTime(steady.time_since_epoch() + offset)};
}

void SystemClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                            SteadyTime deadline) {
  wake.wait_until(lock, deadline);
}

SystemClock& SystemClock::Shared() {
  static SystemClock clock;
  return clock;
}

ManualClock::ManualClock()
    : ManualClock(std::chrono::sys_days(std::chrono::year(2025) / std::chrono::January / 1)) {}

// Steady time starts at a day rather than at 0, so that a forgotten initial value stands out.
ManualClock::ManualClock(WallTime start)
    : now_{.steady = SteadyTime(std::chrono::hours(24)), .wall = start} {}

Now ManualClock::Read() const noexcept {
  const std::scoped_lock guard(mutex_);
  return now_;
}

void ManualClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                            SteadyTime deadline) {
  // Registered before the time is looked at: whoever moves the time afterwards knows of us, and
  // can notify only once the wait below has let go of the caller's mutex.
  Sleeper self{.mutex = lock.mutex(), .wake = &wake, .deadline = deadline};
  bool due = false;
  {
    const std::scoped_lock guard(mutex_);
    sleepers_.push_back(&self);
    due = now_.steady >= deadline;
  }
  if (!due) wake.wait(lock);
  const std::scoped_lock guard(mutex_);
  std::erase(sleepers_, &self);
}

void ManualClock::Advance(Duration step) {
  {
    const std::scoped_lock guard(mutex_);
    now_.steady += step;
    now_.wall += step;
  }
  while (!TryToWakeThoseDue()) std::this_thread::yield();
}

void ManualClock::SetWall(WallTime wall) {
  const std::scoped_lock guard(mutex_);
  now_.wall = wall;
}

int ManualClock::Waiting() const {
  const std::scoped_lock guard(mutex_);
  return static_cast<int>(std::ranges::count(sleepers_, false, &Sleeper::woken));
}

// Holding mutex_ keeps every registered sleeper, and so its mutex, alive. Sleepers take their own
// mutex first and mutex_ second; here it is the other way round, hence try_lock and another round.
bool ManualClock::TryToWakeThoseDue() {
  const std::scoped_lock guard(mutex_);
  bool all = true;
  for (Sleeper* sleeper : sleepers_) {
    if (sleeper->woken || now_.steady < sleeper->deadline) continue;
    if (sleeper->mutex->try_lock()) {
      sleeper->wake->notify_all();
      sleeper->mutex->unlock();
      sleeper->woken = true;
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace weir
