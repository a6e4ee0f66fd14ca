// One node of a fleet: the shipped engine, with the shipped guard and client behind it, on a
// simulated loop; and a witness between guard and client who sees what became of every call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <weir/engine.h>
#include <weir/policy.h>

#include "engine/loop_engine.h"
#include "engine/shared_place.h"
#include "lab/fleet/record.h"
#include "sim/loop_clock.h"
#include "sim/network.h"
#include "sim/sim_loop.h"
#include "store/store.h"

namespace weir::lab {

// Told what goes to the client, and what the client says before the guard hears it.
class Testimony {
 public:
  virtual void OnStoreAsked(const Group& group) = 0;
  virtual void OnStoreAnswered(const Group& group) = 0;

 protected:
  ~Testimony() = default;
};

using MakeStore = std::function<std::unique_ptr<Store>(Store& behind, Loop& loop)>;

class Node {
 public:
  struct Options {
    std::uint64_t seed = 1;
    sim::ClockError clock{};
    // Tests only: what a build with a mistake would have between witness and client.
    MakeStore mistake{};
    std::function<void(std::string_view)> on_notice{};
  };
  Node(sim::World& world, sim::Network& network, Testimony& testimony, Options options);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { Stop(); }

  // An error if the policy's store cannot be used.
  Result<void> Start(const Policy& policy);
  // As if the process ended: what is under way is answered from within.
  void Stop();
  bool is_up() const noexcept { return questions_ != nullptr; }

  Engine& engine() { return *engine_; }
  LoopEngine& questions() { return *questions_; }
  // Adds what the engine has counted to `counts`.
  void AddCounts(OutcomeCounts& counts) const;

  sim::SimLoop loop;

 private:
  std::unique_ptr<Store> MakeWitness(Store& client, Loop& on);

  const Options options_;
  sim::LoopClock clock_;
  const KeyHasher hasher_;
  Testimony& testimony_;
  std::uint64_t starts_ = 0;
  std::optional<Engine> engine_;
  std::unique_ptr<LoopEngine> questions_;
};

}  // namespace weir::lab
