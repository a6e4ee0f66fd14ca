// What a Guard keeps: the store in this process, how things stand, and how many share the store.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "store/guard/degraded_time.h"
#include "store/guard/guard.h"
#include "store/guard/lease_pairs.h"
#include "store/guard/member_count.h"
#include "telemetry/counter.h"

namespace weir {

class MemoryStore;

// Thread-safe.
class Guard::State {
 public:
  State(const GuardOptions& options, Now start);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  void NoteFailure(const Error& error, SteadyTime now) noexcept;
  void NoteSuccess(SteadyTime now) noexcept {
    if (degraded_.NoteSuccess(now)) [[unlikely]]
      EndDegradedTime(now);
  }
  // A group was decided in the store's place.
  void NoteDecided(FailureMode mode) noexcept;
  void NoteMembers(int members, SteadyTime now) noexcept;

  const DegradedTime& degraded() const noexcept { return degraded_; }
  MemoryStore& local() noexcept { return *local_; }
  const MemoryStore& local() const noexcept { return *local_; }
  LeasePairs& leases() noexcept { return leases_; }
  int fleet_size() const noexcept;
  void SetFleetSize(int size) noexcept { fleet_size_.store(size, std::memory_order_relaxed); }
  std::uint64_t seed() const noexcept { return options_.seed; }
  Stats stats() const noexcept;

 private:
  void EndDegradedTime(SteadyTime now) noexcept;
  std::string TextOfBegin(const Error& error) const;
  std::string TextOfEnd(Duration lasted) const;
  void Say(const std::string& text) const noexcept;

  const GuardOptions options_;
  std::atomic<int> fleet_size_;  // 0: counted.
  const std::unique_ptr<MemoryStore> local_;
  LeasePairs leases_;
  DegradedTime degraded_;
  MemberCount members_;
  Counter open_;
  Counter closed_;
  Counter fallback_;
  std::mutex mutex_;  // Held by who begins or ends a degraded time, or counts members.
  Stats before_{};    // When the present degraded time began.
};

}  // namespace weir
