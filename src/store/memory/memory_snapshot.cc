// The memory store as bytes.
//
//   | ticks when it was written 8 | wall time at tick 0, in ns since 1970 8 |
//   | reservations 4 | of each:
//       | id 8 | until 8 | charges 4 | of each:
//           | rule 8 | hash 8 | limit, see LimitWriter | shadow 1 | keeps its cost 1 | times 8 |
//           | cost 8 | receipt 8 |
//   five tables: buckets, windows, logs, strict windows of up to 12 sub-windows, longer ones
//   | entries 8 | of each:
//       | fingerprint 8 | word 8 | payload: none; 2 words; a log; 14 words; 62 words |
//       log:   | events 4 | of each: at 8 | cost 8 |
//
// Keys are there by their fingerprints alone, so whoever reads this must have the same hasher. Time
// is in the ticks of the store that wrote it; the one that reads it shifts all of them by the same
// amount, and where its windows begin along with them, so that nothing else changes. Keys that are
// being denied come last: where there is less room than there was, the others give way to them.
#include <algorithm>
#include <array>

#include "store/memory/limit_records.h"
#include "store/memory/memory_store.h"
#include "store/memory/snapshot_stream.h"

namespace weir {
namespace {

// The most that a clock may show, and that state may be ahead of it. Whatever is beyond was left by
// a broken clock; sums and differences of such times must not overflow.
constexpr std::int64_t kYear = ToTicks(std::chrono::hours(24 * 366)).count();
constexpr std::int64_t kLatest = 6 * kYear;
constexpr std::int64_t kFurthestAhead = 3 * kYear;
constexpr std::int64_t kFarthestWall = std::int64_t{1} << 62;
// The most that a window may have counted.
constexpr std::int64_t kMostUnits = 2 * kMaxCount;

// In what its end is given, a receipt of the calendar's windows is a wall time.
bool IsByWall(const Limit& limit) noexcept { return limit.calendar() != nullptr; }

}  // namespace

class MemoryStore::Saver {
 public:
  Saver(MemoryStore& store, SnapshotWriter& writer, LimitWriter& limits, Now now) noexcept
      : store_(store),
        writer_(writer),
        limits_(limits),
        now_(store.timeline_.TicksAt(now.steady)) {}

  SnapshotReport Save() {
    writer_.Put(now_.count());
    writer_.Put(store_.timeline_.wall_origin().time_since_epoch().count());
    SaveReservations();
    SaveTable(store_.buckets_, [](const auto&) {});
    SaveTable(store_.windows_, [&](const auto& slot) { PutWords(slot.payload); });
    SaveTable(store_.logs_, [&](const auto& slot) { PutLog(slot.payload); });
    SaveTable(store_.short_strict_, [&](const auto& slot) { PutWords(slot.payload); });
    SaveTable(store_.long_strict_, [&](const auto& slot) { PutWords(slot.payload); });
    return report_;
  }

 private:
  void SaveReservations() {
    std::uint32_t open = 0;
    store_.reservations_.VisitOpen(now_, [&](auto&&...) { ++open; });
    writer_.Put(open);
    report_.reservations = open;
    store_.reservations_.VisitOpen(
        now_, [&](ReservationId id, Ticks until, std::span<const Reserved> charges) {
          writer_.Put(static_cast<std::uint64_t>(id));
          writer_.Put(until.count());
          writer_.Put(static_cast<std::uint32_t>(charges.size()));
          for (const Reserved& charge : charges) PutCharge(charge);
        });
  }

  void PutCharge(const Reserved& charge) {
    writer_.Put(charge.rule);
    writer_.Put(charge.hash);
    limits_.Put(*charge.limit);
    writer_.Put(std::uint8_t{charge.shadow});
    writer_.Put(std::uint8_t{charge.keeps_cost});
    writer_.Put(charge.times);
    writer_.Put(charge.cost);
    writer_.Put(charge.receipt.count());
  }

  template <typename AnyTable, typename PutPayload>
  void SaveTable(const AnyTable& table, PutPayload&& put_payload) {
    const auto counts = [&](const SlotHead& slot) { return FreshAt(slot.word) > now_; };
    std::uint64_t entries = 0;
    table.VisitAll([&](const auto& slot) { entries += counts(slot) ? 1U : 0U; });
    writer_.Put(entries);
    report_.keys += entries;
    for (const bool denied : {false, true}) {
      table.VisitAll([&](const auto& slot) {
        if (!counts(slot) || IsDenied(slot.word) != denied) return;
        writer_.Put(slot.fingerprint);
        writer_.Put(slot.word & ~kLockedBit);
        put_payload(slot);
      });
    }
  }

  void PutWords(std::span<const std::uint64_t> words) {
    for (const std::uint64_t word : words) writer_.Put(word);
  }

  // What was given back in between need not be remembered.
  void PutLog(const std::uint64_t (&payload)[2]) {
    std::array<std::uint64_t, 2> copy{payload[0], payload[1]};
    ChunkedLog log(store_.events_, copy.data());
    std::uint32_t events = 0;
    for (Event* event = log.First(); event != nullptr; event = log.Next(event)) {
      events += event->cost != 0 ? 1U : 0U;
    }
    writer_.Put(events);
    for (Event* event = log.First(); event != nullptr; event = log.Next(event)) {
      if (event->cost == 0) continue;
      writer_.Put(event->at.count());
      writer_.Put(event->cost);
    }
  }

  MemoryStore& store_;
  SnapshotWriter& writer_;
  LimitWriter& limits_;
  const Ticks now_;
  SnapshotReport report_;
};

class MemoryStore::Loader {
 public:
  Loader(MemoryStore& store, SnapshotReader& reader, LimitReader& limits, Now now) noexcept
      : store_(store),
        reader_(reader),
        limits_(limits),
        now_(store.timeline_.TicksAt(now.steady)) {}

  SnapshotReport Load(Duration elapsed) {
    const auto written_at = reader_.GetWithin<std::int64_t>(0, kLatest, "the time");
    const auto origin = reader_.GetWithin<std::int64_t>(-kFarthestWall, kFarthestWall, "the time");
    const std::int64_t passed = ToTicks(std::min(elapsed, ToDuration(Ticks(kLatest)))).count();
    shift_ = now_.count() - written_at - passed;
    LoadReservations();
    LoadTable(store_.buckets_, [](auto&) {});
    LoadTable(store_.windows_, [&](auto& words) { CheckWindow(words); });
    LoadLogs();
    LoadTable(store_.short_strict_, [&](auto& words) { MoveStrict(words); });
    LoadTable(store_.long_strict_, [&](auto& words) { MoveStrict(words); });
    // Windows go on only where there are some; otherwise they may as well begin by today's clock.
    if (report_.keys != 0) {
      store_.timeline_.AlignTo(WallTime(Duration(origin - shift_ / kTicksPerNanosecond)));
    }
    const MemoryStoreStats stats = store_.Stats();
    report_.forgotten += stats.evicted_live + stats.evicted_denied;
    return report_;
  }

 private:
  // As this store counts time. What was further ahead than anything can be is pulled back.
  Ticks Moved(std::int64_t ticks) const noexcept {
    return Ticks(std::min(std::clamp<std::int64_t>(ticks, 0, std::int64_t{1} << 62) + shift_,
                          now_.count() + kFurthestAhead));
  }

  void LoadReservations() {
    const auto count = reader_.Get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && !reader_.failed(); ++i) {
      const ReservationId id{reader_.Get<std::uint64_t>()};
      const Ticks until = Moved(reader_.Get<std::int64_t>());
      const auto charges = reader_.GetWithin<std::uint32_t>(0, kMaxGroupCharges, "a reservation");
      const bool open =
          until > now_ && !reader_.failed() && store_.reservations_.Restore(id, until);
      if (open) ++report_.reservations;
      for (std::uint32_t k = 0; k < charges && !reader_.failed(); ++k) LoadCharge(id, open);
    }
  }

  void LoadCharge(ReservationId id, bool open) {
    const auto rule = reader_.Get<std::uint64_t>();
    const auto hash = reader_.Get<std::uint64_t>();
    const Limit limit = limits_.Get();
    Reserved charge{
        .rule = rule,
        .hash = hash,
        .limit = &limit,
        .shadow = reader_.GetWithin<std::uint8_t>(0, 1, "a reservation") != 0,
        .keeps_cost = reader_.GetWithin<std::uint8_t>(0, 1, "a reservation") != 0,
        .times = reader_.GetWithin<std::int64_t>(1, kMaxGroupCharges, "a reservation"),
        .cost = reader_.GetWithin<std::int64_t>(0, kMaxGroupCharges * kMaxCount, "a reservation"),
        .receipt = Ticks(0)};
    const auto receipt = reader_.Get<std::int64_t>();
    charge.receipt = IsByWall(limit) ? Ticks(receipt) : Moved(receipt);
    if (limit.kind() != LimitKind::kCounted) reader_.Refuse("a reservation under no limit");
    if (open && !reader_.failed()) store_.reservations_.Add(id, charge);
  }

  // The next entry's fingerprint and word.
  SlotHead ReadHead() {
    const SlotHead head{reader_.Get<std::uint64_t>(), reader_.Get<std::uint64_t>()};
    if (head.fingerprint == 0 || IsLocked(head.word)) reader_.Refuse("a key that cannot be");
    const Ticks fresh_at = Moved(FreshAt(head.word).count());
    // Whether it counts at all any more is for the caller to see.
    return {head.fingerprint, MakeWord(std::max(fresh_at, Ticks(0))) | (head.word & kDeniedBit)};
  }

  // `mend(payload)` brings the payload of an entry into the time of this store.
  template <typename AnyTable, typename Mend>
  void LoadTable(AnyTable& table, Mend&& mend) {
    constexpr std::size_t kWords = (sizeof(typename AnyTable::TableSlot) - sizeof(SlotHead)) / 8;
    const auto entries = reader_.Get<std::uint64_t>();
    table.Expect(entries);
    for (std::uint64_t i = 0; i < entries; ++i) {
      const SlotHead head = ReadHead();
      std::array<std::uint64_t, kWords> payload;
      for (std::uint64_t& word : payload) word = reader_.template Get<std::uint64_t>();
      mend(payload);
      if (reader_.failed()) return;
      if (FreshAt(head.word) > now_) Put(table, head, payload);
    }
  }

  template <typename AnyTable, typename Payload>
  void Put(AnyTable& table, SlotHead head, const Payload& payload) {
    bool again = false;
    if constexpr (kIsBucketTable<AnyTable>) {
      table.Update(head.fingerprint, now_, [&](std::uint64_t word) {
        again = word != 0;
        return head.word;
      });
    } else {
      const auto locked = table.Lock(head.fingerprint, now_, CallerHolds::kNothing);
      again = !locked.absent;
      std::ranges::copy(payload, locked.slot->payload);
      table.Unlock(locked, head.word);
    }
    if (again) reader_.Refuse("a key comes twice");
    ++report_.keys;
  }

  // Counts, and of the calendar's windows the wall time of their end: none of it moves.
  void CheckWindow(const std::array<std::uint64_t, 2>& words) {
    const auto most = static_cast<std::uint64_t>(kMostUnits);
    const auto end_or_count = static_cast<std::int64_t>(words[1]);
    if (words[0] > most || end_or_count < -kFarthestWall || end_or_count > kFarthestWall) {
      reader_.Refuse("a window that cannot be");
    }
  }

  template <std::size_t kWords>
  void MoveStrict(std::array<std::uint64_t, kWords>& words) {
    words[0] = static_cast<std::uint64_t>(Moved(static_cast<std::int64_t>(words[0])).count());
    const auto too_many = [](std::uint64_t word) {
      return word > static_cast<std::uint64_t>(kMostUnits);
    };
    if (std::any_of(words.begin() + 1, words.end(), too_many)) {
      reader_.Refuse("a window that cannot be");
    }
  }

  // Their table grows by itself: what it took in advance would be missing for events.
  void LoadLogs() {
    const auto entries = reader_.Get<std::uint64_t>();
    for (std::uint64_t i = 0; i < entries; ++i) {
      const SlotHead head = ReadHead();
      const auto events = reader_.GetWithin<std::uint32_t>(0, kMostEvents, "a log");
      if (reader_.failed()) return;
      if (FreshAt(head.word) <= now_) {
        SkipEvents(events);
        continue;
      }
      const auto locked = store_.logs_.Lock(head.fingerprint, now_, CallerHolds::kNothing);
      if (locked.absent) {
        ReadEvents(events, locked.slot->payload);
      } else {
        reader_.Refuse("a key comes twice");
      }
      store_.logs_.Unlock(locked, head.word);
      ++report_.keys;
    }
  }

  void SkipEvents(std::uint32_t events) {
    for (std::uint32_t i = 0; i < events && !reader_.failed(); ++i) {
      reader_.Get<std::int64_t>();
      reader_.Get<std::int64_t>();
    }
  }

  void ReadEvents(std::uint32_t events, std::uint64_t* payload) {
    ChunkedLog log(store_.events_, payload);
    Ticks last{0};
    bool complete = true;
    for (std::uint32_t i = 0; i < events && !reader_.failed(); ++i) {
      const Ticks at = Moved(reader_.Get<std::int64_t>());
      const std::int64_t room = std::int64_t{kMostEvents} - log.total();
      const auto cost =
          reader_.GetWithin<std::int64_t>(1, std::max<std::int64_t>(1, room), "a log");
      if (at < Ticks(0)) continue;  // Longer ago than anything counts.
      if (room < 1 || at < last) reader_.Refuse("a log that cannot be");
      if (reader_.failed()) break;
      last = at;
      complete = complete && MakeRoom(log);
      if (complete) log.Append({.at = at, .cost = cost});
    }
    log.Save();
    if (!complete) ++report_.forgotten;
  }

  bool MakeRoom(ChunkedLog& log) {
    for (int tries = 0; tries < kReclaimTries; ++tries) {
      if (log.MakeRoom()) return true;
      store_.ReclaimEvents(now_);
    }
    return log.MakeRoom();
  }

  // A log counts no more than twice its limit, and each event something.
  static constexpr std::uint32_t kMostEvents = 2 * kMaxLogEntries;

  MemoryStore& store_;
  SnapshotReader& reader_;
  LimitReader& limits_;
  const Ticks now_;
  std::int64_t shift_ = 0;
  SnapshotReport report_;
};

SnapshotReport MemoryStore::Save(SnapshotWriter& writer, LimitWriter& limits, Now now) {
  return Saver(*this, writer, limits, now).Save();
}

SnapshotReport MemoryStore::Load(SnapshotReader& reader, LimitReader& limits, Now now,
                                 Duration elapsed) {
  return Loader(*this, reader, limits, now).Load(elapsed);
}

}  // namespace weir
