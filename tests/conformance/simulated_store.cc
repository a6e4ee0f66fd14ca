#include "simulated_store.h"

#include <algorithm>
#include <utility>

#include "script_engine.h"

namespace weir::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// More than one group needs, by far.
constexpr int kMostEvents = 100'000;
// As much of the time between two groups really passes, for timers that should have been stopped:
// more than calls may take.
constexpr Duration kMostIdle = milliseconds(60);

class Counted final : public Completion {
 public:
  Counted(std::size_t count, Completion& told) : left_(count), told_(told) {}

  void OnDecided(Group& group) noexcept override {
    --left_;
    told_.OnDecided(group);
  }
  bool IsDone() const { return left_ == 0; }

 private:
  std::size_t left_;
  Completion& told_;
};

}  // namespace

SimulatedStore::SimulatedStore(Servers servers, std::uint64_t seed, WallTime start)
    : world_(seed),
      network_(world_),
      client_ahead_(world_.random().Between(seconds(-5), seconds(5))),
      loop_(world_, &network_) {
  MakeServers(servers);
  MoveClocks(start);
  commons_ = std::make_unique<redis::Commons>(settings_, redis::Commons::Options{.seed = seed | 1});
  store_ = std::make_unique<redis::RedisStore>(loop_, settings_, hasher_, *commons_);
  // All are connected, and the cluster is known.
  world_.RunFor(milliseconds(10));
}

void SimulatedStore::MakeServers(Servers servers) {
  sim::Weather weather{.least_latency = Duration(0), .most_latency = Duration(0)};
  if (world_.random().Chance(25)) weather.split_percent = 50;
  weather.largest_piece = 40;
  std::vector<sim::RedisServer*> nodes;
  for (int i = 1; i <= (servers == Servers::kOne ? 1 : 3); ++i) {
    const std::string address = "10.0.0." + std::to_string(i) + ":6379";
    servers_.push_back(std::make_unique<sim::RedisServer>(
        world_, network_, ScriptEngine(), sim::RedisServer::Options{.address = address}));
    nodes.push_back(servers_.back().get());
    network_.SetWeather(address, weather);
    settings_.sites.push_back({.endpoint = *Endpoint::Parse(address)});
  }
  if (servers != Servers::kCluster) return;
  cluster_ = std::make_unique<sim::RedisCluster>(nodes);
  settings_.layout = redis::Layout::kCluster;
}

void SimulatedStore::MoveClocks(WallTime wall) {
  for (const auto& server : servers_) server->MoveClock(wall - server->loop().ReadClock().wall);
  loop_.MoveWall(wall + client_ahead_ - loop_.ReadClock().wall);
}

void SimulatedStore::Submit(std::span<Group> groups, Now now, Completion& completion) noexcept {
  const Duration step = now.wall - servers_.front()->loop().ReadClock().wall;
  if (step > Duration(0)) world_.RunFor(std::min(step, kMostIdle));
  MoveClocks(now.wall);
  Counted counted(groups.size(), completion);
  store_->Submit(groups, loop_.now(), counted);
  for (int i = 0; i < kMostEvents && !counted.IsDone(); ++i) world_.Step();
}

std::string SimulatedStore::Problem() {
  for (const auto& server : servers_) {
    sim::Keyspace& keyspace = server->core().keyspace();
    for (const std::string& key : keyspace.Keys()) {
      if (!keyspace.ExpiresAt(key)) return "no expiry: " + key;
    }
  }
  for (const EndpointReport& report : commons_->Report()) {
    for (std::size_t i = 0; i < kStoreFaults; ++i) {
      if (report.faults[i] == 0) continue;
      return report.name + ": " + std::string(NameOf(static_cast<StoreFault>(i)));
    }
  }
  return "";
}

}  // namespace weir::conformance
