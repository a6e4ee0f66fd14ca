#include "server/store_check.h"

#include <algorithm>
#include <memory>

#include <weir/clock.h>

#include "engine/shared_place.h"
#include "net/epoll_loop.h"
#include "policy/policy_compiler.h"

namespace weir {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(5);

bool IsReached(const StoreHealth& health) {
  return !health.servers.empty() &&
         std::ranges::all_of(health.servers, [](const auto& one) { return one.connections > 0; });
}

// Runs the loop until all servers are reached, or it is too late.
StoreHealth TryToReach(SharedPlace& place, Duration longest) {
  Clock& clock = SystemClock::Shared();
  EpollLoop loop(clock);
  const auto store = place.OpenOn(loop, SharedPlace::Heartbeat::kNo);
  const SteadyTime deadline = clock.Read().steady + longest;
  StoreHealth health;
  std::unique_ptr<Timer> look;
  look = loop.MakeTimer([&] {
    const SteadyTime now = loop.now().steady;
    health = place.Health(now);
    if (IsReached(health) || now >= deadline) return loop.Stop();
    look->Start(kLookEvery);
  });
  look->Start(kLookEvery);
  loop.Run();
  look.reset();
  return health;
}

}  // namespace

std::vector<std::string> FindUnreachableServers(
    const Policy& policy, const std::function<void(std::string_view)>& notice) {
  std::vector<std::string> lines;
  if (!HasSharedStore(policy.spec())) return lines;
  const auto place = MakeRedisPlace(policy, {.on_notice = notice});
  if (!place) return lines;
  const RedisSpec& redis = policy.spec().redis;
  const StoreHealth health = TryToReach(**place, redis.connect_timeout + redis.timeout);
  for (const StoreHealth::Server& server : health.servers) {
    if (server.connections > 0) continue;
    lines.push_back("store: " + server.name +
                    " was not ready in time; the service starts without it, and rules do as "
                    "on_store_failure says");
  }
  return lines;
}

}  // namespace weir
