// The store in this process's memory.
//
// State lives in tables by width: a bucket is the slot's own word and is charged without a lock;
// windows and logs carry a payload and change under their slot's lock. All of that is held under
// one cap in bytes; at the cap, entries give way as Table describes. Reservations and leases are
// beside it, in a table of their own that has a cap by number.
//
// A group locks its keys in one order for all threads, decides every charge, and only then writes.
// A group of several that some key denies already is answered before its keys are held together,
// and leaves nothing behind but the mark of that denial. A key that is absent is given a place only
// by what may leave something there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <weir/snapshot.h>

#include "algorithm/leaky_bucket.h"
#include "algorithm/sliding_log.h"
#include "algorithm/token_bucket.h"
#include "base/hash.h"
#include "base/ticks.h"
#include "store/memory/event_pool.h"
#include "store/memory/memory_store_types.h"
#include "store/memory/pages.h"
#include "store/memory/reservations.h"
#include "store/memory/table.h"
#include "store/store.h"

namespace weir {

class LimitReader;
class LimitWriter;
class SnapshotReader;
class SnapshotWriter;

// Thread-safe.
class MemoryStore final : public Store {
 public:
  MemoryStore(const MemoryStoreOptions& options, Now start);

  std::uint64_t Hash(std::string_view key) const noexcept override { return hasher_(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override;

  const KeyHasher& hasher() const noexcept { return hasher_; }

  // One charge by itself, or one group: the same without the ceremony.
  Decision Decide(const Charge& charge, Now now) noexcept;
  void Decide(Group& group, Now now) noexcept;
  // Several charges, each by itself; their memory is fetched in parallel.
  void DecideEach(std::span<const Charge> charges, Now now, std::span<Decision> decisions) noexcept;

  // Brings what the group needs into the cache, for those who have something else to do meanwhile.
  void Prefetch(const Group& group) noexcept {
    for (const Charge& charge : group.charges) Prefetch(charge);
  }

  MemoryStoreStats Stats() const noexcept;

  // Changes the cap, held between kMinCapBytes and kMaxCapBytes, while others use the store; for
  // one caller at a time. Up: at once. Down: returns when the store is within the cap. Memory that
  // nobody needs goes first; then entries give way as they do at the cap, those being denied last.
  // The caller does the work. Others wait for a bounded number of lines, or until one log was
  // moved.
  CapChange SetCap(std::size_t cap_bytes, Now now) noexcept;

  // Writes the state of every key that is not fresh, and what is reserved or leased. While nobody
  // else uses the store.
  SnapshotReport Save(SnapshotWriter& writer, LimitWriter& limits, Now now);
  // Takes up what Save wrote, in a store with the same hasher that nobody has used yet: as if it
  // had been here all the while, and time had gone on by `elapsed` since. If the reader has failed
  // afterwards, only a part was taken up.
  SnapshotReport Load(SnapshotReader& reader, LimitReader& limits, Now now, Duration elapsed);

 private:
  enum class Room : std::uint8_t { kBuckets, kWindows, kLogs, kShortStrict, kLongStrict };
  enum class Knock : bool { kNo, kYes };
  class LockedGroup;

  // What came of a charge.
  struct Taken {
    Decision decision;
    std::int64_t charged = 0;
    Ticks receipt{0};
  };

  static Room RoomFor(const Limit& limit) noexcept;
  static std::uint64_t FingerprintOf(std::uint64_t hash, const Limit& limit) noexcept;
  // Runs `visit(table)` on the table of a room.
  template <typename Visit>
  decltype(auto) In(Room room, Visit&& visit) noexcept {
    switch (room) {
      case Room::kBuckets:
        return visit(buckets_);
      case Room::kWindows:
        return visit(windows_);
      case Room::kLogs:
        return visit(logs_);
      case Room::kShortStrict:
        return visit(short_strict_);
      default:
        return visit(long_strict_);
    }
  }
  static constexpr std::size_t kTables = 5;
  // Runs `visit(table, its budget)` on every table, always in the same order.
  template <typename Visit>
  void InEach(Visit&& visit) noexcept {
    visit(buckets_, buckets_budget_);
    visit(windows_, windows_budget_);
    visit(logs_, logs_budget_);
    visit(short_strict_, short_strict_budget_);
    visit(long_strict_, long_strict_budget_);
  }
  template <typename AnyTable>
  static constexpr bool kIsBucketTable = std::is_same_v<std::remove_cvref_t<AnyTable>, Table<0>>;

  // As many as a Limit remembers.
  static constexpr std::size_t kMostPredecessors = 8;
  // How often a log that finds no memory makes others give theirs up before it says so.
  static constexpr int kReclaimTries = 4;

  static StepRequest RequestOf(const Charge& charge) noexcept;
  // `unlimited` and `deny` count nothing. Only who asks is denied: a reset has nothing to undo.
  static Decision DecideUncounted(const Charge& charge) noexcept;
  static Step<BucketState> StepBucket(const Limit& limit, std::uint64_t word,
                                      const StepRequest& request, Ticks now) noexcept {
    const BucketState state{.theoretical_arrival = FreshAt(word)};
    if (limit.spec().queue) return StepLeakyQueue(limit, state, request, now);
    return StepTokenBucket(limit, state, request, now);
  }
  // The word after a step. An admission that leaves something takes off the mark that keeps a key
  // from giving way to others, and a mere look does not; a denial sets it if somebody knocked, and
  // moves fresh_at only to mend what a broken clock left behind.
  static std::uint64_t WordAfter(std::uint64_t word, Ticks fresh_at, const Decision& decision,
                                 Knock knock, Effect effect) noexcept {
    const std::uint64_t marked = MakeWord(fresh_at) | (word & kDeniedBit);
    if (decision.allowed) {
      const bool eased = effect == Effect::kApply && decision.remaining > 0;
      return eased ? MakeWord(fresh_at) : marked;
    }
    if (decision.reason == Reason::kOverload) return word;  // Nobody knows how fresh it is.
    const bool knocked = knock == Knock::kYes && decision.reason == Reason::kLimited;
    return marked | (knocked ? kDeniedBit : 0);
  }
  static Knock KnockOf(const StepRequest& request) noexcept {
    return Takes(request) ? Knock::kYes : Knock::kNo;
  }

  // Whether the request may leave something under a key that is absent. If not, it is decided
  // without a place in the table: nobody should give way for nothing.
  static bool NeedsPlace(const Limit& limit, const StepRequest& request, Ticks now) noexcept;
  // Locks the key's slot; none if the key is absent and needs no place.
  template <typename AnyTable>
  static auto LockFor(AnyTable& table, const Limit& limit, std::uint64_t fingerprint,
                      const StepRequest& request, Ticks now, CallerHolds caller_holds) noexcept
      -> std::optional<typename AnyTable::Locked> {
    if (NeedsPlace(limit, request, now)) return table.Lock(fingerprint, now, caller_holds);
    return table.LockIfPresent(fingerprint);
  }
  // For wide keys, of what needs no place or merely asks.
  Taken DecideAbsent(const Limit& limit, const StepRequest& request, const Instant& at) noexcept;

  Taken Take(const Limit& limit, std::uint64_t hash, const StepRequest& request,
             const Instant& at) noexcept;
  Decision DecideSlowly(const Charge& charge, Now now) noexcept;
  Decision DecideOther(const Charge& charge, Now now, const Instant& at) noexcept;
  template <bool kQueue>
  static std::int64_t RoomOf(const Limit& limit) noexcept {
    return kQueue ? QueueRoom(limit) : limit.burst_tolerance();
  }
  template <bool kQueue>
  static std::uint64_t JudgeWord(const Limit& limit, const StepRequest& request, std::uint64_t word,
                                 Ticks now, BucketVerdict& verdict) noexcept;
  template <bool kQueue>
  Decision CheckBucket(const Charge& charge, Ticks now) noexcept;
  Taken ChargeBucket(const Limit& limit, std::uint64_t fingerprint, const StepRequest& request,
                     const Instant& at) noexcept;
  template <typename WideTable>
  Taken ChargeWide(WideTable& table, const Limit& limit, std::uint64_t fingerprint,
                   const StepRequest& request, const Instant& at) noexcept;
  Decision Look(const Limit& limit, std::uint64_t hash, StepRequest request, const Instant& at,
                Knock knock) noexcept;
  void Prefetch(const Charge& charge) noexcept;

  // Moves what the limit's predecessors counted for the key over to the limit itself.
  void CarryOver(const Limit& limit, std::uint64_t hash, Now now, const Instant& at) noexcept;
  const Limit* PredecessorWithState(const Limit& limit, std::uint64_t hash, Now now,
                                    Ticks at) noexcept;
  template <typename AnyTable>
  void CarryIn(AnyTable& table, const Limit& from, const Limit& to, std::uint64_t hash,
               const Instant& at) noexcept;
  bool Holds(const Limit& limit, std::uint64_t hash, Ticks now) noexcept;

  // The short way for groups of a few plain buckets and windows, the usual ones. False if somebody
  // interferes, or the group is not like that: nothing was decided then.
  bool TryShortWay(Group& group, Now now) noexcept;
  class ShortWay;
  void DecideGroup(Group& group, Now now) noexcept;
  static bool MerelyAsks(const Group& group) noexcept;
  void Answer(Group& group) noexcept;
  void SettleGroup(Group& group, Now now) noexcept;
  static const LimitInForce* InForce(const Reserved& reserved,
                                     std::span<const LimitInForce> in_force) noexcept;
  static StepRequest SettlementOf(const Reserved& reserved, const Limit& limit,
                                  std::int64_t total_cost) noexcept;

  class Saver;
  class Loader;

  // Frees chunks for event logs by giving up other logs, the least harmful first. False if it found
  // none.
  bool ReclaimEvents(Ticks now) noexcept;

  // Every part is assured this share of the cap, however greedy the others are.
  static constexpr std::size_t ShareOf(std::size_t cap) noexcept { return cap / 32; }
  void AssureShares(std::size_t cap) noexcept;
  void MakeSmaller(Ticks now) noexcept;
  void GiveUpPastLogs(Ticks now) noexcept;
  void LowerEvents(std::size_t bytes, Ticks now) noexcept;

  KeyHasher hasher_;
  Timeline timeline_;
  ByteBudget budget_;
  ByteBudget events_budget_{budget_, ShareOf(budget_.cap())};
  ByteBudget buckets_budget_{budget_, ShareOf(budget_.cap())};
  ByteBudget windows_budget_{budget_, ShareOf(budget_.cap())};
  ByteBudget logs_budget_{budget_, ShareOf(budget_.cap())};
  ByteBudget short_strict_budget_{budget_, ShareOf(budget_.cap())};
  ByteBudget long_strict_budget_{budget_, ShareOf(budget_.cap())};
  EventPool events_;
  Table<0> buckets_;
  Table<2> windows_;
  Table<2> logs_;
  Table<14> short_strict_;
  Table<62> long_strict_;
  Reservations reservations_;
  Counter evicted_logs_;  // For the sake of others' events; as in TableCounters.
  Counter evicted_denied_logs_;
  Counter shadow_denied_;
};

// Limits that keep different state under one key set it apart by their salt.
inline std::uint64_t MemoryStore::FingerprintOf(std::uint64_t hash, const Limit& limit) noexcept {
  const std::uint64_t fingerprint = hash ^ limit.state_salt();
  if (fingerprint == 0) [[unlikely]]
    return 1;  // 0 marks a slot that was never used.
  return fingerprint;
}

// A bucket's word after a check or a peek, and the verdict that led to it.
template <bool kQueue>
[[gnu::always_inline]] inline std::uint64_t MemoryStore::JudgeWord(
    const Limit& limit, const StepRequest& request, std::uint64_t word, Ticks now,
    BucketVerdict& verdict) noexcept {
  const BucketState state{.theoretical_arrival = FreshAt(word)};
  verdict = kQueue ? JudgeLeakyQueue(limit, state, request, now)
                   : JudgeTokenBucket(limit, state, request, now);
  const Ticks fresh_at = StateAfter(verdict, state, request, now).theoretical_arrival;
  if (Takes(request) && verdict.reason == Reason::kOk) {
    const bool used_up = RoomOf<kQueue>(limit) - verdict.level < limit.emission_interval();
    return MakeWord(fresh_at) | (used_up ? word & kDeniedBit : 0);
  }
  const bool knocked = Takes(request) && verdict.reason == Reason::kLimited;
  return MakeWord(fresh_at) | (word & kDeniedBit) | (knocked ? kDeniedBit : 0);
}

[[gnu::always_inline]] inline Decision MemoryStore::Decide(const Charge& charge, Now now) noexcept {
  const Limit& limit = *charge.limit;
  const bool replaces = limit.predecessor() != nullptr && now.steady < limit.predecessor_until();
  const bool one = charge.verb == Verb::kCheck && charge.cost == 1 && charge.wait == Duration(0);
  if (limit.is_plain_bucket() && one && !replaces) [[likely]] {
    const Ticks ticks = timeline_.TicksAt(now.steady);
    OneUnit unit;
    const bool done =
        buckets_.TryUpdate(FingerprintOf(charge.hash, limit), [&](std::uint64_t word) {
          unit = JudgeOneUnit(limit, {.theoretical_arrival = FreshAt(word)}, ticks);
          const std::uint64_t moved = MakeWord(ticks + Ticks(unit.level));
          if (!unit.allowed()) return moved | kDeniedBit;
          const bool used_up = -unit.excess < limit.emission_interval();
          return moved | (used_up ? word & kDeniedBit : 0);
        });
    if (done) [[likely]]
      return DescribeOneUnit(limit, charge.rule, unit);
  }
  return DecideSlowly(charge, now);
}

}  // namespace weir
