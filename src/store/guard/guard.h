// Keeps every request answered while the shared store is slow, gone or failing: each failed call is
// answered at once as its rules say.
//
//   open     let through, and labelled so
//   closed   denied, with the reason store_failure
//   static   decided in this process, by its share of the limit
//
// `static` is fed with all that the store admits while it is well, so it takes over warm. Its share
// is a fleet's part: rate / N and burst max(1, burst / N) of buckets, max(1, limit / N) of others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <weir/clock.h>

#include "net/loop.h"
#include "store/fleet.h"
#include "store/memory/memory_store_types.h"
#include "store/store.h"

namespace weir {

struct GuardOptions {
  int fleet_size = 0;  // How many processes share the store; 0: counted by heartbeats.
  std::size_t cap_bytes = std::size_t{256} << 20;  // For what decides in the store's place.
  std::size_t max_reservations = 65'536;           // Likewise.
  // One line when a degraded time begins and one when it ends, and what else people should know.
  std::function<void(std::string_view)> on_notice{};
  std::uint64_t seed = 0;             // Of the identities of keys, and of heartbeats; 0: random.
  std::optional<KeyHasher> hasher{};  // Of the identities of keys, before the seed.
};

// What the guarded stores of all threads of a process share. Thread-safe.
class Guard {
 public:
  Guard(const GuardOptions& options, Clock& clock);
  Guard(Guard&&) noexcept = default;
  Guard& operator=(Guard&&) noexcept = default;
  ~Guard();

  // For another store in place of this one: what decides when that fails is the same, and goes on.
  Guard ForAnother() const { return Guard(state_); }
  // The other is in use now: what becomes of calls to the stores of this one says nothing about it.
  void Retire() noexcept { is_in_use_->store(false, std::memory_order_relaxed); }

  // The identities of keys go by this.
  const KeyHasher& hasher() const noexcept;

  // From a call that failed until one succeeds and none has failed for a second.
  bool IsDegraded() const noexcept;
  // How long the present degraded time has lasted; zero if there is none.
  Duration DegradedFor(SteadyTime now) const noexcept;
  // N: as set, or as counted last; what it was goes on for as long as a member is remembered, so
  // that a store that forgot its members does not make every process think it is alone. 1 if
  // nobody knows.
  int fleet_size() const noexcept;
  // Sets it anew, from the next decision on; 0: counted.
  void SetFleetSize(int size) noexcept;
  // Changes how many bytes what decides in the store's place may use, as MemoryStore::SetCap does
  // and within the same bounds. For one caller at a time.
  CapChange SetCap(std::size_t bytes, Now now) noexcept;
  // Groups decided in the store's place, by mode.
  struct Stats {
    std::uint64_t open = 0;
    std::uint64_t closed = 0;
    std::uint64_t fallback = 0;
    std::uint64_t degraded_times = 0;
    MemoryStoreStats local{};
  };
  Stats stats() const noexcept;

 private:
  friend class GuardedStore;
  friend class FleetCounter;
  class State;
  explicit Guard(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
  std::shared_ptr<std::atomic<bool>> is_in_use_ = std::make_shared<std::atomic<bool>>(true);
};

// Belongs to the thread of the store behind it.
class GuardedStore final : public Store {
 public:
  // `behind` fails by Group::error. All must outlive it. Groups that are under way when it ends are
  // decided all the same, when `behind` is done with them.
  GuardedStore(Store& behind, Guard& guard, Loop& loop);
  GuardedStore(const GuardedStore&) = delete;
  GuardedStore& operator=(const GuardedStore&) = delete;
  ~GuardedStore() override;

  std::uint64_t Hash(std::string_view key) const noexcept override;
  // Never completes a group with an error because the store failed, but for kCommit and kCancel of
  // what is kept in the store. Whoever is told may submit again, or end this store, from within.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;

 private:
  class Flight;
  class State;
  std::shared_ptr<State> state_;
};

// Sends a heartbeat for this process every second or so, and tells the guard how many there are; a
// heartbeat that fails or succeeds is a call like any other, so that a store that nobody asks is
// known to be back. One per process, on any of its loops.
class FleetCounter {
 public:
  // All must outlive it.
  FleetCounter(Fleet& fleet, Guard& guard, Loop& loop);
  FleetCounter(const FleetCounter&) = delete;
  FleetCounter& operator=(const FleetCounter&) = delete;
  ~FleetCounter();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace weir
