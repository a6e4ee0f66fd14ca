// Leads from other threads to a loop that may end before they do.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "net/loop.h"

namespace weir {

// Thread-safe. To be kept by a shared pointer.
class Mailbox {
 public:
  explicit Mailbox(Loop& loop) : loop_(&loop) {}

  // As Loop::Post, as long as there is a loop; then nothing happens.
  void Post(std::function<void()> task) {
    const std::scoped_lock lock(mutex_);
    if (loop_ != nullptr) loop_->Post(std::move(task));
  }
  // To be called before the loop ends.
  void Close() {
    const std::scoped_lock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Loop* loop_;
};

}  // namespace weir
