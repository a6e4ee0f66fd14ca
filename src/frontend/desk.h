// What the front ends of one thread work with.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>

#include <weir/engine.h>

#include "engine/loop_engine.h"
#include "frontend/access.h"
#include "frontend/limit_cache.h"
#include "frontend/metrics.h"
#include "frontend/settings.h"
#include "net/loop.h"

namespace weir {

// How the service as a whole is doing; the same for all threads.
class ServiceState {
 public:
  virtual ~ServiceState() = default;

  enum class Readiness : std::uint8_t { kStarting, kReady, kDegraded, kDraining };
  virtual Readiness readiness() const noexcept = 0;
  // The text of /metrics. Slow: some hundred microseconds.
  virtual std::string MetricsText() const = 0;
};

struct Desk {
  // How long the thread has been at it: since this turn of the loop began, or since it was last
  // asked in this turn.
  Duration TimeSinceLast() noexcept {
    const SteadyTime before = std::max(last_asked, loop.now().steady);
    last_asked = loop.ReadClock().steady;
    return last_asked - before;
  }

  // Whether the questions are to be asked instead of the engine, but for waits. May change with the
  // policy from one question to the next.
  bool asks_later() const noexcept { return questions != nullptr && questions->is_shared(); }

  // Whoever reserved it has gone, and nobody else will settle it.
  void CancelForNobody(ReservationId reservation) {
    if (reservation == ReservationId::kNone || ending) return;
    if (!asks_later()) {
      std::ignore = engine.Cancel(reservation);
    } else {
      questions->Ask({.kind = Question::Kind::kCancel, .reservation = reservation},
                     [](const Told&) {});
    }
  }

  Engine& engine;
  Loop& loop;
  const ServiceState& state;
  std::shared_ptr<const Settings> settings;  // Replaced between two turns of the loop.
  LimitCache limits{};
  SteadyTime last_asked{};
  LoopEngine* questions = nullptr;
  bool ending = false;  // Nothing more may be asked.
};

// One listener on one thread: what its connections share.
struct Door {
  Desk& desk;
  Access access{};
  ListenerMetrics& metrics;
};

}  // namespace weir
