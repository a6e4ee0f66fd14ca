// Keys are divided by slots, in every layout: 16384 of them, by the CRC16 of what stands between
// the braces of a key, as Redis Cluster has it. All keys of one subject share a slot.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr std::uint16_t kSlots = 16'384;

// Of a key, braces and all.
std::uint16_t SlotOfKey(std::string_view key) noexcept;
// Of what stands between them.
std::uint16_t SlotOfTag(std::string_view tag) noexcept;
// A short tag of that slot, for keys that must be with others: see reservations.
std::string_view TagOfSlot(std::uint16_t slot) noexcept;

}  // namespace weir::redis
