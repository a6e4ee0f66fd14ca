#include "store/memory/reservations.h"

#include <algorithm>

namespace weir {
namespace {

constexpr std::size_t kSweptAtOnce = 64;

}  // namespace

Reservations::Reservations(std::size_t capacity) : capacity_(capacity) {
  records_.reserve(capacity);
  free_.reserve(capacity);
}

ReservationId Reservations::Open(Ticks until, Ticks now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (free_.empty() && records_.size() == capacity_) SweepSome(now);
  if (free_.empty()) {
    if (records_.size() == capacity_) return ReservationId::kNone;
    records_.push_back({.number = static_cast<std::uint32_t>(records_.size())});
    free_.push_back(records_.back().number);
  }
  Record& record = records_[free_.back()];
  free_.pop_back();
  record.open = true;
  record.until = until;
  ++open_;
  return ReservationId{std::uint64_t{record.generation} << 32 | (record.number + 1)};
}

void Reservations::Add(ReservationId id, const Reserved& charge) noexcept {
  const std::scoped_lock lock(mutex_);
  Record* record = Find(id);
  if (record == nullptr) return;
  const std::size_t place = record->charges.size();
  record->charges.push_back(charge);
  if (place < record->limits.size()) {
    record->limits[place] = *charge.limit;
  } else {
    record->limits.push_back(*charge.limit);
  }
}

auto Reservations::Find(ReservationId id) noexcept -> Record* {
  const auto bits = static_cast<std::uint64_t>(id);
  const std::uint64_t number = bits & 0xffff'ffff;
  if (number == 0 || number > records_.size()) return nullptr;
  Record& record = records_[number - 1];
  return record.open && record.generation == bits >> 32 ? &record : nullptr;
}

auto Reservations::Remove(ReservationId id, Ticks now) noexcept -> Record* {
  const std::scoped_lock lock(mutex_);
  Record* record = Find(id);
  if (record == nullptr) return nullptr;
  record->open = false;
  ++record->generation;
  --open_;
  if (record->until > now) return record;
  record->charges.clear();
  free_.push_back(record->number);
  return nullptr;
}

void Reservations::Recycle(Record& record) noexcept {
  const std::scoped_lock lock(mutex_);
  record.charges.clear();
  free_.push_back(record.number);
}

// Looks at a bounded number of records at a time, going round.
void Reservations::SweepSome(Ticks now) noexcept {
  for (std::size_t i = 0; i < std::min(kSweptAtOnce, records_.size()); ++i) {
    Record& record = records_[sweep_next_];
    sweep_next_ = (sweep_next_ + 1) % records_.size();
    if (!record.open || record.until > now) continue;
    record.open = false;
    ++record.generation;
    --open_;
    record.charges.clear();
    free_.push_back(record.number);
  }
}

std::size_t Reservations::size() const noexcept {
  const std::scoped_lock lock(mutex_);
  return open_;
}

}  // namespace weir
