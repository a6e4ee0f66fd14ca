// The time of a simulated loop, for those who want a clock.
#pragma once

#include <weir/clock.h>

#include "sim/sim_loop.h"

namespace weir::sim {

class LoopClock final : public Clock {
 public:
  explicit LoopClock(const SimLoop& loop) : loop_(loop) {}
  Now Read() const noexcept override { return loop_.ReadClock(); }
  // Nobody in a simulation may block.
  void WaitUntil(std::unique_lock<std::mutex>& /*lock*/, std::condition_variable& /*wake*/,
                 SteadyTime /*deadline*/) override {}

 private:
  const SimLoop& loop_;
};

}  // namespace weir::sim
