// What the threads of a process know in common about each server, and what people were told.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/breaker.h"
#include "store/endpoint_report.h"
#include "store/redis/redis_store.h"
#include "telemetry/counter.h"
#include "telemetry/histogram.h"

namespace weir::redis {

// What one thread has seen of a server: it writes, others read.
struct Sightings {
  Histogram times;  // Of calls that were answered.
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> in_flight{0};
};

// One server. Thread-safe.
class ServerRecord {
 public:
  ServerRecord(std::string name, const Breaker::Options& options)
      : name_(std::move(name)), breaker_(options) {}

  const std::string& name() const noexcept { return name_; }
  Breaker& breaker() noexcept { return breaker_; }
  void Count(StoreFault fault, std::uint64_t calls) noexcept {
    faults_[static_cast<std::size_t>(fault)].Add(calls);
  }

  // For one thread, until it gives them back; counts stay.
  Sightings& Lend();
  void GiveBack(Sightings& sightings) noexcept;

  EndpointReport Report() const;
  bool is_idle() const;

 private:
  const std::string name_;
  Breaker breaker_;
  std::array<Counter, kStoreFaults> faults_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Sightings>> sightings_;
  std::vector<Sightings*> free_;
};

// Thread-safe.
class Registry {
 public:
  Registry(const Settings& settings, Commons::Options options);

  // The one of this name, for as long as somebody has it.
  std::shared_ptr<ServerRecord> Find(const std::string& name);
  std::vector<EndpointReport> Report() const;

  // Says something about a server to people, unless the same has been said before.
  void Tell(const std::string& server, const std::string& notice);
  // Whether this run of the server is yet to be looked at. Once.
  bool TakeCheck(const std::string& server, std::string_view run);

  // Of a random source: another for each who asks, the same in every run of the same seed.
  std::uint64_t NextSeed() noexcept;

 private:
  // Servers that nobody has any more are remembered up to here.
  static constexpr std::size_t kMostServers = 1'024;

  const Duration slow_;
  const Commons::Options options_;
  std::atomic<std::uint64_t> seed_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<ServerRecord>> servers_;
  std::set<std::string> told_;
  std::map<std::string, std::string> checked_;  // Server to its run.
};

}  // namespace weir::redis
