// The client for Redis on a simulated loop, network and servers, as a Store that has decided when
// Submit returns. Nothing takes any time there, so every group is decided at exactly the Now of its
// Submit: the clocks of all machines are moved to it first, however far that is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "sim/network.h"
#include "sim/redis_cluster.h"
#include "sim/redis_server.h"
#include "sim/sim_loop.h"
#include "sim/world.h"
#include "store/redis/redis_store.h"
#include "store/store.h"

namespace weir::conformance {

enum class Servers : std::uint8_t { kOne, kThreeShards, kCluster };

class SimulatedStore final : public Store {
 public:
  // One seed makes one world. It begins at `start`.
  SimulatedStore(Servers servers, std::uint64_t seed, WallTime start);
  SimulatedStore(const SimulatedStore&) = delete;
  SimulatedStore& operator=(const SimulatedStore&) = delete;
  ~SimulatedStore() override = default;

  std::uint64_t Hash(std::string_view key) const noexcept override { return hasher_(key); }
  // The clock must not go back: what has expired is gone.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;

  // What nobody was told: a key that would stay for ever, a value of ours taken for somebody
  // else's, a call that failed. Or nothing.
  std::string Problem();
  std::vector<std::unique_ptr<sim::RedisServer>>& servers() { return servers_; }

 private:
  void MakeServers(Servers servers);
  void MoveClocks(WallTime wall);

  sim::World world_;
  sim::Network network_;
  std::vector<std::unique_ptr<sim::RedisServer>> servers_;
  std::unique_ptr<sim::RedisCluster> cluster_;
  // How far the client's calendar is ahead of the servers'; nothing may depend on it.
  const Duration client_ahead_;
  sim::SimLoop loop_;
  const KeyHasher hasher_{HashKind::kXxh3, 1};
  redis::Settings settings_;
  std::unique_ptr<redis::Commons> commons_;
  std::unique_ptr<redis::RedisStore> store_;
};

}  // namespace weir::conformance
