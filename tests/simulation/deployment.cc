#include "deployment.h"

#include <algorithm>
#include <utility>

namespace weir::simulation {
namespace {

using sim::Random;
using sim::RedisServer;
using sim::Weather;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kMasterName[] = "limits";

std::string AddressOf(int number) { return "10.0.0." + std::to_string(number) + ":6379"; }

}  // namespace

const char* NameOf(Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::kSingle:
      return "single";
    case Arrangement::kShards:
      return "shards";
    case Arrangement::kCluster:
      return "cluster";
    case Arrangement::kSentinel:
      return "sentinel";
  }
  return "";
}

Deployment::Deployment(sim::World& world, sim::Network& network, sim::LuaEngine& engine,
                       Arrangement arrangement, Random& random)
    : world_(world),
      network_(network),
      engine_(engine),
      arrangement_(arrangement),
      password_(random.Chance(30) ? "secret" : ""),
      clock_offset_(random.Between(seconds(-5), seconds(5))) {
  fair_.most_latency = random.Between(std::chrono::microseconds(60), milliseconds(3));
  if (random.Chance(25)) fair_.split_percent = 50;
  fair_.largest_piece = random.Chance(50) ? 1 : 40;
  const bool has_replicas =
      arrangement == Arrangement::kCluster || arrangement == Arrangement::kSentinel;
  const int count = arrangement == Arrangement::kShards    ? static_cast<int>(random.Between(2, 3))
                    : arrangement == Arrangement::kCluster ? 3
                                                           : 1;
  for (int i = 1; i <= count; ++i) {
    MakeServer(i);
    masters_.push_back(servers_.back().get());
  }
  if (has_replicas) {
    // One that can take a master's place.
    MakeServer(50);
    replica_ = servers_.back().get();
    replica_->SetReadOnly(true);
  }
  if (arrangement == Arrangement::kCluster) {
    cluster_ = std::make_unique<sim::RedisCluster>(masters_);
    replica_->Join(cluster_.get());
  }
  if (arrangement == Arrangement::kSentinel) {
    for (int i = 0; i < 2; ++i) {
      sentinels_.push_back(std::make_unique<RedisServer>(
          world_, network_, engine_, RedisServer::Options{.address = AddressOf(90 + i)}));
      sentinels_.back()->SetMaster(kMasterName, masters_.front()->address());
      network_.SetWeather(sentinels_.back()->address(), fair_);
    }
  }
}

void Deployment::MakeServer(int number) {
  servers_.push_back(
      std::make_unique<RedisServer>(world_, network_, engine_,
                                    RedisServer::Options{.address = AddressOf(number),
                                                         .password = password_,
                                                         .clock = {.wall_offset = clock_offset_}}));
  network_.SetWeather(servers_.back()->address(), fair_);
}

redis::Settings Deployment::settings() const {
  redis::Settings settings;
  const redis::Credentials credentials{.password = password_};
  switch (arrangement_) {
    case Arrangement::kSentinel:
      settings.layout = redis::Layout::kSentinel;
      settings.master_name = kMasterName;
      settings.master_credentials = credentials;
      break;
    case Arrangement::kCluster:
      settings.layout = redis::Layout::kCluster;
      break;
    default:
      break;
  }
  const auto& sites = arrangement_ == Arrangement::kSentinel ? sentinels_ : servers_;
  for (const std::unique_ptr<RedisServer>& server : sites) {
    if (server.get() == replica_) continue;
    redis::Site site{.endpoint = *Endpoint::Parse(server->address())};
    if (arrangement_ != Arrangement::kSentinel) site.credentials = credentials;
    settings.sites.push_back(std::move(site));
  }
  return settings;
}

RedisServer& Deployment::AnyServer(Random& random) {
  return *masters_[random.Index(masters_.size())];
}

Fault Deployment::PlanFault(Duration begins, Duration ends, Random& random) {
  Drawn drawn = Draw(ends - begins, random);
  world_.At(begins, std::move(drawn.begin));
  if (drawn.end) world_.At(ends, std::move(drawn.end));
  return {.name = drawn.name,
          .begins = begins,
          .ends = ends,
          .forgets = drawn.forgets,
          .moves_clock = drawn.moves_clock,
          .moves_clock_back = drawn.moves_clock_back,
          .is_harmless = drawn.is_harmless};
}

Deployment::Drawn Deployment::Draw(Duration lasts, Random& random) {
  RedisServer& server = AnyServer(random);
  const std::size_t kind = random.Index(10);
  if (kind == 9 && cluster_ != nullptr) return DrawClusterFault(lasts, random);
  if (kind >= 8 && replica_ != nullptr) return DrawFailover(lasts, random);
  if (kind >= 6) return DrawErrorFault(server, random);
  if (kind >= 5) return DrawDataFault(server, random);
  if (kind >= 3) return DrawServerFault(server, lasts, random);
  return DrawNetworkFault(server, random);
}

Deployment::Drawn Deployment::DrawServerFault(RedisServer& server, Duration lasts, Random& random) {
  switch (random.Index(5)) {
    case 0:
      return {.name = "restart, empty",
              .begin = [&server] { server.Crash(); },
              .end = [&server] { server.Start(RedisServer::Data::kLost); },
              .forgets = true};
    case 1:
      return {.name = "restart, with data",
              .begin = [&server] { server.Crash(); },
              .end = [&server] { server.Start(RedisServer::Data::kKept); }};
    case 2:
      return {.name = "pause", .begin = [&server, lasts] { server.Pause(lasts); }, .end = [] {}};
    case 3: {
      const Duration each = random.Between(milliseconds(5), milliseconds(200));
      return {.name = "slow",
              .begin = [&server, each] { server.SetSlowness(each); },
              .end = [&server] { server.SetSlowness({}); }};
    }
    default: {
      const int times = static_cast<int>(random.Between(1, 50));
      return {.name = "scripts flushed again and again",
              .begin =
                  [this, &server, lasts, times] {
                    for (int i = 0; i < times; ++i) {
                      world_.After(lasts * i / times, [&server] { server.core().ForgetScripts(); });
                    }
                  },
              .end = [] {},
              .is_harmless = true};
    }
  }
}

Deployment::Drawn Deployment::DrawErrorFault(RedisServer& server, Random& random) {
  const auto says = [&server](const char* name, const char* error) {
    return Drawn{.name = name,
                 .begin = [&server, error] { server.SetError(error); },
                 .end = [&server] { server.SetError(""); }};
  };
  switch (random.Index(7)) {
    case 0:
      return says("LOADING", "LOADING Redis is loading the dataset in memory");
    case 1:
      return says("BUSY",
                  "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
                  "NOSAVE.");
    case 2:
      return {.name = "READONLY",
              .begin = [&server] { server.SetReadOnly(true); },
              .end = [&server] { server.SetReadOnly(false); }};
    case 3:
      return {.name = "OOM",
              .begin = [&server] { server.SetOutOfMemory(true); },
              .end = [&server] { server.SetOutOfMemory(false); }};
    case 4:
      return {.name = "MISCONF",
              .begin = [&server] { server.SetUnableToSave(true); },
              .end = [&server] { server.SetUnableToSave(false); }};
    case 5:
      return {.name = "NOAUTH",
              .begin = [&server] { server.SetRevoked(true); },
              .end = [&server] { server.SetRevoked(false); }};
    default: {
      const int count = static_cast<int>(random.Between(1, 10));
      return {.name = "garbage",
              .begin = [&server, count] { server.SpoilReplies(count); },
              .end = [&server] { server.SpoilReplies(0); }};
    }
  }
}

Deployment::Drawn Deployment::DrawDataFault(RedisServer& server, Random& random) {
  switch (random.Index(4)) {
    case 0: {
      const int count = static_cast<int>(random.Between(1, 20));
      return {.name = "eviction",
              .begin = [this, &server, count] { server.Evict(count, world_.random()); },
              .forgets = true,
              .is_harmless = true};
    }
    case 1:
      return {.name = "FLUSHALL",
              .begin = [&server] { server.core().keyspace().Clear(); },
              .forgets = true,
              .is_harmless = true};
    case 2:
      return {.name = "garbage under a key",
              .begin =
                  [this, &server] {
                    sim::RedisCore& core = server.core();
                    const std::vector<std::string> keys = core.keyspace().Keys();
                    if (keys.empty()) return;
                    const std::string& key = keys[world_.random().Index(keys.size())];
                    core.Execute({"DEL", key});
                    if (world_.random().Chance(50)) {
                      core.Execute({"LPUSH", key, "not ours"});
                    } else {
                      core.Execute({"SET", key, "nan"});
                    }
                  },
              .forgets = true,
              .is_harmless = true};
    default: {
      const bool back = random.Chance(50);
      const Duration step = random.Between(milliseconds(1), seconds(100)) * (back ? -1 : 1);
      return {.name = back ? "clock set back" : "clock set ahead",
              .begin = [&server, step] { server.MoveClock(step); },
              .end = [&server, step] { server.MoveClock(-step); },
              .moves_clock = true,
              .moves_clock_back = back,
              .is_harmless = true};
    }
  }
}

Deployment::Drawn Deployment::Under(const char* name, RedisServer& server,
                                    const std::function<void(Weather&)>& turn) {
  Weather foul = fair_;
  turn(foul);
  const std::string address = server.address();
  return {.name = name,
          .begin = [this, address, foul] { network_.SetWeather(address, foul); },
          .end = [this, address] { network_.SetWeather(address, fair_); }};
}

Deployment::Drawn Deployment::DrawNetworkFault(RedisServer& server, Random& random) {
  const std::string address = server.address();
  switch (random.Index(9)) {
    case 0:
      return {.name = "reset", .begin = [this, address] { network_.Reset(address); }, .end = [] {}};
    case 1: {
      const auto bytes = static_cast<std::size_t>(random.Between(1, 300));
      return {.name = "reset in the middle of a reply",
              .begin = [this, address, bytes] { network_.ResetAfter(address, bytes); },
              .end = [this, address] { network_.ResetAfter(address, 0); }};
    }
    case 2: {
      Drawn drawn =
          Under("refused", server, [](Weather& it) { it.door = Weather::Door::kRefuses; });
      drawn.begin = [this, address, begin = drawn.begin] {
        begin();
        network_.Reset(address);
      };
      return drawn;
    }
    case 3: {
      Drawn drawn = Under("silent", server, [](Weather& it) { it.door = Weather::Door::kSilent; });
      drawn.begin = [this, address, begin = drawn.begin] {
        begin();
        network_.Reset(address);
      };
      return drawn;
    }
    case 4:
      return Under("cut off", server,
                   [](Weather& it) { it.stalls_to_client = it.stalls_to_server = true; });
    case 5:
      return Under("replies held back", server, [](Weather& it) { it.stalls_to_client = true; });
    case 6:
      return Under("replies lost", server, [](Weather& it) { it.loses_to_client = true; });
    case 7:
      return Under("requests lost", server, [](Weather& it) { it.loses_to_server = true; });
    default: {
      const Duration late = random.Between(milliseconds(5), milliseconds(80));
      return Under("late", server, [late](Weather& it) {
        it.least_latency = late / 2;
        it.most_latency = late;
      });
    }
  }
}

Deployment::Drawn Deployment::DrawClusterFault(Duration lasts, Random& random) {
  if (random.Chance(30)) {
    return {.name = "CLUSTERDOWN",
            .begin = [this] { cluster_->SetDown(true); },
            .end = [this] { cluster_->SetDown(false); }};
  }
  // All slots that have keys go elsewhere, a few keys at a time.
  return {.name = "slots on the move",
          .begin =
              [this, lasts] {
                for (RedisServer* const server : masters_) {
                  for (const std::string& key : server->core().keyspace().Keys()) {
                    RedisServer& to = *masters_[world_.random().Index(masters_.size())];
                    cluster_->BeginMove(redis::SlotOfKey(key), to);
                  }
                }
                for (int i = 1; i < 10; ++i) {
                  world_.After(lasts * i / 10, [this] { cluster_->MoveKeys(3); });
                }
              },
          .end = [this] { cluster_->EndMoves(); },
          .is_harmless = false};
}

Deployment::Drawn Deployment::DrawFailover(Duration lasts, Random& random) {
  // What was written after the copy is lost. The old master comes back as a replica.
  const Duration lag = std::min(random.Between(milliseconds(0), milliseconds(200)), lasts / 2);
  const std::size_t which = random.Index(masters_.size());
  const auto old = std::make_shared<RedisServer*>(nullptr);
  const auto fail = [this, which, old] {
    RedisServer& next = *std::exchange(replica_, nullptr);
    *old = std::exchange(masters_[which], &next);
    (*old)->Crash();
    next.SetReadOnly(false);
    if (cluster_ != nullptr) cluster_->HandOver(**old, next);
    for (const auto& sentinel : sentinels_) sentinel->SetMaster(kMasterName, next.address());
  };
  return {.name = "failover that lost writes",
          .begin =
              [this, which, lag, fail] {
                replica_->CopyDataFrom(*masters_[which]);
                world_.After(lag, fail);
              },
          .end =
              [this, old] {
                replica_ = *old;
                replica_->SetReadOnly(true);
                replica_->Start(RedisServer::Data::kKept);
              },
          .forgets = true};
}

}  // namespace weir::simulation
