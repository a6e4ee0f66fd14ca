// Where the state of limits lives. One interface for every store: memory, Redis, and what stands
// in for them when they fail.
//
// A request's charges are a Group, decided all or nothing: if one enforced charge is denied, none
// is taken. Groups of one Submit are independent of each other and are given together so that a
// store can overlap their work.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <weir/decision.h>
#include <weir/limit.h>
#include <weir/result.h>

#include "algorithm/step.h"

namespace weir {

// What a charge took, for whoever may give it back.
struct Receipt {
  std::int64_t charged = 0;  // Less than the cost where debt was capped.
  Ticks at{0};               // Where it was taken from.
};

// What a key is counted for under a rule: besides what the rule is there for, its bans.
enum class Aspect : std::uint8_t { kRule, kBan, kDenials, kBanSteps };

// What is asked of one key under one limit.
struct Charge {
  std::string_view rule{};  // What the limit is called.
  Aspect aspect = Aspect::kRule;
  // Whom it counts, in the bytes [A-Za-z0-9._@%&=~-]; may be left out for a store in memory.
  std::string_view key{};
  std::uint64_t hash = 0;        // Of both, under the store's secret: see Store::Hash.
  const Limit* limit = nullptr;  // Stays good until the group is complete.
  std::int64_t cost = 1;         // 0 to kMaxCount.
  Verb verb = Verb::kCheck;      // Not kSettle: that is what kCommit and kCancel below do.
  bool shadow = false;           // Never vetoes; is charged only if the enforced charges pass.
  bool keeps_cost = false;       // kReserve: a commit leaves it at what it took.
  Duration wait{0};              // Buckets: book ahead this far at most; to the limit's max_wait.
  FailureMode on_failure = FailureMode::kStatic;  // What a guard does when the store fails.

  // kUnbook: what the charge that booked was told.
  std::int64_t reserved = 0;
  Ticks receipt{0};
};

// Whether its limit counts anything.
inline bool IsCounted(const Charge& charge) noexcept {
  return charge.limit->kind() == LimitKind::kCounted;
}
// Whether there is something to be allowed or denied.
inline bool Asks(const Charge& charge) noexcept {
  return charge.verb == Verb::kCheck || charge.verb == Verb::kPeek;
}
// Whether what it takes is a place, for a while.
inline bool TakesLease(const Charge& charge) noexcept {
  return IsCounted(charge) && charge.limit->algorithm() == Algorithm::kConcurrency &&
         charge.verb == Verb::kCheck && charge.cost != 0;
}

enum class Action : std::uint8_t {
  kDecide,   // Decide the charges.
  kReserve,  // Decide them, and remember what was taken for a later kCommit or kCancel.
  kCommit,   // What `reservation` took turned out to be `cost` for each of its charges.
  kCancel,   // It was not needed: give it back. For leases of a concurrency limit, release.
};

// A limit that counts now, for those who settle what was taken under it or under one before it.
struct LimitInForce {
  std::uint64_t rule = 0;  // The hash of its name.
  std::string_view name{};
  const Limit* limit = nullptr;
};

// Set in the ids of reservations that a shared store keeps, and in no others.
inline constexpr std::uint64_t kSharedReservation = std::uint64_t{1} << 63;

// The most charges a group may have.
inline constexpr std::size_t kMaxGroupCharges = 64;

struct Group {
  Action action = Action::kDecide;
  // kDecide, kReserve: at most kMaxGroupCharges, all with the same verb; those on the same key
  // under the same limit count as one.
  std::span<const Charge> charges{};
  std::span<Decision> decisions{};  // Out, kDecide and kReserve: one for each charge.
  // kCommit, kCancel: the limits in force now, because they may have changed since; by their rules,
  // ascending.
  std::span<const LimitInForce> in_force{};

  Duration ttl = std::chrono::seconds(60);  // kReserve: after this the charge simply stays.
  // In for kCommit and kCancel. Out for kReserve, and for kDecide if leases were taken.
  ReservationId reservation = ReservationId::kNone;
  std::int64_t cost = 0;    // kCommit.
  bool keeps_cost = false;  // kCommit: it cost what was reserved; `cost` does not count.

  // Out: whether all enforced charges passed, and the one decision that speaks for all.
  Decision decision{};
  // Out: why nothing was decided. Of kDeadline nobody knows whether it took effect.
  std::optional<Error> error{};
  // Out, shared stores: when it was decided, by the store's clock.
  WallTime decided_at{};
  // Out, if there is room for them and all enforced charges passed: what each charge would need to
  // be unbooked. Of charges on the same key the first speaks for all.
  std::span<Receipt> receipts{};
  // Out, kCommit and kCancel, if there is room for them: the hashes of the keys that were settled.
  std::span<std::uint64_t> settled{};
  std::size_t settled_count = 0;
};

class Completion {
 public:
  virtual ~Completion() = default;
  virtual void OnDecided(Group& group) noexcept = 0;
};

// Thread-safe, unless a store says otherwise: one that talks to servers belongs to a loop and its
// thread.
class Store {
 public:
  virtual ~Store() = default;

  virtual std::uint64_t Hash(std::string_view key) const noexcept = 0;

  // Decides every group as of `now` and tells `completion` of each, in order: a store in memory
  // before it returns, others later on the same thread. Groups and what they point to stay where
  // they are until then.
  virtual void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept = 0;

  // Whether it is known how it fares, well or not. One that talks to servers has yet to find out
  // while it connects to them for the first time.
  virtual bool IsSettled() noexcept { return true; }
};

// Decides one group of a store that completes before it returns.
void SubmitOne(Store& store, Group& group, Now now) noexcept;

// The decision that speaks for several: the denial with the longest wait, or, when all are
// allowed, the one nearest to exhaustion. Shadow charges have no say.
Decision Combine(std::span<const Charge> charges, std::span<const Decision> decisions) noexcept;

// Whether `a` is nearer to exhaustion: has less left in proportion or, of equals, resets later.
inline bool IsTighter(const Decision& a, const Decision& b) noexcept {
  __extension__ using Wide = __int128;
  const Wide left = Wide{a.remaining} * b.limit;
  const Wide right = Wide{b.remaining} * a.limit;
  return left != right ? left < right : a.reset_after > b.reset_after;
}
// Whether `a` speaks for both.
inline bool SpeaksBefore(const Decision& a, const Decision& b) noexcept {
  if (a.allowed != b.allowed) return !a.allowed;
  return a.allowed ? IsTighter(a, b) : a.retry_after > b.retry_after;
}
// When nobody has a say.
inline Decision SpeaksForNobody() noexcept { return {.allowed = true, .reason = Reason::kNoRule}; }

}  // namespace weir
