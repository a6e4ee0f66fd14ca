// The servers of a simulated fleet in one of the layouts, and what can be done to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/lua_engine.h"
#include "sim/network.h"
#include "sim/redis_cluster.h"
#include "sim/redis_server.h"
#include "sim/world.h"
#include "store/redis/settings.h"

namespace weir::simulation {

enum class Arrangement : std::uint8_t { kSingle, kShards, kCluster, kSentinel };
const char* NameOf(Arrangement arrangement);

// What is known about a fault once it has been chosen.
struct Fault {
  std::string name;
  Duration begins{0};
  Duration ends{0};
  // The servers may have less in them than they were told, so each key may have one burst more.
  bool forgets = false;
  // Set back when it begins or, if it is set ahead then, when it ends.
  bool moves_clock = false;
  bool moves_clock_back = false;
  // Well-behaved clients do not notice.
  bool is_harmless = false;
};

class Deployment {
 public:
  Deployment(sim::World& world, sim::Network& network, sim::LuaEngine& engine,
             Arrangement arrangement, sim::Random& random);
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  Arrangement arrangement() const noexcept { return arrangement_; }
  // Where clients find it.
  redis::Settings settings() const;
  const std::vector<std::unique_ptr<sim::RedisServer>>& servers() const noexcept {
    return servers_;
  }
  // All servers think it is so much later than it is.
  Duration clock_offset() const noexcept { return clock_offset_; }

  // Plans one fault, drawn at random, and its end.
  Fault PlanFault(Duration begins, Duration ends, sim::Random& random);

 private:
  using Act = std::function<void()>;
  struct Drawn {
    const char* name;
    Act begin{};
    Act end{};
    bool forgets = false;
    bool moves_clock = false;
    bool moves_clock_back = false;
    bool is_harmless = false;
  };

  void MakeServer(int number);
  sim::RedisServer& AnyServer(sim::Random& random);
  Drawn Draw(Duration lasts, sim::Random& random);
  Drawn DrawServerFault(sim::RedisServer& server, Duration lasts, sim::Random& random);
  Drawn DrawErrorFault(sim::RedisServer& server, sim::Random& random);
  Drawn DrawDataFault(sim::RedisServer& server, sim::Random& random);
  Drawn DrawNetworkFault(sim::RedisServer& server, sim::Random& random);
  Drawn DrawClusterFault(Duration lasts, sim::Random& random);
  Drawn DrawFailover(Duration lasts, sim::Random& random);
  Drawn Under(const char* name, sim::RedisServer& server,
              const std::function<void(sim::Weather&)>& turn);

  sim::World& world_;
  sim::Network& network_;
  sim::LuaEngine& engine_;
  const Arrangement arrangement_;
  const std::string password_;
  const Duration clock_offset_;
  sim::Weather fair_{};
  std::vector<std::unique_ptr<sim::RedisServer>> servers_;  // Those with data.
  std::vector<std::unique_ptr<sim::RedisServer>> sentinels_;
  std::vector<sim::RedisServer*> masters_;
  sim::RedisServer* replica_ = nullptr;  // Takes the place of a master that fails.
  std::unique_ptr<sim::RedisCluster> cluster_;
};

}  // namespace weir::simulation
