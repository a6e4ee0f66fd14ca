#include "store/memory/reservations.h"

#include <algorithm>

#include "store/store.h"

namespace weir {

Reservations::Reservations(std::size_t capacity) : capacity_(std::min(capacity, kMostRecords)) {
  records_.reserve(capacity_);
  free_.reserve(capacity_);
}

ReservationId Reservations::Open(Ticks until, Ticks now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (free_.empty() && records_.size() == capacity_) SweepUntilOneIsFree(now);
  if (free_.empty()) {
    if (records_.size() == capacity_) return ReservationId::kNone;
    records_.push_back({.number = static_cast<std::uint32_t>(records_.size())});
    free_.push_back(records_.back().number);
  }
  Record& record = records_[free_.back()];
  free_.pop_back();
  record.id = DrawId(record.number);
  record.until = until;
  none_ends_before_ = std::min(none_ends_before_, until);
  ++open_;
  return record.id;
}

bool Reservations::Restore(ReservationId id, Ticks until) {
  const std::scoped_lock lock(mutex_);
  const auto bits = static_cast<std::uint64_t>(id);
  const std::uint64_t number = bits % kMostRecords;
  const bool possible = id != ReservationId::kNone && (bits & kSharedReservation) == 0;
  if (!possible || number < records_.size() || number >= capacity_) return false;
  while (records_.size() <= number) {
    records_.push_back({.number = static_cast<std::uint32_t>(records_.size())});
    free_.push_back(records_.back().number);
  }
  free_.pop_back();
  records_[number].id = id;
  records_[number].until = until;
  none_ends_before_ = std::min(none_ends_before_, until);
  ++open_;
  return true;
}

ReservationId Reservations::DrawId(std::uint32_t number) noexcept {
  ReservationId id = ReservationId::kNone;
  while (id == ReservationId::kNone) {
    ++drawn_;
    const std::uint64_t random = random_({reinterpret_cast<const char*>(&drawn_), sizeof(drawn_)});
    id = ReservationId{(random << kNumberBits | number) & ~kSharedReservation};
  }
  return id;
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
  const std::uint64_t number = static_cast<std::uint64_t>(id) % kMostRecords;
  if (id == ReservationId::kNone || number >= records_.size()) return nullptr;
  Record& record = records_[number];
  return record.id == id ? &record : nullptr;
}

auto Reservations::Remove(ReservationId id, Ticks now) noexcept -> Record* {
  const std::scoped_lock lock(mutex_);
  Record* record = Find(id);
  if (record == nullptr) return nullptr;
  Close(*record);
  if (record->until > now) return record;
  Free(*record);
  return nullptr;
}

void Reservations::Recycle(Record& record) noexcept {
  const std::scoped_lock lock(mutex_);
  Free(record);
}

void Reservations::Close(Record& record) noexcept {
  record.id = ReservationId::kNone;
  --open_;
}

void Reservations::Free(Record& record) noexcept {
  record.charges.clear();
  free_.push_back(record.number);
}

// Goes round from where it stopped. A full round that finds none over knows when the next will be,
// and until then nobody looks again.
void Reservations::SweepUntilOneIsFree(Ticks now) noexcept {
  if (none_ends_before_ > now) return;
  Ticks earliest_end = Ticks::max();
  for (std::size_t i = 0; i < records_.size(); ++i) {
    Record& record = records_[sweep_next_];
    sweep_next_ = (sweep_next_ + 1) % records_.size();
    if (record.id == ReservationId::kNone) continue;  // Being settled.
    if (record.until <= now) {
      Close(record);
      Free(record);
      return;
    }
    earliest_end = std::min(earliest_end, record.until);
  }
  none_ends_before_ = earliest_end;
}

std::size_t Reservations::size() const noexcept {
  const std::scoped_lock lock(mutex_);
  return open_;
}

}  // namespace weir
