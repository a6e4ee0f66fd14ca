// Takes groups to the servers that have their keys. What a turn gathers for one server shares calls
// and leaves at the end of the turn, or, while the server has enough to do, when it has answered
// something: so calls grow with the load, and large ones are cheaper for it. What a server sends
// elsewhere goes there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/loop.h"
#include "store/redis/script_command.h"
#include "store/redis/settings.h"
#include "store/redis/topology.h"
#include "store/store.h"

namespace weir::redis {

// Belongs to the loop's thread.
class Dispatcher final : private TurnEnd, private ScriptCommand::Owner {
 public:
  // How many groups share a call at most. Half as many cost the server a tenth more; more would
  // keep the first waiting for the last, and others from the server.
  static constexpr std::size_t kMostGroups = 64;

  Dispatcher(Loop& loop, const Settings& settings);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  ~Dispatcher();

  // Before anything else.
  void SetTopology(Topology& topology) noexcept { topology_ = &topology; }

  // All keys of the group have this slot, or are on the server that has it.
  void Submit(const ScriptCommand::Item& item, std::uint16_t slot, SteadyTime deadline) noexcept;
  // Of what is submitted now, unless it is part of something.
  SteadyTime Deadline() noexcept { return loop_.now().steady + settings_.timeout; }
  // Another call goes the way of its slot.
  void Send(std::unique_ptr<Call> call, std::uint16_t slot) noexcept;
  // Those that wait for news of the servers may try again.
  void TryParked() noexcept;
  // From now on everything fails.
  void Close() noexcept;

 private:
  struct Open {
    // Whose it is. Only to be compared: by the time it leaves, that may be gone.
    const Node* node;
    std::unique_ptr<ScriptCommand> command;
    SteadyTime began;
  };
  struct Parked {
    std::unique_ptr<ScriptCommand> command;
    SteadyTime due;
  };

  void OnTurnEnd() noexcept override;
  void OnEnded(std::unique_ptr<ScriptCommand> command, Node& node, CallEnd end) noexcept override;

  void Gather(const ScriptCommand::Item& item, Node& node, std::uint16_t slot, SteadyTime deadline);
  // One that has just this.
  std::unique_ptr<ScriptCommand> Begin(const ScriptCommand::Item& item, std::uint16_t slot,
                                       SteadyTime deadline);
  // Whether it has less time than a call should.
  bool IsHurried(SteadyTime deadline) noexcept;
  bool IsFull(const ScriptCommand& command) const noexcept;
  bool HasRoom(const Open& open, const ScriptCommand::Item& item, const Node& node,
               std::uint16_t slot, SteadyTime deadline) noexcept;
  // Whether it does better to wait for more.
  bool IsHeld(const Open& open) const noexcept;
  void SendOpen(std::size_t index);
  void SendHeldForLong();
  void Recycle(std::unique_ptr<ScriptCommand> command);
  // Whether it was sent on its way again.
  bool TryElsewhere(std::unique_ptr<ScriptCommand>& command, Node& node, const CallEnd& end);
  void Park(std::unique_ptr<ScriptCommand> command, Duration wait);
  void Tick();
  void Fail(std::unique_ptr<ScriptCommand> command, const Error& error);
  void FailUnplaced(std::unique_ptr<ScriptCommand> command, const Obstacle& obstacle);
  void WakeForParked();

  Loop& loop_;
  const Settings& settings_;
  const Duration longest_hold_;
  Topology* topology_ = nullptr;
  std::vector<Open> open_;  // The oldest first.
  std::vector<Parked> parked_;
  std::vector<std::unique_ptr<ScriptCommand>> spare_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Timer> hold_timer_;
  bool is_holding_ = false;  // The timer runs.
  bool is_closed_ = false;
};

}  // namespace weir::redis
