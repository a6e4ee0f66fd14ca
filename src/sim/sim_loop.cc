#include "sim/sim_loop.h"

#include <algorithm>
#include <utility>

#include "sim/network.h"

namespace weir::sim {

class SimLoop::SimTimer final : public Timer {
 public:
  SimTimer(SimLoop& loop, std::function<void()> on_due)
      : loop_(loop), on_due_(std::make_shared<std::function<void()>>(std::move(on_due))) {}
  SimTimer(const SimTimer&) = delete;
  SimTimer& operator=(const SimTimer&) = delete;
  ~SimTimer() override { Stop(); }

  void Start(Duration after) override {
    Stop();
    due_ = std::make_shared<bool>(true);
    event_ = loop_.world_.After(loop_.ToWorld(std::max(after, Duration(0))), [this, due = due_] {
      // It may be stopped between its moment and the turn that would tell of it.
      loop_.Ready([due, on_due = on_due_] {
        if (std::exchange(*due, false)) (*on_due)();
      });
    });
  }
  void Stop() noexcept override {
    loop_.world_.Cancel(std::exchange(event_, {}));
    if (due_ != nullptr) *due_ = false;
  }

 private:
  SimLoop& loop_;
  std::shared_ptr<std::function<void()>> on_due_;  // Stays while it runs, whoever ends the timer.
  std::shared_ptr<bool> due_;
  World::EventId event_{};
};

SimLoop::SimLoop(World& world, Network* network, const ClockError& error)
    : world_(world), network_(network), error_(error) {}

SimLoop::~SimLoop() { world_.Cancel(turn_); }

WallTime SimLoop::Beginning() noexcept { return WallTime(std::chrono::seconds(1'748'779'200)); }

Now SimLoop::ReadClock() const noexcept {
  const Duration shown = Shown(world_.elapsed());
  // The steady clock has run for a while before the world began.
  return {.steady = SteadyTime(shown + std::chrono::hours(1)),
          .wall = Beginning() + shown + error_.wall_offset};
}

Duration SimLoop::ToWorld(Duration wait) const noexcept {
  // Rounded up, so that a timer is never early by its own clock.
  return error_.drift_ppm == 0 ? wait : wait - wait / 1'000'000 * error_.drift_ppm + Duration(1000);
}

void SimLoop::Ready(std::function<void()> task) {
  ready_.push_back(std::move(task));
  PlanTurn();
}

void SimLoop::PlanTurn() {
  if (turn_planned_) return;
  turn_planned_ = true;
  turn_ = world_.At(std::max(held_until_, world_.elapsed()), [this] { Turn(); });
}

void SimLoop::HoldUntil(Duration when) {
  held_until_ = std::max(held_until_, when);
  if (!std::exchange(turn_planned_, false)) return;
  world_.Cancel(turn_);
  PlanTurn();
}

void SimLoop::Turn() {
  turn_planned_ = false;
  if (IsHeld()) return PlanTurn();
  // What becomes ready meanwhile belongs to the next turn.
  in_turn_ = true;
  std::deque<std::function<void()>> tasks = std::exchange(ready_, {});
  for (std::function<void()>& task : tasks) std::exchange(task, nullptr)();
  while (!turn_ends_.empty()) {
    TurnEnd* const told = turn_ends_.front();
    turn_ends_.erase(turn_ends_.begin());
    told->OnTurnEnd();
  }
  in_turn_ = false;
}

void SimLoop::AtTurnEnd(TurnEnd& told) {
  if (std::ranges::find(turn_ends_, &told) == turn_ends_.end()) turn_ends_.push_back(&told);
  // Whoever asks from outside of a turn is told at the end of the next.
  if (!in_turn_) PlanTurn();
}

void SimLoop::ForgetTurnEnd(TurnEnd& told) noexcept { std::erase(turn_ends_, &told); }

std::unique_ptr<Timer> SimLoop::MakeTimer(std::function<void()> on_due) {
  return std::make_unique<SimTimer>(*this, std::move(on_due));
}

std::unique_ptr<Stream> SimLoop::Connect(const Endpoint& endpoint,
                                         std::function<void(Result<void>)> connected) {
  return network_->Connect(*this, endpoint, std::move(connected));
}

}  // namespace weir::sim
