// State in Redis or Valkey, shared by every process that uses the same servers.
//
// Decided by a script on the server, by the server's clock, in one round trip. What one turn of the
// loop gathered leaves in one write. A call that may have taken effect is never repeated. Groups
// whose keys live on several servers, or slots of a cluster, are decided in parallel; what was
// taken is given back when a part denies.
//
// When a server cannot be asked, groups end with an error, in time: at once while its breaker is
// open or too many calls are under way, else after the timeout at the latest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "net/loop.h"
#include "store/breaker.h"
#include "store/endpoint_report.h"
#include "store/fleet.h"
#include "store/redis/settings.h"
#include "store/store.h"

namespace weir::redis {

// What the stores of all threads of a process have in common: breakers, counts, and what has been
// said to people already. Thread-safe.
class Commons {
 public:
  struct Options {
    // Told in plain words what a person should know about the servers: a version that is too old,
    // an eviction policy that forgets limits, missing rights. From any thread.
    std::function<void(std::string_view)> on_notice{};
    std::uint64_t seed = 0;  // Of back-off and probes; 0: random.
  };
  Commons(const Settings& settings, Options options);
  ~Commons();

  // Of every server that has been talked to, or was tried.
  std::vector<EndpointReport> Report() const;

 private:
  friend class RedisStore;
  class State;
  std::unique_ptr<State> state_;
};

// Belongs to the loop's thread.
class RedisStore final : public Store, public Fleet {
 public:
  // Begins to connect. Everything must outlive it. Whoever is still to be told something when it
  // ends is told an error, from within its end.
  RedisStore(Loop& loop, const Settings& settings, const KeyHasher& hasher, Commons& commons);
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;
  ~RedisStore() override;

  std::uint64_t Hash(std::string_view key) const noexcept override;
  // Charges must have keys. Completes later, but for groups that count nothing and those that fail
  // at once, which it may complete before it returns.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;
  bool IsSettled() noexcept override;

  void Beat(std::string_view member, std::function<void(Result<int>)> counted) override;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weir::redis
