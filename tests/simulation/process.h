// One process of a simulated fleet: the shipped client and guard on a simulated loop, and a witness
// between the two who sees what became of every call.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "sim/loop_clock.h"
#include "sim/network.h"
#include "sim/sim_loop.h"
#include "store/guard/guard.h"
#include "store/redis/redis_store.h"

namespace weir::simulation {

// Mistakes that the judge must find.
enum class Mistake : std::uint8_t {
  kNone,
  kRepeatsWhatTimedOut,  // The client asks again, though the first call may have taken effect.
  kReplaysAfterOutage,   // What the guard let through is charged when the store is back.
  kAnswersTwice,
  kForgetsAnAnswer,
  kLetsThroughWhenClosed,
  kKeepsWhatIsCancelled,
  kRefundsTwice,
};

// Told what the store said to the guard.
class Testimony {
 public:
  virtual void OnStoreAnswered(Group& group) = 0;

 protected:
  ~Testimony() = default;
};

class Witness final : public Store, private Completion {
 public:
  Witness(Store& behind, Testimony& testimony, Mistake mistake)
      : behind_(behind), testimony_(testimony), mistake_(mistake) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  // What was forgotten is told at last: else it would be kept for ever.
  ~Witness() override {
    if (forgotten_ != nullptr) forgotten_completion_->OnDecided(*forgotten_);
  }

  std::uint64_t Hash(std::string_view key) const noexcept override { return behind_.Hash(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;

 private:
  struct Asked {
    Completion* completion;
    Now now;
    bool was_repeated;
  };
  void OnDecided(Group& group) noexcept override;
  // True if the answer has not come yet after all.
  bool MakeMistake(Group& group, const Asked& asked);

  Store& behind_;
  Testimony& testimony_;
  const Mistake mistake_;
  std::unordered_map<Group*, Asked> asked_;
  int answers_ = 0;
  Group* forgotten_ = nullptr;
  Completion* forgotten_completion_ = nullptr;
};

class Process {
 public:
  struct Options {
    redis::Settings settings{};
    int fleet_size = 0;
    std::uint64_t seed = 1;
    sim::ClockError clock{};
    Mistake mistake = Mistake::kNone;
    std::function<void(std::string_view)> on_notice{};
  };
  Process(sim::World& world, sim::Network& network, Testimony& testimony, const Options& options);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() = default;

  sim::SimLoop loop;

 private:
  sim::LoopClock clock_;
  const redis::Settings settings_;

 public:
  redis::Commons commons;
  Guard guard;

 private:
  redis::RedisStore redis_;
  Witness witness_;

 public:
  GuardedStore store;

 private:
  FleetCounter counter_;
};

}  // namespace weir::simulation
