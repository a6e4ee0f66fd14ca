// State in Redis or Valkey, with the guard before it: what a policy's `store` says, made real.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/shared_place.h"
#include "policy/compiled_policy.h"
#include "policy/file_text.h"
#include "policy/keyed_hash.h"
#include "policy/policy_compiler.h"
#include "policy/sha256.h"
#include "policy/store_address.h"
#include "store/guard/guard.h"
#include "store/redis/redis_store.h"
#include "telemetry/histogram.h"

namespace weir {
namespace {

using MakeWitness = std::function<std::unique_ptr<Store>(Store& client, Loop& loop)>;

// On one loop. The guard ends first; what is under way then is decided when the store ends.
class GuardedRedis final : public Store {
 public:
  GuardedRedis(Loop& loop, const redis::Settings& settings, redis::Commons& commons, Guard& guard,
               SharedPlace::Heartbeat heartbeat, const MakeWitness& witness)
      : redis_(loop, settings, guard.hasher(), commons),
        guarded_(between_.Before(redis_, loop, witness), guard, loop) {
    if (heartbeat == SharedPlace::Heartbeat::kYes) counter_.emplace(redis_, guard, loop);
  }

  std::uint64_t Hash(std::string_view key) const noexcept override { return guarded_.Hash(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    guarded_.Submit(groups, now, completion);
  }
  bool IsSettled() noexcept override { return redis_.IsSettled(); }

 private:
  // Hears what the client says at its end, so it ends after it.
  struct Between {
    std::unique_ptr<Store> witness;

    Store& Before(Store& client, Loop& loop, const MakeWitness& make) {
      if (!make) return client;
      witness = make(client, loop);
      return *witness;
    }
  };

  Between between_;
  redis::RedisStore redis_;
  GuardedStore guarded_;
  std::optional<FleetCounter> counter_;
};

StoreHealth::Server ServerOf(EndpointReport report) {
  StoreHealth::Server server{.name = std::move(report.name),
                             .breaker_open = report.breaker_open,
                             .time_sum = Duration(report.time_sum_nanoseconds),
                             .connections = report.connections,
                             .in_flight = report.in_flight};
  for (std::size_t i = 0; i < report.faults.size(); ++i) {
    server.faults.push_back({NameOf(static_cast<StoreFault>(i)), report.faults[i]});
  }
  for (std::size_t i = 0; i < report.times.size(); ++i) {
    const bool last = i + 1 == report.times.size();
    const Duration bound = last ? kNever : Duration(Histogram::Bound(i));
    server.times.push_back({bound, report.times[i]});
  }
  return server;
}

using Notice = std::function<void(std::string_view)>;

class RedisPlace final : public SharedPlace {
 public:
  // What does not come from the policy.
  struct Around {
    Notice on_notice{};
    std::uint64_t seed = 0;
    MakeWitness witness{};
  };
  RedisPlace(redis::Settings settings, std::string files, Guard guard, Around around)
      : settings_(std::move(settings)),
        files_(std::move(files)),
        guard_(std::move(guard)),
        around_(std::move(around)),
        commons_(settings_, {.on_notice = around_.on_notice, .seed = around_.seed}) {}

  const KeyHasher& hasher() const noexcept override { return guard_.hasher(); }
  std::unique_ptr<Store> OpenOn(Loop& loop, Heartbeat heartbeat) override {
    return std::make_unique<GuardedRedis>(loop, settings_, commons_, guard_, heartbeat,
                                          around_.witness);
  }
  Duration timeout() const noexcept override { return settings_.timeout; }
  // Servers that have to be asked for the others take another connection.
  Duration time_to_settle() const noexcept override {
    return 2 * settings_.connect_timeout + settings_.timeout;
  }
  void SetFleetSize(int size) noexcept override { guard_.SetFleetSize(size); }
  CapChange SetCap(std::size_t bytes, Now now) noexcept override {
    return guard_.SetCap(bytes, now);
  }
  void Leave() noexcept override { guard_.Retire(); }
  // Said in other words it would be another policy.
  bool IsFor(const Policy& policy) const override;
  Result<std::unique_ptr<SharedPlace>> Successor(const Policy& policy) override;
  StoreHealth Health(SteadyTime now) const override {
    const Guard::Stats stats = guard_.stats();
    StoreHealth health{.shared = true,
                       .degraded = guard_.IsDegraded(),
                       .degraded_for = guard_.DegradedFor(now),
                       .degraded_times = stats.degraded_times,
                       .fleet_size = guard_.fleet_size(),
                       .decided_open = stats.open,
                       .decided_closed = stats.closed,
                       .decided_fallback = stats.fallback};
    for (EndpointReport& report : commons_.Report()) {
      health.servers.push_back(ServerOf(std::move(report)));
    }
    return health;
  }
  MemoryStoreStats LocalStats() const noexcept override { return guard_.stats().local; }

 private:
  const redis::Settings settings_;
  const std::string files_;  // See DigestOfFiles.
  Guard guard_;
  const Around around_;
  redis::Commons commons_;
};

// Reads what the addresses refer to: passwords and certificates. Files are found as others that the
// policy names.
class SettingsReader {
 public:
  explicit SettingsReader(const CompiledPolicy& policy) : policy_(policy) {}

  Result<redis::Settings> Read() {
    const RedisSpec& spec = policy_.spec.redis;
    redis::Settings settings{.connect_timeout = spec.connect_timeout,
                             .timeout = spec.timeout,
                             .connections = spec.connections,
                             .max_in_flight = spec.max_in_flight};
    for (const std::string& text : policy_.spec.store) {
      const Result<StoreAddress> address = StoreAddress::Parse(text);
      if (!address) return std::unexpected(address.error());
      if (Result<void> added = Add(*address, settings); !added) {
        return std::unexpected(
            Error{added.error().code, address->ToString() + ": " + added.error().message});
      }
    }
    return settings;
  }

 private:
  std::string Path(const std::string& file) const { return PathIn(policy_.folder, file); }

  Result<redis::Credentials> LogIn(const StoreLogin& login) const {
    if (!login.by_reference) return redis::Credentials{login.user, login.password};
    constexpr std::string_view kFile = "file:";
    std::string source = login.password;
    if (source.starts_with(kFile)) {
      source = std::string(kFile) + Path(source.substr(kFile.size()));
    }
    Result<std::string> password = ReadSecret(source, 1);
    if (!password) return std::unexpected(std::move(password.error()));
    return redis::Credentials{login.user, *std::move(password)};
  }

  Result<std::shared_ptr<const TlsClientContext>> Tls(const StoreAddress& address) const {
    if (!address.tls) return nullptr;
    const auto path = [&](const std::string& file) { return file.empty() ? "" : Path(file); };
    return TlsClientContext::Make({.ca_file = path(address.ca_file),
                                   .certificate = path(address.certificate),
                                   .key = path(address.key),
                                   .server_name = address.server_name,
                                   .verify = address.verify});
  }

  Result<void> Add(const StoreAddress& address, redis::Settings& settings) const {
    const Result<redis::Credentials> login = LogIn(address.login);
    if (!login) return std::unexpected(login.error());
    const auto tls = Tls(address);
    if (!tls) return std::unexpected(tls.error());
    redis::Site site{.credentials = *login, .database = address.database, .tls = *tls};
    switch (address.kind) {
      case StoreAddress::Kind::kUnix:
        site.endpoint = {.path = address.path};
        settings.sites.push_back(std::move(site));
        return {};
      case StoreAddress::Kind::kCluster:
        settings.layout = redis::Layout::kCluster;
        break;
      case StoreAddress::Kind::kSentinel: {
        settings.layout = redis::Layout::kSentinel;
        settings.master_name = address.master_name;
        settings.master_credentials = *login;
        settings.master_database = address.database;
        Result<redis::Credentials> sentinel = LogIn(address.sentinel_login);
        if (!sentinel) return std::unexpected(std::move(sentinel.error()));
        site.credentials = *std::move(sentinel);
        site.database = 0;
        break;
      }
      default:
        break;
    }
    for (const StoreHost& host : address.hosts) {
      site.endpoint = {.host = host.name, .port = host.port};
      settings.sites.push_back(site);
    }
    return {};
  }

  const CompiledPolicy& policy_;
};

// What passwords and certificates are, so that others are noticed.
std::string DigestOfFiles(const Policy& policy) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  Sha256 all;
  for (const std::string& text : policy.spec().store) {
    const Result<StoreAddress> address = StoreAddress::Parse(text);
    if (!address) continue;
    for (const std::string& file : address->Files()) {
      const Result<std::string> read =
          ReadWholeFile(PathIn(policy.compiled().folder, file), kMostBytes);
      const std::string bytes = read ? *read : read.error().message;
      all.Update(std::to_string(bytes.size()) + ' ' + bytes);
    }
  }
  Hex128Digits digits;
  WriteHex128(all.Finish(), digits);
  return {digits.begin(), digits.end()};
}

bool RedisPlace::IsFor(const Policy& policy) const { return DigestOfFiles(policy) == files_; }

Result<std::unique_ptr<SharedPlace>> RedisPlace::Successor(const Policy& policy) {
  // Before they are read: what is replaced meanwhile is noticed the next time.
  std::string files = DigestOfFiles(policy);
  Result<redis::Settings> settings = SettingsReader(policy.compiled()).Read();
  if (!settings) return std::unexpected(std::move(settings.error()));
  return std::make_unique<RedisPlace>(*std::move(settings), std::move(files), guard_.ForAnother(),
                                      around_);
}

}  // namespace

Result<std::unique_ptr<SharedPlace>> MakeRedisPlace(const Policy& policy,
                                                    const EngineOptions& options,
                                                    const RedisPlaceOptions& place) {
  std::string files = DigestOfFiles(policy);
  Result<redis::Settings> settings = SettingsReader(policy.compiled()).Read();
  if (!settings) return std::unexpected(std::move(settings.error()));
  const PolicySpec& spec = policy.spec();
  GuardOptions guard{.fleet_size = spec.fleet_size,
                     .cap_bytes = static_cast<std::size_t>(spec.memory.cap),
                     .max_reservations = options.max_reservations,
                     .on_notice = options.on_notice,
                     .seed = place.seed};
  if (place.hasher != nullptr) guard.hasher = *place.hasher;
  Clock& clock = options.clock != nullptr ? *options.clock : SystemClock::Shared();
  return std::make_unique<RedisPlace>(
      *std::move(settings), std::move(files), Guard(guard, clock),
      RedisPlace::Around{
          .on_notice = options.on_notice, .seed = place.seed, .witness = place.witness});
}

}  // namespace weir
