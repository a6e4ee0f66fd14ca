// Where the state of an engine lives when other processes share it: whatever stands behind this,
// the engine needs one store for every thread that has a loop, all of which see the same state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <weir/engine.h>
#include <weir/policy.h>

#include "base/hash.h"
#include "net/loop.h"
#include "store/memory/memory_store_types.h"
#include "store/store.h"

namespace weir {

// Thread-safe.
class SharedPlace {
 public:
  virtual ~SharedPlace() = default;

  // The identities of keys go by this.
  virtual const KeyHasher& hasher() const noexcept = 0;

  // Whether a store says, now and then, that this process is there. One of them does.
  enum class Heartbeat : bool { kNo, kYes };
  // It belongs to the loop's thread, and must end before the loop and this.
  virtual std::unique_ptr<Store> OpenOn(Loop& loop, Heartbeat heartbeat) = 0;

  // How long a store takes to answer at most, or to fail.
  virtual Duration timeout() const noexcept = 0;
  // How long a store takes at most, once it was opened, until it is settled.
  virtual Duration time_to_settle() const noexcept = 0;
  // What a policy says about the fleet: how many processes share the state; 0: count them.
  virtual void SetFleetSize(int size) noexcept = 0;
  // The most bytes for what decides in the store's place. As MemoryStore::SetCap.
  virtual CapChange SetCap(std::size_t bytes, Now now) noexcept = 0;

  // Another is in use now. What is under way here is answered, but how it fares says nothing any
  // more, and nobody is told that this process is there.
  virtual void Leave() noexcept = 0;
  // Whether that policy would have the same made: store, settings, passwords and certificates.
  virtual bool IsFor(const Policy& policy) const = 0;
  // The place for a policy that is not: it names another store, or talks to its servers in another
  // way. What decides in the store's place is the same for both, and goes on. Errors as
  // MakeRedisPlace.
  [[nodiscard]] virtual Result<std::unique_ptr<SharedPlace>> Successor(const Policy& policy) = 0;

  virtual StoreHealth Health(SteadyTime now) const = 0;
  // Of what decides in the store's place.
  virtual MemoryStoreStats LocalStats() const noexcept = 0;
};

struct RedisPlaceOptions {
  const KeyHasher* hasher = nullptr;  // The identities of keys go by this, or by one of its own.
  // For a simulated world, where the same seed gives the same run: of heartbeats, back-off and
  // probes; 0: random.
  std::uint64_t seed = 0;
  // Likewise: makes what stands between guard and client on each loop, and passes on what it is
  // given. None: nobody does.
  std::function<std::unique_ptr<Store>(Store& client, Loop& loop)> witness{};
};
// As a policy says: its store, and what it says about fleets. The error names what cannot be used:
// an address, a secret that is not there.
[[nodiscard]] Result<std::unique_ptr<SharedPlace>> MakeRedisPlace(
    const Policy& policy, const EngineOptions& options, const RedisPlaceOptions& place = {});

// For those within the library who put an engine together, or ask it in another way.
struct EngineParts {
  using State = Engine::State;

  static State& StateOf(Engine& engine) noexcept { return *engine.state_; }

  // With kNone the engine starts no thread of its own and may only be asked through a LoopEngine,
  // the first of which sends heartbeats: for a simulated world.
  enum class Threads : bool { kNone, kOwn };
  // An engine with its state there.
  static Engine Make(const Policy& policy, const EngineOptions& options,
                     std::unique_ptr<SharedPlace> place, Threads threads = Threads::kOwn);
  // An engine with its state in memory, by a hasher that was given, for a simulated world. The
  // options are good ones.
  static Engine MakeInMemory(const Policy& policy, const EngineOptions& options,
                             const KeyHasher& hasher);
};

}  // namespace weir
