// How those who wait ask a store that takes a while: on its thread, where many are asked for at a
// time, and nobody waits for anybody's answer but one's own.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "engine/blocking_store.h"
#include "engine/engine_state.h"

namespace weir {

// One attempt. Tells the wait of this id when it is over; if nobody wants to know any more, it
// gives back what it took.
class Engine::State::SharedAttempt final : public BlockingStore::Errand {
 public:
  struct Heard final : Waiter::Heard {
    Attempted attempted;
  };

  // The store of this version is asked, which is shared.
  SharedAttempt(State& state, std::shared_ptr<const PolicyVersion> version,
                const Patience& patience, WaitId id);

  // Before it is started. Unless the request counts, what was heard is all there is.
  Call::Course course() const noexcept { return course_; }
  // Whoever is told that it is over has it.
  std::shared_ptr<Heard> heard() const noexcept { return heard_; }
  // Makes up its mind by what another heard, rather than ask. True if denials are left to be
  // counted; then it should be started, though nobody waits for it.
  bool Suppose(const Heard& other, Duration age);

  void Begin() noexcept override;
  void OnDecided(Group& group) noexcept override;

 private:
  void CountDenials() noexcept;
  void Finish() noexcept;

  State& state_;
  const std::shared_ptr<AttemptReports> reports_;
  const std::shared_ptr<const PolicyVersion> version_;
  const std::shared_ptr<Heard> heard_ = std::make_shared<Heard>();
  const Now now_;
  const Duration rest_;
  const bool behind_;
  const WaitId id_;
  Call call_;  // After it was prepared nothing of the request is needed.
  Call::Course course_;
  bool supposed_ = false;
  bool is_last_ = false;
  std::array<Receipt, kMaxGroupCharges> receipts_;
  SteadyTime asked_at_{};
};

// Takes back what an attempt took.
class Engine::State::SharedGiveBack final : public BlockingStore::Errand {
 public:
  SharedGiveBack(std::shared_ptr<const PolicyVersion> version,
                 std::shared_ptr<AttemptReports> reports, Attempted attempted, Now now);

  void Begin() noexcept override;
  void OnDecided(Group& group) noexcept override;

 private:
  void GiveUpPlaces() noexcept;
  void Finish() noexcept;

  const std::shared_ptr<AttemptReports> reports_;
  const std::shared_ptr<const PolicyVersion> version_;
  const Attempted attempted_;
  const Now now_;
  InlineVector<Charge, kMaxGroupCharges> charges_;
  std::array<Decision, kMaxGroupCharges> decisions_;
  std::array<std::uint64_t, kMaxGroupCharges> settled_;
  Group group_;
};

}  // namespace weir
