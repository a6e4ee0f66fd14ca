// The servers of a simulated fleet in one of the layouts, and what can be done to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fault_kind.h"
#include "sim/lua_engine.h"
#include "sim/network.h"
#include "sim/redis_cluster.h"
#include "sim/redis_server.h"
#include "sim/world.h"
#include "store/redis/settings.h"

namespace weir::sim {

enum class Arrangement : std::uint8_t { kSingle, kShards, kCluster, kSentinel };
std::string_view NameOf(Arrangement arrangement);

struct DeploymentOptions {
  Arrangement arrangement = Arrangement::kSingle;
  int servers = 1;  // That hold data, without the one that can take another's place.
  std::string password{};
  Duration clock_offset{0};  // All servers think it is so much later than it is.
  Weather fair{};            // While there is no fault.

  static DeploymentOptions Draw(Arrangement arrangement, Random& random);
};

// What is asked for; what is not said is drawn.
struct FaultOrder {
  FaultKind kind{};
  Duration begins{0};
  Duration ends{0};
  std::optional<int> server{};   // From 0 on.
  std::optional<Duration> by{};  // How slow, how late, or how far a clock is moved.
};

// What is known about a fault once it has been chosen.
struct Fault {
  std::string name;
  Duration begins{0};
  Duration ends{0};
  bool forgets = false;
  // Set back when it begins or, if it is set ahead then, when it ends.
  bool moves_clock = false;
  bool moves_clock_back = false;
  bool is_harmless = false;
  std::optional<int> server{};  // None: all of them.
};

class Deployment {
 public:
  Deployment(World& world, Network& network, LuaEngine& engine, const DeploymentOptions& options);
  Deployment(const Deployment&) = delete;
  Deployment& operator=(const Deployment&) = delete;

  Arrangement arrangement() const noexcept { return options_.arrangement; }
  // Where clients find it.
  redis::Settings settings() const;
  // The same as a policy says it.
  std::vector<std::string> addresses() const;
  const std::vector<std::unique_ptr<RedisServer>>& servers() const noexcept { return servers_; }
  Duration clock_offset() const noexcept { return options_.clock_offset; }

  // One that can happen here.
  FaultKind DrawKind(Random& random) const;
  // Sees to it that it happens, and ends. Two faults of one server at a time are one too many.
  Fault Plan(const FaultOrder& order, Random& random);

 private:
  // Done to the server that is meant: who is master is known only when it begins, and what was done
  // to one is undone on the same.
  using Act = std::function<void(RedisServer&)>;
  struct Drawn {
    Act begin{};
    Act end{};
  };

  void MakeServer(int number);
  Drawn Draw(const FaultOrder& order, int which, Random& random);
  Drawn DrawServerFault(const FaultOrder& order, Random& random);
  static Drawn DrawErrorFault(FaultKind kind, Random& random);
  Drawn DrawDataFault(const FaultOrder& order, Random& random);
  Drawn DrawNetworkFault(const FaultOrder& order, Random& random);
  Drawn DrawSlotsMove(Duration lasts);
  Drawn DrawFailover(Duration lasts, int which, Random& random);
  Drawn Under(const std::function<void(Weather&)>& turn);
  Drawn ShutOut(Weather::Door door);

  World& world_;
  Network& network_;
  LuaEngine& engine_;
  const DeploymentOptions options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;  // Those with data.
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
  std::vector<RedisServer*> masters_;
  // Takes the place of a master that fails; null while one is about to, or none is left.
  RedisServer* replica_ = nullptr;
  std::unique_ptr<RedisCluster> cluster_;
};

}  // namespace weir::sim
