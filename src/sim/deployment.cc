#include "sim/deployment.h"

#include <utility>

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kMasterName[] = "limits";

std::string AddressOf(int number) { return "10.0.0." + std::to_string(number) + ":6379"; }

}  // namespace

std::string_view NameOf(Arrangement arrangement) {
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

DeploymentOptions DeploymentOptions::Draw(Arrangement arrangement, Random& random) {
  DeploymentOptions options{.arrangement = arrangement};
  if (arrangement == Arrangement::kShards) options.servers = static_cast<int>(random.Between(2, 3));
  if (arrangement == Arrangement::kCluster) options.servers = 3;
  if (random.Chance(30)) options.password = "secret";
  options.clock_offset = random.Between(seconds(-5), seconds(5));
  options.fair.most_latency = random.Between(std::chrono::microseconds(60), milliseconds(3));
  if (random.Chance(25)) options.fair.split_percent = 50;
  options.fair.largest_piece = random.Chance(50) ? 1 : 40;
  return options;
}

Deployment::Deployment(World& world, Network& network, LuaEngine& engine,
                       const DeploymentOptions& options)
    : world_(world), network_(network), engine_(engine), options_(options) {
  const bool has_replica =
      arrangement() == Arrangement::kCluster || arrangement() == Arrangement::kSentinel;
  for (int i = 1; i <= options_.servers; ++i) {
    MakeServer(i);
    masters_.push_back(servers_.back().get());
  }
  if (has_replica) {
    // One that can take a master's place.
    MakeServer(50);
    replica_ = servers_.back().get();
    replica_->SetReadOnly(true);
  }
  if (arrangement() == Arrangement::kCluster) {
    cluster_ = std::make_unique<RedisCluster>(masters_);
    replica_->Join(cluster_.get());
  }
  if (arrangement() == Arrangement::kSentinel) {
    for (int i = 0; i < 2; ++i) {
      sentinels_.push_back(std::make_unique<RedisServer>(
          world_, network_, engine_, RedisServer::Options{.address = AddressOf(90 + i)}));
      sentinels_.back()->SetMaster(kMasterName, masters_.front()->address());
      network_.SetWeather(sentinels_.back()->address(), options_.fair);
    }
  }
}

void Deployment::MakeServer(int number) {
  servers_.push_back(std::make_unique<RedisServer>(
      world_, network_, engine_,
      RedisServer::Options{.address = AddressOf(number),
                           .password = options_.password,
                           .clock = {.wall_offset = options_.clock_offset}}));
  network_.SetWeather(servers_.back()->address(), options_.fair);
}

redis::Settings Deployment::settings() const {
  redis::Settings settings;
  const redis::Credentials credentials{.password = options_.password};
  const bool has_sentinels = arrangement() == Arrangement::kSentinel;
  if (has_sentinels) {
    settings.layout = redis::Layout::kSentinel;
    settings.master_name = kMasterName;
    settings.master_credentials = credentials;
  } else if (arrangement() == Arrangement::kCluster) {
    settings.layout = redis::Layout::kCluster;
  }
  for (const std::unique_ptr<RedisServer>& server : has_sentinels ? sentinels_ : servers_) {
    if (server.get() == replica_) continue;
    redis::Site site{.endpoint = *Endpoint::Parse(server->address())};
    if (!has_sentinels) site.credentials = credentials;
    settings.sites.push_back(std::move(site));
  }
  return settings;
}

std::vector<std::string> Deployment::addresses() const {
  const std::string login = options_.password.empty() ? "" : ":" + options_.password + "@";
  std::string all;
  std::vector<std::string> each;
  for (const redis::Site& site : settings().sites) {
    all += (all.empty() ? "" : ",") + site.endpoint.ToString();
    each.push_back("redis://" + login + site.endpoint.ToString());
  }
  if (arrangement() == Arrangement::kCluster) return {"redis+cluster://" + login + all};
  if (arrangement() == Arrangement::kSentinel) {
    return {"redis+sentinel://" + login + all + "/" + kMasterName};
  }
  return each;
}

Deployment::Drawn Deployment::DrawFailover(Duration lasts, int which, Random& random) {
  // What was written after the copy is lost. The old master comes back as a replica.
  const Duration lag = std::min(random.Between(milliseconds(0), milliseconds(200)), lasts / 2);
  const auto place = static_cast<std::size_t>(which);
  const auto next = std::make_shared<RedisServer*>(nullptr);
  const auto fail = [this, place, next](RedisServer& old) {
    masters_[place] = *next;
    old.Crash();
    (*next)->SetReadOnly(false);
    if (cluster_ != nullptr) cluster_->HandOver(old, **next);
    for (const auto& sentinel : sentinels_) sentinel->SetMaster(kMasterName, (*next)->address());
  };
  return {.begin =
              [this, lag, next, fail](RedisServer& old) {
                if (replica_ == nullptr) return;  // There is nobody left.
                // From here on it stands in for nobody else.
                *next = std::exchange(replica_, nullptr);
                (*next)->CopyDataFrom(old);
                world_.After(lag, [fail, &old] { fail(old); });
              },
          .end =
              [this, next](RedisServer& old) {
                if (*next == nullptr) return;
                replica_ = &old;
                replica_->SetReadOnly(true);
                replica_->Start(RedisServer::Data::kKept);
              }};
}

}  // namespace weir::sim
