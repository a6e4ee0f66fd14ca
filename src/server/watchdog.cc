#include "server/watchdog.h"

#include <utility>

namespace weir {

Watchdog::Watchdog(Duration every, std::function<void()> look)
    : thread_([this, every, look = std::move(look)] { Run(every, look); }) {}

Watchdog::~Watchdog() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  told_to_end_.notify_one();
  thread_.join();
}

void Watchdog::Run(Duration every, const std::function<void()>& look) {
  std::unique_lock lock(mutex_);
  do {
    lock.unlock();
    look();
    lock.lock();
  } while (!told_to_end_.wait_for(lock, every, [this] { return ending_; }));
}

}  // namespace weir
