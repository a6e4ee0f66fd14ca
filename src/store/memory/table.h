// A concurrent hash table from fingerprints to small states, made for rate limits: an entry whose
// time has passed is as good as absent, so entries are never deleted, only taken over.
//
// Lines of four slots; a key's home line is its fingerprint times the number of lines (the high
// half), so order is kept when the number changes. A key lives in its home line or in the first
// one after it that had room. A line that ever was full stays full (slots change owner but never
// become unused), so a search may stop at a line with an unused slot; beside the lines stands, for
// each of them, how far away the furthest of its keys was ever put, and there it stops too.
//
// - A hit takes no lock: it compares fingerprints and swaps the 16 bytes of one slot.
// - A miss takes the lock of the key's stripe, looks again, and takes over the first unused or
//   past slot. The stripe is a range of fingerprints: the same key always meets the same lock.
// - Growth makes a larger array and moves lines in order, a few at every insertion. Lines below
//   the frontier have moved. Moving a line takes the stripes of every key that may live in it.
// - At the byte budget no array grows any more: a newcomer takes the place of an entry of its
//   first two lines, of one that is not being denied if there is one, the soonest fresh first.
// - A table is made smaller as it is made larger, but by the one who asks for it: nobody else moves
//   lines or waits for room. Where there is none, entries give way as at the budget.
//
// Old arrays give their memory back but keep their addresses until the table ends: a thread that
// was overtaken reads zeros there, and looks again. Later arrays may be laid into the same
// addresses: what such a thread finds there under its key is the key's entry.
#pragma once

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/ticks.h"
#include "store/memory/pages.h"
#include "store/memory/slot.h"
#include "telemetry/counter.h"

namespace weir {

struct TableOptions {
  std::size_t first_lines = 256;

  // What growth must leave of the budget for others.
  std::size_t spare_bytes = 0;

  // An entry is taken over only when its time has been past for this long: another thread may
  // still be deciding on an older reading of the clock, for which the entry counts.
  Ticks grace = ToTicks(std::chrono::milliseconds(10));

  // Called with the payload of an entry that is given up, while its slot is locked.
  void (*release)(void* context, std::uint64_t* payload) = nullptr;
  void* release_context = nullptr;
};

struct TableCounters {
  Counter evicted_live;    // Entries that gave way though their time had not passed,
  Counter evicted_denied;  // and others that even were being denied then.
  Counter growths;
};

// Whether the caller holds slots of this table or another one while it asks for one more.
enum class CallerHolds : std::uint8_t { kNothing, kSlots };

// Sizes that a test makes small, so that it can try everything that may happen.
struct TableShape {
  // How many lines after its home a key may live. Runs of full lines this long do not come about
  // below the load at which a table grows.
  static constexpr std::size_t kMaxReach = 128;
  // The same once the table cannot grow any more: every line is full then, and looking far would
  // only cost time.
  static constexpr std::size_t kReachAtCap = 3;
  static constexpr int kStripeBits = 10;
  static constexpr std::size_t kLinesMovedAtOnce = 8;
};

template <std::size_t kPayloadWords, typename Atomics = HardwareAtomics,
          typename Shape = TableShape>
class Table {
 public:
  using TableSlot = Slot<kPayloadWords>;

  // A slot whose lock the caller holds, so that nobody else touches it and growth leaves it where
  // it is. Give it back with Unlock.
  struct Locked {
    TableSlot* slot;
    std::uint64_t word;  // As found, without the lock bit; 0 if the key was absent.
    bool absent;         // The key was not there; the payload is all zeros.
  };

  Table(ByteBudget& budget, TableOptions options) noexcept;
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Brings the key's home line into the cache.
  void Prefetch(std::uint64_t fingerprint) const noexcept;

  // Runs `step(word) -> word` on the key's word (0 if absent) until nobody interferes; what the
  // last run returned is stored. For tables without payload: takes no lock unless the key is
  // absent. An absent key whose word is already past is not stored.
  template <typename StepFunction>
  void Update(std::uint64_t fingerprint, Ticks now, StepFunction&& step) noexcept;

  // The same, tried once. False if the key is absent or somebody interfered: nothing was stored.
  template <typename StepFunction>
  bool TryUpdate(std::uint64_t fingerprint, StepFunction&& step) noexcept;

  // A key's word as it was at some moment, and where it was then.
  struct Seen {
    TableSlot* slot;  // Null if the key is absent or locked.
    std::uint64_t fingerprint;
    std::uint64_t word;
  };
  Seen See(std::uint64_t fingerprint) const noexcept;
  // Whether the key still has the word that was seen.
  static bool IsAsSeen(const Seen& key) noexcept {
    return Atomics::Load(*key.slot) == SlotHead{key.fingerprint, key.word};
  }
  // Stores a word for each of these keys, all in one moment. False if one of them is no longer as
  // it was seen: nothing was stored then. Waits for nobody, so they may come in any order; a key
  // that comes twice is in its own way. At least one.
  static bool TryStoreAll(std::span<const Seen> keys,
                          std::span<const std::uint64_t> words) noexcept;

  // Locks the key's slot, taking one over if the key is absent. A caller that holds no slot waits
  // for growth as long as another thread holds it up, yielding its CPU: the other thread must get
  // to run. A caller that holds a slot waits only briefly, because growth may wait for it, and then
  // evicts a key.
  Locked Lock(std::uint64_t fingerprint, Ticks now, CallerHolds caller_holds) noexcept;
  // Locks the key's slot if the key is present.
  std::optional<Locked> LockIfPresent(std::uint64_t fingerprint) noexcept;
  void Unlock(const Locked& locked, std::uint64_t word) noexcept;

  // Locks and hands over, one after the other, up to `lines` lines of entries from where the last
  // call stopped: for whoever looks for entries to give up. `visit(Locked)` must unlock.
  template <typename Visitor>
  void VisitSome(std::size_t lines, Visitor&& visit) noexcept;
  // The same for all lines, one after the other. Entries that others hold or move are left out.
  template <typename Visitor>
  void VisitEach(Visitor&& visit) noexcept;

  // Hands over every entry: visit(const TableSlot&). While nobody else uses the table. In an order
  // in which they can go into another: in that of the lines they would crowd its first ones, and
  // have it grow for that.
  template <typename Visitor>
  void VisitAll(Visitor&& visit) const noexcept;

  // Makes room for so many entries at once, as far as the budget goes. Before the table is used.
  void Expect(std::uint64_t entries) noexcept;

  // To be called when the budget has more than before: a table that was held back grows again.
  void UseMore(Ticks now) noexcept;

  // How many entries are not past. Looks at all of them, while others change them.
  std::size_t CountLive(Ticks now) const noexcept;
  // What it takes to hold so many entries, and what a table should be left at the least.
  static std::size_t BytesFor(std::size_t entries) noexcept {
    return Array{.lines = entries / kSlotsPerLine * 25 / 18 + 2}.bytes();
  }
  std::size_t least_bytes() const noexcept {
    constexpr std::size_t kFew = 256;
    return Array{.lines = std::clamp<std::size_t>(options_.first_lines, 1, kFew)}.bytes();
  }

  struct SmallerTable {
    std::size_t bytes;
    std::size_t live;  // How many entries are to be kept if there is room.
  };
  // Moves into an array of no more than these bytes, and returns when it is done; does nothing if
  // there is nothing to gain, or after thousands of moves. For one thread at a time that holds no
  // slot, while others use the table: they wait for no more than Shape::kLinesMovedAtOnce lines.
  void ShrinkTo(SmallerTable smaller, Ticks now) noexcept;

  // Past ones included.
  std::size_t entries() const noexcept { return used_slots_.load(std::memory_order_relaxed); }
  std::size_t bytes() const noexcept { return view_.load()->current.bytes(); }
  const TableCounters& counters() const noexcept { return counters_; }

  static constexpr std::size_t kLineBytes = kSlotsPerLine * sizeof(TableSlot);

 private:
  template <typename T>
  using Atomic = Atomics::template Atomic<T>;

  struct Array {
    TableSlot* slots = nullptr;
    std::uint8_t* reach = nullptr;  // By home line.
    std::uint64_t lines = 0;

    std::uint64_t HomeOf(std::uint64_t fingerprint) const noexcept {
      __extension__ using Wide = unsigned __int128;
      return static_cast<std::uint64_t>(static_cast<Wide>(fingerprint) * lines >> 64);
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NullPointerArithm): an array without slots has no lines.
    TableSlot* Line(std::uint64_t line) const noexcept { return slots + line * kSlotsPerLine; }
    std::uint64_t physical_lines() const noexcept { return lines + kMaxReach; }
    std::size_t slot_bytes() const noexcept { return physical_lines() * kLineBytes; }
    std::size_t bytes() const noexcept { return slot_bytes() + lines; }
  };

  // What a thread needs to find a key. Views are immutable but for the frontier, and live as long
  // as the table.
  struct View {
    Array current;
    Array old;                          // No lines unless growing or shrinking.
    Atomic<std::uint64_t> frontier{0};  // Lines of `old` that have moved.

    bool moving() const noexcept { return old.lines != 0; }
    bool shrinking() const noexcept { return old.lines > current.lines; }
  };

  // Addresses for an array of up to so many lines; those of `reach` come after them.
  struct Place {
    Pages pages;
    std::uint64_t lines = 0;
  };

  // The lock of one stripe, or the driver's seat: a flag, spun on.
  class FlagLock {
   public:
    explicit FlagLock(Atomic<bool>& flag) noexcept : flag_(flag) {}
    FlagLock(const FlagLock&) = delete;
    FlagLock& operator=(const FlagLock&) = delete;
    ~FlagLock() { Release(); }

    bool TryTake() noexcept {
      held_ = !flag_.load(std::memory_order_relaxed) &&
              !flag_.exchange(true, std::memory_order_acquire);
      return held_;
    }
    void Take() noexcept {
      for (unsigned spins = 0; !TryTake(); ++spins) Atomics::Pause(spins);
    }
    void Release() noexcept {
      if (std::exchange(held_, false)) flag_.store(false, std::memory_order_release);
    }

   private:
    Atomic<bool>& flag_;
    bool held_ = false;
  };

  // Null if the key is not there. FindIn leaves out the lines below `frontier`.
  TableSlot* FindIn(const Array& array, std::uint64_t frontier,
                    std::uint64_t fingerprint) const noexcept;
  TableSlot* FindBeyondHome(const Array& array, std::uint64_t home, std::uint64_t frontier,
                            std::uint64_t fingerprint) const noexcept;
  TableSlot* Find(const View& view, std::uint64_t fingerprint) const noexcept;
  TableSlot* FindWhileMoving(const View& view, std::uint64_t fingerprint) const noexcept;

  // Under the key's stripe lock: take over a slot for `head`; not before there is room for it,
  // unless the table cannot grow or the caller is not `patient`. Null: let go of the stripe and try
  // again.
  TableSlot* TakeOver(View& view, SlotHead head, Ticks now, bool patient) noexcept;
  TableSlot* TakeFree(const Array& array, std::size_t reach, SlotHead head, Ticks now) noexcept;
  TableSlot* Evict(const Array& array, SlotHead head) noexcept;
  // For an entry that moves: a place, or none if it is itself the first to go.
  TableSlot* Settle(const Array& array, std::size_t reach, SlotHead head, Ticks now) noexcept;
  struct Owned {
    TableSlot* slot;  // Null if there is none.
    SlotHead owner;
  };
  // Of the entries in the first two lines the first to give way. Leaves out those that are locked.
  Owned FirstToGo(const Array& array, std::uint64_t home) const noexcept;
  static std::pair<bool, Ticks> Rank(SlotHead head) noexcept {
    return {IsDenied(head.word), FreshAt(head.word)};
  }
  void CountEvicted(SlotHead head) noexcept {
    (IsDenied(head.word) ? counters_.evicted_denied : counters_.evicted_live).Add();
  }
  // Swaps `head` into the slot, and rids the payload of its previous owner.
  bool Replace(TableSlot& slot, SlotHead expected, SlotHead head) noexcept;
  void RaiseReach(const Array& array, std::uint64_t home, const TableSlot* slot) noexcept;
  bool IsPast(SlotHead head, Ticks now) const noexcept;

  struct Miss {
    TableSlot* found;     // The key was there after all,
    TableSlot* inserted;  // or it is now.
  };
  // Looks again under the stripe's lock, and inserts `head` unless it has no fingerprint.
  Miss FindOrInsert(std::uint64_t fingerprint, SlotHead head, Ticks now,
                    CallerHolds caller_holds) noexcept;

  static std::size_t StripeOf(std::uint64_t fingerprint) noexcept {
    return fingerprint >> (64 - kStripeBits);
  }

  // Growth. All but the first six are for the holder of `driver_`.
  // kHeldUp: a thread holds a slot of the line that is to move next. kNone: the table cannot grow.
  enum class Progress : std::uint8_t { kMade, kByOthers, kHeldUp, kNone };
  void GrowIfFull(Ticks now) noexcept;
  Progress GrowOn(Ticks now) noexcept;
  Progress StartGrowth() noexcept;
  Progress MoveSome(Ticks now) noexcept;
  void MoveAll(Ticks now) noexcept;
  Progress StartShrinking(std::uint64_t lines, std::size_t live) noexcept;
  bool MoveLine(View& view, std::uint64_t line, Ticks now) noexcept;
  bool LockLine(TableSlot* line) noexcept;
  std::uint64_t LinesAfterGrowth(const Array& array) const noexcept;
  bool MostlyPast(const Array& array, Ticks now) const noexcept;
  // How far from home entries may live while the table is made smaller.
  std::size_t ReachWhileShrinking() const noexcept {
    return shrinks_into_full_.load(std::memory_order_relaxed) ? Shape::kReachAtCap : kMaxReach;
  }
  // Somebody found no place: nobody needs to look as far for one any more.
  void NoteFull() noexcept {
    if (!shrinks_into_full_.load(std::memory_order_relaxed)) {
      shrinks_into_full_.store(true, std::memory_order_relaxed);
    }
  }
  // Null slots if the system refuses, or if fewer than `spare` places would be left.
  Array MapArray(std::uint64_t lines, std::size_t spare = 0) noexcept;
  template <typename Visitor>
  static void VisitLine(TableSlot* line, Visitor&& visit) noexcept;
  // Whether there will be views for one more move. Publishing them cannot fail then.
  bool PrepareViews() noexcept;
  std::size_t views_left() const noexcept { return kViewBlocks * kViewsPerBlock - views_made_; }
  View& PublishView(Array current, Array old) noexcept;
  // How many used slots call for growth: 72 %. Runs of full lines as long as kMaxReach do not come
  // about below that.
  static std::size_t FullAt(const Array& array) noexcept {
    return array.lines * kSlotsPerLine * 18 / 25;
  }
  std::pair<std::size_t, std::size_t> StripesOf(const Array& array, std::uint64_t first_line,
                                                std::uint64_t last_line) const noexcept;

  static constexpr std::size_t kMaxReach = Shape::kMaxReach;
  static constexpr int kStripeBits = Shape::kStripeBits;
  static constexpr std::size_t kStripes = std::size_t{1} << kStripeBits;
  static constexpr std::size_t kMaxPlaces = 128;
  static constexpr std::size_t kViewsPerBlock = 64;
  static constexpr std::size_t kViewBlocks = 128;
  // So many places and moves are kept for growth: enough for the largest table there can be.
  static constexpr std::size_t kMovesForGrowth = 60;
  static constexpr unsigned kPatience = 64;
  static constexpr std::uint64_t kVisitStride = 64;

  ByteBudget& budget_;
  const TableOptions options_;
  Atomic<View*> view_;
  Atomic<std::size_t> used_slots_{0};
  Atomic<std::size_t> grow_at_;  // How many used slots call for a look whether to grow.
  std::array<Atomic<bool>, kStripes> stripes_{};

  Atomic<bool> driver_{false};  // Held by the one thread that starts or drives growth.
  std::size_t places_made_ = 0;
  std::size_t current_place_ = 0;
  std::size_t old_place_ = 0;
  std::size_t views_made_ = 0;
  Atomic<bool> shrinks_into_full_{false};  // There is no room for all in the smaller array.
  Atomic<std::uint64_t> next_visited_line_{0};
  std::array<Place, kMaxPlaces> places_;
  std::array<std::unique_ptr<View[]>, kViewBlocks> views_;
  TableCounters counters_;
};

}  // namespace weir

#include "store/memory/table_growth.h"
#include "store/memory/table_lookup.h"
#include "store/memory/table_shrinking.h"
