#include "store/guard/lease_pairs.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/mix.h"

namespace weir {

LeasePairs::LeasePairs(std::size_t capacity)
    : places_(std::bit_ceil(std::max<std::size_t>(1, capacity / Places().size()))) {}

LeasePairs::Places& LeasePairs::PlacesFor(ReservationId shared) noexcept {
  return places_[Mix(std::to_underlying(shared)) & (places_.size() - 1)];
}

void LeasePairs::Put(ReservationId shared, ReservationId local, SteadyTime until,
                     SteadyTime now) noexcept {
  const std::scoped_lock lock(mutex_);
  // What is free or past first, then what ends soonest.
  const auto rank = [&](const Pair& pair) {
    const bool used = pair.shared != ReservationId::kNone && pair.until > now;
    return used ? pair.until : SteadyTime::min();
  };
  Pair& pair = *std::ranges::min_element(PlacesFor(shared), {}, rank);
  if (pair.shared == ReservationId::kNone) taken_.fetch_add(1, std::memory_order_relaxed);
  pair = {.shared = shared, .local = local, .until = until};
}

ReservationId LeasePairs::Take(ReservationId shared) noexcept {
  if (taken_.load(std::memory_order_relaxed) == 0) return ReservationId::kNone;
  const std::scoped_lock lock(mutex_);
  for (Pair& pair : PlacesFor(shared)) {
    if (pair.shared != shared) continue;
    taken_.fetch_sub(1, std::memory_order_relaxed);
    return std::exchange(pair, {}).local;
  }
  return ReservationId::kNone;
}

}  // namespace weir
