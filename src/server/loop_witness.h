// Sees whether a loop still turns: what is posted to it must have run by the next look.
#pragma once

#include <atomic>
#include <memory>

#include "net/loop.h"

namespace weir {

// May be used from one thread, whichever runs the loop; which must last as long as it is used.
class LoopWitness {
 public:
  explicit LoopWitness(Loop& loop) : loop_(loop) {}

  // Whether the loop has turned since the last look. The first time there is nothing to go by, and
  // it counts as if it had.
  bool HasTurned() {
    if (!has_turned_->load(std::memory_order_acquire)) return false;
    has_turned_->store(false, std::memory_order_relaxed);
    loop_.Post([turned = has_turned_] { turned->store(true, std::memory_order_release); });
    return true;
  }

 private:
  Loop& loop_;
  // Shared with what was posted, which may run when this is gone.
  const std::shared_ptr<std::atomic<bool>> has_turned_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace weir
