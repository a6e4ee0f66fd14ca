// An engine with nothing around it: no rules, no network, memory of its own, and time that is said.
#pragma once

#include <span>

#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/time.h>

namespace weir::lab {

class EngineAlone {
 public:
  explicit EngineAlone(WallTime start);

  // `at` since the start.
  void Check(std::span<LimitRequest> requests, Duration at) {
    engine_.CheckLimits(requests, {.steady = start_.steady + at, .wall = start_.wall + at});
  }
  // What all keys take together.
  std::size_t Bytes() const { return engine_.Stats().store.bytes; }
  std::size_t Entries() const { return engine_.Stats().store.entries; }

 private:
  ManualClock clock_;
  const Now start_;
  Engine engine_;
};

}  // namespace weir::lab
