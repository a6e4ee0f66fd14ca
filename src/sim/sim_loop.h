// A Loop on virtual time: what is ready at one moment is handled in one turn. Each has a clock of
// its own, which may be set wrongly, run fast or slow, and be moved.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "net/loop.h"
#include "sim/world.h"

namespace weir::sim {

class Network;

// What a machine's clock shows.
struct ClockError {
  Duration wall_offset{0};     // How far the calendar is ahead.
  std::int64_t drift_ppm = 0;  // How much faster it runs, in millionths.
};

class SimLoop final : public Loop {
 public:
  // The network may be null for one that connects to nobody.
  SimLoop(World& world, Network* network, const ClockError& error = {});
  SimLoop(const SimLoop&) = delete;
  SimLoop& operator=(const SimLoop&) = delete;
  ~SimLoop() override;

  Now now() noexcept override { return ReadClock(); }
  Now ReadClock() const noexcept override;
  void Post(std::function<void()> task) override { Ready(std::move(task)); }
  void AtTurnEnd(TurnEnd& told) override;
  void ForgetTurnEnd(TurnEnd& told) noexcept override;
  std::unique_ptr<Timer> MakeTimer(std::function<void()> on_due) override;
  std::unique_ptr<Stream> Connect(const Endpoint& endpoint,
                                  std::function<void(Result<void>)> connected) override;

  World& world() noexcept { return world_; }

  // Runs in the next turn, which is now unless the loop is held up.
  void Ready(std::function<void()> task);
  // The process does nothing until that moment, as if it were stopped.
  void HoldUntil(Duration when);
  bool IsHeld() const noexcept { return held_until_ > world_.elapsed(); }

  // The calendar jumps; the steady clock does not.
  void MoveWall(Duration step) noexcept { error_.wall_offset += step; }
  // How much time has passed by this machine's clock when so much has passed in the world.
  Duration Shown(Duration elapsed) const noexcept {
    return elapsed + elapsed / 1'000'000 * error_.drift_ppm;
  }
  // How long a wait on this machine's clock really is.
  Duration ToWorld(Duration wait) const noexcept;

  // When the world begins: at noon on 2025-06-01.
  static WallTime Beginning() noexcept;

 private:
  class SimTimer;

  void PlanTurn();
  void Turn();

  World& world_;
  Network* const network_;
  ClockError error_;
  std::deque<std::function<void()>> ready_;
  std::vector<TurnEnd*> turn_ends_;
  Duration held_until_{0};
  World::EventId turn_{};
  bool turn_planned_ = false;
  bool in_turn_ = false;
};

}  // namespace weir::sim
