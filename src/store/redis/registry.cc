#include "store/redis/registry.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/mix.h"

namespace weir::redis {
namespace {

std::uint64_t RandomSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

Sightings& ServerRecord::Lend() {
  const std::scoped_lock lock(mutex_);
  if (!free_.empty()) {
    Sightings* const lent = free_.back();
    free_.pop_back();
    return *lent;
  }
  sightings_.push_back(std::make_unique<Sightings>());
  free_.reserve(sightings_.size());
  return *sightings_.back();
}

void ServerRecord::GiveBack(Sightings& sightings) noexcept {
  sightings.connections.store(0, std::memory_order_relaxed);
  sightings.in_flight.store(0, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  free_.push_back(&sightings);
}

EndpointReport ServerRecord::Report() const {
  EndpointReport report{.name = name_, .breaker_open = !breaker_.IsClosed()};
  for (std::size_t i = 0; i < kStoreFaults; ++i) report.faults[i] = faults_[i].Value();
  const std::scoped_lock lock(mutex_);
  for (const auto& seen : sightings_) {
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) report.times[i] += seen->times.count(i);
    report.time_sum_nanoseconds += seen->times.sum_nanoseconds();
    report.connections += seen->connections.load(std::memory_order_relaxed);
    report.in_flight += seen->in_flight.load(std::memory_order_relaxed);
  }
  return report;
}

bool ServerRecord::is_idle() const {
  const std::scoped_lock lock(mutex_);
  return free_.size() == sightings_.size();
}

Registry::Registry(const Settings& settings, Commons::Options options)
    : slow_(settings.timeout / 2),
      options_(std::move(options)),
      seed_(options_.seed == 0 ? RandomSeed() : options_.seed) {}

std::shared_ptr<ServerRecord> Registry::Find(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto found = servers_.find(name);
  if (found != servers_.end()) return found->second;
  if (servers_.size() >= kMostServers) {
    std::erase_if(servers_, [](const auto& server) { return server.second->is_idle(); });
  }
  auto record =
      std::make_shared<ServerRecord>(name, Breaker::Options{.slow = slow_, .seed = NextSeed()});
  servers_.emplace(name, record);
  return record;
}

std::vector<EndpointReport> Registry::Report() const {
  const std::scoped_lock lock(mutex_);
  std::vector<EndpointReport> reports;
  reports.reserve(servers_.size());
  for (const auto& [name, server] : servers_) reports.push_back(server->Report());
  return reports;
}

void Registry::Tell(const std::string& server, const std::string& notice) {
  const std::string text = server + ": " + notice;
  {
    const std::scoped_lock lock(mutex_);
    if (told_.size() >= 4 * kMostServers) told_.clear();
    if (!told_.insert(text).second) return;
  }
  if (options_.on_notice) options_.on_notice(text);
}

bool Registry::TakeCheck(const std::string& server, std::string_view run) {
  const std::scoped_lock lock(mutex_);
  const auto [at, is_new] = checked_.try_emplace(server, run);
  if (is_new) return true;
  if (at->second == run) return false;
  at->second = run;
  return true;
}

std::uint64_t Registry::NextSeed() noexcept {
  // Never zero, which would stand for any.
  return Mix(seed_.fetch_add(1, std::memory_order_relaxed)) | 1;
}

}  // namespace weir::redis
