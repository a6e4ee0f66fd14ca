// Which lease in this process stands for which in the shared store, so that one ends with the
// other. A bounded table: what finds no room ends by itself when its time is over.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <weir/decision.h>
#include <weir/time.h>

namespace weir {

// Thread-safe: a lease may be released on another thread than it was taken on.
class LeasePairs {
 public:
  explicit LeasePairs(std::size_t capacity);

  void Put(ReservationId shared, ReservationId local, SteadyTime until, SteadyTime now) noexcept;
  // The local one, which is forgotten; kNone if there is none.
  ReservationId Take(ReservationId shared) noexcept;

 private:
  struct Pair {
    ReservationId shared = ReservationId::kNone;
    ReservationId local = ReservationId::kNone;
    SteadyTime until{};
  };
  // The places where a pair may be, by its hash.
  using Places = std::array<Pair, 4>;

  Places& PlacesFor(ReservationId shared) noexcept;

  std::atomic<std::size_t> taken_{0};
  std::mutex mutex_;  // For what is below.
  std::vector<Places> places_;
};

}  // namespace weir
