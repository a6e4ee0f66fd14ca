#include "policy/overrides.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace weir {
namespace {

constexpr std::uint64_t kFree = std::numeric_limits<std::uint64_t>::max();

// Of 20 homes at most 17 are taken. Fuller, searches would be long: at 0.85 they look at four slots
// on average, at 0.95 at ten.
constexpr std::size_t kMostTaken = 17;
constexpr std::size_t kOutOf = 20;

// Behind the last home, for those that were pushed on. Should they not do, the table grows.
constexpr std::size_t kSlotsBehind = 64;

constexpr std::size_t HomesFor(std::size_t keys) { return keys * kOutOf / kMostTaken + 1; }

}  // namespace

OverrideTable::OverrideTable(std::size_t expected) {
  if (expected > 0) GrowTo(HomesFor(expected));
}

bool OverrideTable::Add(std::string_view subject, Entry entry) {
  // By a quarter, so that a key never takes more than 24 bytes; by more while it is small.
  if (!HasRoom()) GrowTo(homes_ + std::max<std::size_t>(homes_ / 4, 16));
  const std::uint64_t fingerprint = FingerprintOf(subject);
  std::size_t place = PlaceOf(fingerprint);
  if (slots_[place].fingerprint == fingerprint) return false;
  while (!MakeRoomAt(place)) {
    GrowTo(homes_ + homes_ / 4);
    place = PlaceOf(fingerprint);
  }
  slots_[place] = {fingerprint, entry};
  ++size_;
  return true;
}

const OverrideTable::Entry* OverrideTable::Find(std::string_view subject) const noexcept {
  if (size_ == 0) return nullptr;
  const std::uint64_t fingerprint = FingerprintOf(subject);
  const Slot& slot = slots_[PlaceOf(fingerprint)];
  return slot.fingerprint == fingerprint ? &slot.entry : nullptr;
}

std::uint64_t OverrideTable::FingerprintOf(std::string_view subject) const noexcept {
  return std::min(hasher_(subject), kFree - 1);
}

// In the order of the fingerprints, whatever the size.
std::size_t OverrideTable::HomeOf(std::uint64_t fingerprint) const noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((static_cast<Wide>(fingerprint) * homes_) >> 64);
}

std::size_t OverrideTable::PlaceOf(std::uint64_t fingerprint) const noexcept {
  std::size_t place = HomeOf(fingerprint);
  while (slots_[place].fingerprint < fingerprint) ++place;
  return place;
}

bool OverrideTable::HasRoom() const noexcept { return HomesFor(size_ + 1) <= homes_; }

bool OverrideTable::MakeRoomAt(std::size_t place) noexcept {
  std::size_t free = place;
  while (slots_[free].fingerprint != kFree) ++free;
  if (free + 1 == slots_.size()) return false;
  std::move_backward(slots_.begin() + static_cast<std::ptrdiff_t>(place),
                     slots_.begin() + static_cast<std::ptrdiff_t>(free),
                     slots_.begin() + static_cast<std::ptrdiff_t>(free) + 1);
  return true;
}

void OverrideTable::GrowTo(std::size_t homes) {
  const std::vector<Slot> old =
      std::exchange(slots_, std::vector<Slot>(homes + kSlotsBehind, Slot{kFree, {}}));
  homes_ = homes;
  // Ascending order fills the table from left to right. With more homes every key is at least as
  // far from the end as it was, so they do not reach further behind the last home than before.
  std::size_t next = 0;
  for (const Slot& slot : old) {
    if (slot.fingerprint == kFree) continue;
    next = std::max(next, HomeOf(slot.fingerprint));
    slots_[next++] = slot;
  }
}

}  // namespace weir
