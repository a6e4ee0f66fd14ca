// Groups in memory: all or nothing, and seen by nobody half done.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/inline_vector.h"
#include "store/memory/memory_store.h"
#include "store/memory/payload.h"

namespace weir {

// The keys of one group, locked in one order for all threads. Charges on the same key under the
// same limit count as one of their summed cost; a shadow beside an enforced one adds nothing.
class MemoryStore::LockedGroup {
 public:
  LockedGroup(MemoryStore& store, Group& group, const Instant& at) noexcept
      : store_(store), group_(group), at_(at) {
    MergeCharges();
  }
  LockedGroup(const LockedGroup&) = delete;
  LockedGroup& operator=(const LockedGroup&) = delete;
  ~LockedGroup() {
    for (Entry& entry : entries_) Unlock(entry);
  }

  // Looks at every key by itself, without holding any. True if some enforced charge is denied.
  bool SomeDeny() noexcept;

  // Before any of these.
  void LockKeys() noexcept;
  // Works out what every charge is told. True if all enforced ones pass.
  bool DecideAll() noexcept;
  // Shows every key as it is rather than as it would have been: the group takes nothing after all.
  void ShowUntaken() noexcept;
  // Takes what DecideAll allowed, and notes under `reservation` what can be settled.
  void ApplyAll(ReservationId reservation) noexcept;

 private:
  struct Key {
    Room room;
    std::uint64_t fingerprint;
    bool shadow;
    std::size_t charge;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    explicit Entry(const Key& its_key) noexcept : key(its_key) {}

    Key key;
    StepRequest request;
    std::int64_t times = 1;    // How many charges it stands for.
    SlotHead* slot = nullptr;  // None before it is locked, and if the key needs no place.
    std::uint64_t word = 0;
    std::uint64_t word_after = 0;
    std::optional<PayloadState> state{};  // None for buckets.
    Taken taken;
  };

  void MergeCharges() noexcept;
  void LockEntry(Entry& entry) noexcept;
  void Unlock(Entry& entry) noexcept;
  void Do(Entry& entry, Effect effect) noexcept;
  // Hands every charge the decision on its key. True if all enforced ones are allowed.
  bool TellAll() noexcept;
  const Limit& LimitOf(const Entry& entry) const noexcept {
    return *group_.charges[entry.key.charge].limit;
  }

  MemoryStore& store_;
  Group& group_;
  const Instant& at_;
  InlineVector<Entry, kMaxGroupCharges> entries_;
  std::array<std::uint8_t, kMaxGroupCharges> entry_of_{};  // By charge.
  // The payload of keys that are absent and need no place: what is done to them leaves it blank.
  std::array<std::uint64_t, kMaxSubWindows + 2> blank_{};
};

void MemoryStore::LockedGroup::MergeCharges() noexcept {
  InlineVector<Key, kMaxGroupCharges> keys;
  for (std::size_t i = 0; i < group_.charges.size(); ++i) {
    const Charge& charge = group_.charges[i];
    if (charge.limit->kind() != LimitKind::kCounted) continue;
    keys.emplace_back(RoomFor(*charge.limit), FingerprintOf(charge.hash, *charge.limit),
                      charge.shadow, i);
  }
  std::ranges::sort(keys);
  for (const Key& key : keys) {
    const Charge& charge = group_.charges[key.charge];
    const bool again = !entries_.empty() && entries_.back().key.room == key.room &&
                       entries_.back().key.fingerprint == key.fingerprint;
    Entry& entry = again ? entries_.back() : entries_.emplace_back(key);
    entry_of_[key.charge] = static_cast<std::uint8_t>(entries_.size() - 1);
    if (again) {
      if (key.shadow != entry.key.shadow) continue;
      entry.request.cost += charge.cost;
      entry.request.reserved += charge.reserved;
      ++entry.times;
      continue;
    }
    entry.request = RequestOf(charge);
  }
}

void MemoryStore::LockedGroup::LockKeys() noexcept {
  for (Entry& entry : entries_) LockEntry(entry);
}

void MemoryStore::LockedGroup::LockEntry(Entry& entry) noexcept {
  const Limit& limit = LimitOf(entry);
  store_.In(entry.key.room, [&](auto& table) {
    const bool is_first = &entry == &entries_[0];
    const auto locked = LockFor(table, limit, entry.key.fingerprint, entry.request, at_.now,
                                is_first ? CallerHolds::kNothing : CallerHolds::kSlots);
    if (locked) {
      entry.slot = locked->slot;
      entry.word = locked->word;
      entry.word_after = locked->word;
    }
    if constexpr (!kIsBucketTable<decltype(table)>) {
      std::uint64_t* payload = locked ? locked->slot->payload : blank_.data();
      entry.state.emplace(limit, store_.events_, payload, FreshAt(entry.word));
    }
  });
}

void MemoryStore::LockedGroup::Unlock(Entry& entry) noexcept {
  if (entry.slot == nullptr) return;
  HardwareAtomics::StoreWord(*entry.slot, entry.word_after & ~kLockedBit);
}

void MemoryStore::LockedGroup::Do(Entry& entry, Effect effect) noexcept {
  Ticks fresh_at{0};
  bool stored = effect == Effect::kApply;
  if (!entry.state) {
    const auto step = StepBucket(LimitOf(entry), entry.word, entry.request, at_.now);
    entry.taken = {.decision = step.decision, .charged = step.charged, .receipt = step.receipt};
    fresh_at = step.next.theoretical_arrival;
  } else {
    const PayloadStep step = entry.state->Do(entry.request, at_, effect);
    entry.taken = {.decision = step.decision, .charged = step.charged, .receipt = step.receipt};
    fresh_at = step.fresh_at;
    stored = step.stored;
  }
  const bool denied = !entry.taken.decision.allowed;
  if (stored || denied) {
    entry.word_after =
        WordAfter(entry.word, fresh_at, entry.taken.decision, KnockOf(entry.request), effect);
  }
}

// Most denials need no lock: one limit that denies at this instant is enough.
bool MemoryStore::LockedGroup::SomeDeny() noexcept {
  for (Entry& entry : entries_) {
    const Verb verb = entry.request.verb;
    const bool asks = verb == Verb::kCheck || verb == Verb::kPeek;
    StepRequest request = entry.request;
    if (!asks) request.cost = 0;
    Decision& decision = entry.taken.decision;
    decision = store_.Look(LimitOf(entry), group_.charges[entry.key.charge].hash, request, at_,
                           KnockOf(entry.request));
    if (!asks) decision.allowed = true;
  }
  return !TellAll();
}

bool MemoryStore::LockedGroup::DecideAll() noexcept {
  for (Entry& entry : entries_) {
    Do(entry, Effect::kDecideOnly);
    for (int tries = 0; entry.taken.decision.reason == Reason::kOverload && tries < kReclaimTries;
         ++tries) {
      store_.ReclaimEvents(at_.now);
      Do(entry, Effect::kDecideOnly);
    }
  }
  return TellAll();
}

bool MemoryStore::LockedGroup::TellAll() noexcept {
  bool pass = true;
  for (std::size_t i = 0; i < group_.charges.size(); ++i) {
    const Charge& charge = group_.charges[i];
    group_.decisions[i] = charge.limit->kind() == LimitKind::kCounted
                              ? entries_[entry_of_[i]].taken.decision
                              : DecideUncounted(charge);
    pass = pass && (charge.shadow || group_.decisions[i].allowed);
  }
  return pass;
}

void MemoryStore::LockedGroup::ShowUntaken() noexcept {
  for (Entry& entry : entries_) {
    if (!entry.taken.decision.allowed) continue;  // Says how things are already.
    const Taken told = std::exchange(entry.taken, {});
    const StepRequest request = std::exchange(entry.request, {.verb = Verb::kPeek, .cost = 0});
    Do(entry, Effect::kDecideOnly);
    const Decision seen = std::exchange(entry.taken, told).decision;
    entry.request = request;
    entry.taken.decision.remaining = seen.remaining;
    entry.taken.decision.reset_after = seen.reset_after;
  }
  TellAll();
}

void MemoryStore::LockedGroup::ApplyAll(ReservationId reservation) noexcept {
  for (Entry& entry : entries_) {
    if (!entry.taken.decision.allowed) continue;  // A shadow that would have denied.
    Do(entry, Effect::kApply);
    const Limit& limit = LimitOf(entry);
    const bool is_lease = limit.algorithm() == Algorithm::kConcurrency && entry.taken.charged != 0;
    // Even nothing is reserved: the real cost comes with the commit.
    if (group_.action != Action::kReserve && !is_lease) continue;
    const Charge& charge = group_.charges[entry.key.charge];
    // Of what merely asked beside the others there is nothing to settle.
    if (charge.keeps_cost && charge.cost == 0) continue;
    store_.reservations_.Add(reservation, {.rule = store_.Hash(charge.rule),
                                           .hash = charge.hash,
                                           .limit = &limit,
                                           .shadow = charge.shadow,
                                           .keeps_cost = charge.keeps_cost,
                                           .times = entry.times,
                                           .cost = entry.taken.charged,
                                           .receipt = entry.taken.receipt});
  }
  for (std::size_t i = 0; i < group_.charges.size(); ++i) {
    if (group_.charges[i].limit->kind() != LimitKind::kCounted) continue;
    const Entry& entry = entries_[entry_of_[i]];
    group_.decisions[i] = entry.taken.decision;
    if (i >= group_.receipts.size()) continue;
    const std::int64_t charged = entry.key.charge == i ? entry.taken.charged : 0;
    group_.receipts[i] = {.charged = charged, .at = entry.taken.receipt};
  }
}

void MemoryStore::Decide(Group& group, Now now) noexcept {
  group.error.reset();
  if (TryShortWay(group, now)) [[likely]]
    return;
  if (group.action == Action::kCommit || group.action == Action::kCancel) {
    SettleGroup(group, now);
    return;
  }
  if (group.charges.size() > kMaxGroupCharges || group.decisions.size() < group.charges.size()) {
    group.error = Error{.code = ErrorCode::kInvalidArgument,
                        .message = "charges: " + std::to_string(group.charges.size()) + " with " +
                                   std::to_string(group.decisions.size()) +
                                   " decisions are not allowed; write at most " +
                                   std::to_string(kMaxGroupCharges) + ", and a decision for each"};
    return;
  }
  const auto other = [&](const Charge& charge) { return charge.verb != group.charges[0].verb; };
  if (std::ranges::any_of(group.charges, other)) {
    group.error = Error{.code = ErrorCode::kInvalidArgument,
                        .message =
                            "verb: the charges of a group have different ones; write the "
                            "same for all of them"};
    return;
  }
  DecideGroup(group, now);
}

void MemoryStore::Answer(Group& group) noexcept {
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    const Charge& charge = group.charges[i];
    group.decisions[i].rule = charge.rule;
    group.decisions[i].reservation = group.reservation;
    if (charge.shadow && !group.decisions[i].allowed && Takes(RequestOf(charge))) {
      shadow_denied_.Add();
    }
  }
  group.decision = Combine(group.charges, group.decisions);
  group.decision.reservation = group.reservation;
}

// A group that takes nothing needs no lock either.
bool MemoryStore::MerelyAsks(const Group& group) noexcept {
  const auto changes = [](const Charge& charge) { return Changes(RequestOf(charge)); };
  return group.action == Action::kDecide && std::ranges::none_of(group.charges, changes);
}

void MemoryStore::DecideGroup(Group& group, Now now) noexcept {
  const Instant at = timeline_.At(now);
  group.reservation = ReservationId::kNone;
  bool leases = false;
  bool only_shadows_lease = true;
  Ticks longest_lease{0};
  for (const Charge& charge : group.charges) {
    const Limit& limit = *charge.limit;
    if (limit.predecessor() != nullptr) CarryOver(limit, charge.hash, now, at);
    if (!TakesLease(charge)) continue;
    leases = true;
    only_shadows_lease = only_shadows_lease && charge.shadow;
    longest_lease = std::max(longest_lease, ToTicks(limit.spec().lease));
  }
  const bool merely_asks = MerelyAsks(group);
  LockedGroup locked(*this, group, at);
  if ((merely_asks || group.charges.size() > 1) && (locked.SomeDeny() || merely_asks)) {
    Answer(group);
    return;
  }

  locked.LockKeys();
  bool pass = locked.DecideAll();
  const bool noted = group.action == Action::kReserve || leases;
  if (pass && noted) {
    const Ticks ttl = group.action == Action::kReserve ? ToTicks(group.ttl) : longest_lease;
    group.reservation = reservations_.Open(at.now + ttl, at.now);
    // Shadows stop nobody: without a record, their leases end when their time is over.
    const bool needed = group.action == Action::kReserve || !only_shadows_lease;
    if (group.reservation == ReservationId::kNone && needed) {
      locked.ShowUntaken();
      for (Decision& decision : group.decisions.first(group.charges.size())) {
        decision.allowed = false;
        decision.reason = Reason::kOverload;
        decision.retry_after = ToDuration(ttl);
        decision.delay = Duration(0);
      }
      pass = false;
    }
  } else if (!pass) {
    locked.ShowUntaken();
  }
  if (pass) locked.ApplyAll(group.reservation);
  Answer(group);
}

// The limit that goes on with what the reservation's counted: the same, or its successor. A rule
// may have several that share their state; of these it is the one that the reservation was under.
const LimitInForce* MemoryStore::InForce(const Reserved& reserved,
                                         std::span<const LimitInForce> in_force) noexcept {
  const LimitInForce* sharing = nullptr;
  for (const LimitInForce& candidate :
       std::ranges::equal_range(in_force, reserved.rule, {}, &LimitInForce::rule)) {
    for (const Limit* limit = candidate.limit; limit != nullptr; limit = limit->predecessor()) {
      if (limit->state_salt() != reserved.limit->state_salt()) continue;
      if (limit->spec() == reserved.limit->spec()) return &candidate;
      if (sharing == nullptr) sharing = &candidate;
    }
  }
  return sharing;
}

StepRequest MemoryStore::SettlementOf(const Reserved& reserved, const Limit& limit,
                                      std::int64_t total_cost) noexcept {
  StepRequest request{.verb = Verb::kSettle,
                      .cost = total_cost,
                      .reserved = reserved.cost,
                      .receipt = reserved.receipt};
  const Limit& before = *reserved.limit;
  const bool scaled = before.state_salt() != limit.state_salt();
  if (scaled && request.cost < request.reserved) {
    // What was taken has been carried over in proportion, and so is what goes back; rounded down,
    // because giving back more than was carried would let too much through.
    __extension__ using Wide = __int128;
    const bool bucket = RoomFor(limit) == Room::kBuckets;
    const Wide part = bucket ? before.emission_interval() : limit.capacity();
    const Wide whole = bucket ? limit.emission_interval() : before.capacity();
    request.reserved = static_cast<std::int64_t>((request.reserved - request.cost) * part / whole);
    request.cost = 0;
  }
  return request;
}

void MemoryStore::SettleGroup(Group& group, Now now) noexcept {
  const Instant at = timeline_.At(now);
  const bool commits = group.action == Action::kCommit;
  const std::int64_t cost = commits ? group.cost : 0;
  group.decision = {.allowed = true, .reason = Reason::kNoRule, .cost = cost};
  group.settled_count = 0;
  bool first = true;
  const bool found = reservations_.Take(group.reservation, at.now, [&](const Reserved& reserved) {
    const LimitInForce* in_force = InForce(reserved, group.in_force);
    const Limit& limit = in_force != nullptr ? *in_force->limit : *reserved.limit;
    if (limit.predecessor() != nullptr) CarryOver(limit, reserved.hash, now, at);
    const bool keeps = commits && (reserved.keeps_cost || group.keeps_cost);
    const std::int64_t its_cost = keeps ? reserved.cost / reserved.times : cost;
    const std::int64_t total = keeps ? reserved.cost : its_cost * reserved.times;
    Decision decision =
        Take(limit, reserved.hash, SettlementOf(reserved, limit, total), at).decision;
    decision.cost = its_cost;
    if (in_force != nullptr) decision.rule = in_force->name;
    if (group.settled_count < group.settled.size()) {
      group.settled[group.settled_count++] = reserved.hash;
    }
    if (reserved.shadow) return;  // Has no say.
    if (std::exchange(first, false) || IsTighter(decision, group.decision)) {
      group.decision = decision;
    }
  });
  if (!found) {
    group.error = Error{.code = ErrorCode::kNotFound,
                        .message = "reservation: unknown, settled before, or expired"};
  }
}

}  // namespace weir
