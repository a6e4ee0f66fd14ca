// Names of reservations that a shared store keeps: they say where.
//
//   | 1 | slot 14 | random 49 |
//
// Those that a store in memory gives have a 0 in front. A reservation whose keys are in several
// slots has a record in each, under ids that differ in the slot only; the first one lists the
// others.
#pragma once

#include <cstdint>

#include <weir/decision.h>

#include "store/redis/slots.h"

namespace weir::redis {

// With random bits of the operating system's.
ReservationId DrawReservationId(std::uint16_t slot) noexcept;

inline constexpr int kReservationSlotShift = 49;

inline bool IsSharedReservation(ReservationId id) noexcept {
  return static_cast<std::uint64_t>(id) >> 63 != 0;
}
inline std::uint16_t SlotOfReservation(ReservationId id) noexcept {
  return static_cast<std::uint16_t>(static_cast<std::uint64_t>(id) >> kReservationSlotShift &
                                    (kSlots - 1U));
}
// The record of the same reservation in another slot.
inline ReservationId ReservationInSlot(ReservationId id, std::uint16_t slot) noexcept {
  const std::uint64_t mask = std::uint64_t{kSlots - 1U} << kReservationSlotShift;
  return ReservationId{(static_cast<std::uint64_t>(id) & ~mask) |
                       (std::uint64_t{slot} << kReservationSlotShift & mask)};
}

}  // namespace weir::redis
