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
#include <string>
#include <string_view>

#include <weir/clock.h>

#include "net/loop.h"
#include "store/fleet.h"
#include "store/memory/memory_store.h"
#include "store/store.h"

namespace weir {

struct GuardOptions {
  int fleet_size = 0;  // How many processes share the store; 0: counted by heartbeats.
  std::size_t cap_bytes = std::size_t{256} << 20;  // For what decides in the store's place.
  std::size_t max_reservations = 65'536;           // Likewise.
  // One line when a degraded time begins and one when it ends, and what else people should know.
  std::function<void(std::string_view)> on_notice{};
};

// What the guarded stores of all threads of a process share. Thread-safe.
class Guard {
 public:
  Guard(const GuardOptions& options, Clock& clock);
  ~Guard();

  // The identities of keys go by this.
  const KeyHasher& hasher() const noexcept;

  // Whether the last call failed; it stays so until one succeeds.
  bool IsDegraded() const noexcept;
  // How long the present degraded time has lasted; zero if there is none.
  Duration DegradedFor(SteadyTime now) const noexcept;
  // N.
  int fleet_size() const noexcept;
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
  class State;
  std::unique_ptr<State> state_;
};

// Belongs to the thread of the store behind it.
class GuardedStore final : public Store {
 public:
  // `behind` fails by Group::error. Both must outlive it.
  GuardedStore(Store& behind, Guard& guard, Loop& loop);
  ~GuardedStore() override;

  std::uint64_t Hash(std::string_view key) const noexcept override;
  // Never completes a group with an error because the store failed, but for kCommit and kCancel of
  // what is kept in the store.
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// Sends heartbeats for this process, and tells the guard how many there are. One per process, on
// any of its loops.
class FleetCounter {
 public:
  FleetCounter(Fleet& fleet, Guard& guard, Loop& loop);
  ~FleetCounter();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weir
