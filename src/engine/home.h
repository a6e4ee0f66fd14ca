// Where the state of keys is kept under a policy: in this process's memory, or in a place that
// other processes share. Policies that follow each other have one home, until one of them names
// another store or talks to its servers in another way.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <weir/clock.h>

#include "engine/shared_place.h"
#include "store/memory/memory_store_types.h"

namespace weir {

class BlockingStore;
class MemoryStore;

// Thread-safe.
struct Home {
  Home(const MemoryStoreOptions& options, Now start);
  Home(std::unique_ptr<SharedPlace> its_place, Clock& clock, EngineParts::Threads threads);
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  ~Home();

  bool is_shared() const noexcept { return place != nullptr; }
  // Ends the thread that it has for a shared place, so not from there. It does not end by itself
  // with the home: those whose answers come on that thread hold on to the home, and may be the
  // last.
  void EndThread() noexcept;
  // As MemoryStore::SetCap; of a shared place, for what decides when that fails.
  CapChange SetCap(std::size_t bytes, Now now) noexcept;
  // For those who wait for it.
  Store& store() noexcept;

  const std::unique_ptr<MemoryStore> memory{};  // Either this,
  const std::unique_ptr<SharedPlace> place{};   // or this.
  std::atomic<bool> needs_heartbeat{false};     // This process sends no heartbeat yet.
  std::unique_ptr<BlockingStore> blocking{};    // Of the place, if it may have a thread.
};

// The home of the policy in force, and those of policies before it: each of these ends, on a thread
// made for that, once nobody has a question there any more. Thread-safe, but one at a time moves.
class Homes {
 public:
  explicit Homes(std::shared_ptr<Home> first) : current_(std::move(first)) {}
  Homes(const Homes&) = delete;
  Homes& operator=(const Homes&) = delete;
  // Ends all of them. Nobody may ask any more; what others still give back is waited for.
  ~Homes();

  // For the one who moves.
  const std::shared_ptr<Home>& current() const noexcept { return current_; }
  // Once no new question goes to the one before.
  void MoveTo(std::shared_ptr<Home> next);

 private:
  void EndFormer();

  std::shared_ptr<Home> current_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Home>> former_;  // Under the mutex.
  bool ending_ = false;                        // Likewise.
  std::thread thread_;                         // Made by the first move.
};

}  // namespace weir
