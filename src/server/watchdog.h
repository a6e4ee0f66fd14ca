// Looks again and again whether all is well, on a thread of its own, which nothing keeps from
// looking but the end of the process.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include <weir/time.h>

namespace weir {

// Looks at once, then every so often, until it is ended.
class Watchdog {
 public:
  Watchdog(Duration every, std::function<void()> look);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  void Run(Duration every, const std::function<void()>& look);

  std::mutex mutex_;
  std::condition_variable told_to_end_;
  bool ending_ = false;  // Under the mutex.
  std::thread thread_;
};

}  // namespace weir
