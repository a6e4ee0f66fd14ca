// What was taken under a reservation, by its id, until it is settled or expires. A bounded table:
// a client that reserves and never comes back cannot fill the memory.
//
//   id:   | 0 | random 39 | record number 24 |        never 0
//
// The top bit is left to those who keep reservations elsewhere, and must tell theirs from ours. The
// random part is drawn anew every time, under a secret from the operating system: an id that
// was settled or made up is taken for one that is open with a chance of 1 in 2^39, and those that a
// client was given tell nothing of the others.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <weir/decision.h>
#include <weir/limit.h>

#include "base/hash.h"
#include "base/ticks.h"

namespace weir {

// One charge of a reservation.
struct Reserved {
  std::uint64_t rule;  // The hash of its name.
  std::uint64_t hash;
  const Limit* limit;  // When it is added the caller's, when it is settled a copy.
  bool shadow;
  bool keeps_cost = false;  // Whatever the commit says.
  std::int64_t times;       // How many charges of the group this was.
  std::int64_t cost;        // What was really taken.
  Ticks receipt;
};

// Thread-safe. Records are used again with the memory they have, so that in the long run opening
// one allocates nothing.
class Reservations {
 public:
  static constexpr int kNumberBits = 24;
  static constexpr std::size_t kMostRecords = std::size_t{1} << kNumberBits;

  // Room for so many, and never for more than kMostRecords.
  explicit Reservations(std::size_t capacity);

  // An id for a reservation that expires at `until`, or kNone when the table is full.
  ReservationId Open(Ticks until, Ticks now) noexcept;
  // For whoever opened it, before anybody else knows the id.
  void Add(ReservationId id, const Reserved& charge) noexcept;

  // Removes the reservation, then hands each of its charges to `settle`. False if there is none:
  // it was settled before, has expired, or never was.
  template <typename Settle>
  bool Take(ReservationId id, Ticks now, Settle&& settle) noexcept {
    Record* record = Remove(id, now);
    if (record == nullptr) return false;
    for (std::size_t i = 0; i < record->charges.size(); ++i) {
      record->charges[i].limit = &record->limits[i];
      settle(std::as_const(record->charges[i]));
    }
    Recycle(*record);
    return true;
  }

  // Hands over every reservation that is open at `now`: visit(id, until, charges). In the order in
  // which Restore takes them.
  template <typename Visit>
  void VisitOpen(Ticks now, Visit&& visit) {
    const std::scoped_lock lock(mutex_);
    for (Record& record : records_) {
      if (record.id == ReservationId::kNone || record.until <= now) continue;
      for (std::size_t i = 0; i < record.charges.size(); ++i) {
        record.charges[i].limit = &record.limits[i];
      }
      visit(record.id, record.until, std::span<const Reserved>(record.charges));
    }
  }
  // Opens a reservation under the id that it had in another process, for Add. Before any other is
  // opened, and in the order of their record numbers. False if there is no room for it.
  bool Restore(ReservationId id, Ticks until);

  std::size_t size() const noexcept;

 private:
  struct Record {
    std::uint32_t number = 0;
    ReservationId id = ReservationId::kNone;  // None unless it is open.
    Ticks until{0};
    std::vector<Reserved> charges{};
    std::vector<Limit> limits{};  // Of the charges; those beyond are written over in time.
  };

  Record* Find(ReservationId id) noexcept;
  Record* Remove(ReservationId id, Ticks now) noexcept;
  void Recycle(Record& record) noexcept;
  // These are for the holder of the mutex.
  ReservationId DrawId(std::uint32_t number) noexcept;
  void Close(Record& record) noexcept;
  void Free(Record& record) noexcept;
  void SweepUntilOneIsFree(Ticks now) noexcept;

  KeyHasher random_{HashKind::kSipHash};  // Of how many ids were drawn.
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<Record> records_;  // Never moves: room for all is set aside at the start.
  std::vector<std::uint32_t> free_;
  std::size_t sweep_next_ = 0;
  Ticks none_ends_before_ = Ticks::max();  // Of those that are open.
  std::size_t open_ = 0;
  std::uint64_t drawn_ = 0;
};

}  // namespace weir
