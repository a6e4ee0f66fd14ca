#include "store/memory/memory_store.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "store/memory/payload.h"

namespace weir {
namespace {

// How many charges have their memory fetched before the first of them is decided.
constexpr std::size_t kPrefetched = 32;

KeyHasher HasherFor(const MemoryStoreOptions& options) {
  if (options.hasher) return *options.hasher;
  if (options.hash_seed == 0) return KeyHasher(options.hash);
  return {options.hash, options.hash_seed};
}

// Room for the keys at a load where nearly all are found at home; where memory does not matter, for
// twice as many.
std::size_t LinesFor(const MemoryStoreOptions& options) {
  constexpr std::size_t kFew = 16'384;
  const std::size_t most = options.cap_bytes / 2 / Table<0>::kLineBytes;
  const std::size_t keys = std::min(options.expected_keys, most * kSlotsPerLine);
  const std::size_t slots = keys <= kFew ? keys * 2 : keys * 7 / 4;
  return std::clamp<std::size_t>(slots / kSlotsPerLine, 256, std::max<std::size_t>(256, most));
}

}  // namespace

MemoryStore::MemoryStore(const MemoryStoreOptions& options, Now start)
    : hasher_(HasherFor(options)),
      timeline_(start),
      budget_(std::max(options.cap_bytes, kMinCapBytes)),
      events_(events_budget_, 0),
      buckets_(buckets_budget_, {.first_lines = LinesFor(options)}),
      windows_(windows_budget_, {.first_lines = 64}),
      logs_(logs_budget_, {.first_lines = 64,
                           .release =
                               [](void* events, std::uint64_t* payload) {
                                 static_cast<EventPool*>(events)->GiveBackLog(payload);
                               },
                           .release_context = &events_}),
      short_strict_(short_strict_budget_, {.first_lines = 16}),
      long_strict_(long_strict_budget_, {.first_lines = 16}),
      reservations_(options.max_reservations) {}

StepRequest MemoryStore::RequestOf(const Charge& charge) noexcept {
  return {.verb = charge.verb,
          .cost = charge.cost,
          // Held within bounds first: in ticks there is less room than in nanoseconds.
          .wait = ToTicks(
              std::clamp(charge.wait, Duration(0), ToDuration(Ticks(charge.limit->max_wait())))),
          .reserved = charge.reserved,
          .receipt = charge.receipt};
}

Decision MemoryStore::DecideUncounted(const Charge& charge) noexcept {
  const Limit& limit = *charge.limit;
  Decision decision{.limit = limit.capacity(), .remaining = limit.capacity(), .cost = charge.cost};
  const bool asks = charge.verb == Verb::kCheck || charge.verb == Verb::kPeek;
  decision.allowed = limit.kind() == LimitKind::kUnlimited || !asks;
  decision.reason = decision.allowed ? Reason::kOk : Reason::kDenyList;
  if (!decision.allowed) decision.retry_after = kNever;
  return decision;
}

MemoryStore::Room MemoryStore::RoomFor(const Limit& limit) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      return Room::kBuckets;
    case Algorithm::kSlidingLog:
    case Algorithm::kConcurrency:
      return Room::kLogs;
    default:
      if (!limit.spec().strict) return Room::kWindows;
      return limit.spec().sub_windows <= 12 ? Room::kShortStrict : Room::kLongStrict;
  }
}

// The decision is made from the verdict once the table is done with it: a Decision carried through
// the table's loop would cost more than the rest.
template <bool kQueue>
Decision MemoryStore::CheckBucket(const Charge& charge, Ticks now) noexcept {
  const Limit& limit = *charge.limit;
  const StepRequest request = RequestOf(charge);
  BucketVerdict verdict{};
  buckets_.Update(FingerprintOf(charge.hash, limit), now, [&](std::uint64_t word) {
    return JudgeWord<kQueue>(limit, request, word, now, verdict);
  });
  return DescribeBucket(limit, charge.rule, request, verdict, RoomOf<kQueue>(limit));
}

MemoryStore::Taken MemoryStore::ChargeBucket(const Limit& limit, std::uint64_t fingerprint,
                                             const StepRequest& request,
                                             const Instant& at) noexcept {
  Step<BucketState> step;
  buckets_.Update(fingerprint, at.now, [&](std::uint64_t word) {
    step = StepBucket(limit, word, request, at.now);
    const Effect effect = Changes(request) ? Effect::kApply : Effect::kDecideOnly;
    return WordAfter(word, step.next.theoretical_arrival, step.decision, KnockOf(request), effect);
  });
  return {.decision = step.decision, .charged = step.charged, .receipt = step.receipt};
}

bool MemoryStore::NeedsPlace(const Limit& limit, const StepRequest& request, Ticks now) noexcept {
  const bool ends_lease =
      limit.algorithm() == Algorithm::kConcurrency && request.verb == Verb::kSettle;
  if (!Adds(request) || ends_lease) return false;
  if (RoomFor(limit) == Room::kBuckets) return StepBucket(limit, 0, request, now).decision.allowed;
  return JudgeCount(limit, 0, request).allowed;
}

MemoryStore::Taken MemoryStore::DecideAbsent(const Limit& limit, const StepRequest& request,
                                             const Instant& at) noexcept {
  std::array<std::uint64_t, kMaxSubWindows + 2> blank{};
  PayloadState state(limit, events_, blank.data(), Ticks(0));
  const PayloadStep step = state.Do(request, at, Effect::kDecideOnly);
  return {.decision = step.decision, .charged = step.charged, .receipt = step.receipt};
}

template <typename WideTable>
MemoryStore::Taken MemoryStore::ChargeWide(WideTable& table, const Limit& limit,
                                           std::uint64_t fingerprint, const StepRequest& request,
                                           const Instant& at) noexcept {
  const auto locked = LockFor(table, limit, fingerprint, request, at.now, CallerHolds::kNothing);
  if (!locked) return DecideAbsent(limit, request, at);
  PayloadState state(limit, events_, locked->slot->payload, FreshAt(locked->word));
  PayloadStep step = state.Do(request, at, Effect::kApply);
  for (int tries = 0; step.decision.reason == Reason::kOverload && tries < kReclaimTries; ++tries) {
    ReclaimEvents(at.now);
    step = state.Do(request, at, Effect::kApply);
  }
  table.Unlock(*locked, WordAfter(locked->word, step.fresh_at, step.decision, KnockOf(request),
                                  Effect::kApply));
  return {.decision = step.decision, .charged = step.charged, .receipt = step.receipt};
}

MemoryStore::Taken MemoryStore::Take(const Limit& limit, std::uint64_t hash,
                                     const StepRequest& request, const Instant& at) noexcept {
  const std::uint64_t fingerprint = FingerprintOf(hash, limit);
  const Room room = RoomFor(limit);
  if (room == Room::kBuckets) [[likely]]
    return ChargeBucket(limit, fingerprint, request, at);
  if (request.verb == Verb::kPeek || (request.verb == Verb::kCheck && request.cost == 0)) {
    return {.decision = Look(limit, hash, request, at, Knock::kNo)};
  }
  return In(room, [&](auto& table) -> Taken {
    if constexpr (kIsBucketTable<decltype(table)>) {
      return ChargeBucket(limit, fingerprint, request, at);
    } else {
      return ChargeWide(table, limit, fingerprint, request, at);
    }
  });
}

// What a request would be told. Takes nothing, but a knock on a closed door is remembered, so that
// the key does not give way to others.
Decision MemoryStore::Look(const Limit& limit, std::uint64_t hash, StepRequest request,
                           const Instant& at, Knock knock) noexcept {
  const std::uint64_t fingerprint = FingerprintOf(hash, limit);
  request.verb = Verb::kPeek;
  return In(RoomFor(limit), [&](auto& table) -> Decision {
    if constexpr (kIsBucketTable<decltype(table)>) {
      Step<BucketState> step;
      table.Update(fingerprint, at.now, [&](std::uint64_t word) {
        step = StepBucket(limit, word, request, at.now);
        return WordAfter(word, step.next.theoretical_arrival, step.decision, knock,
                         Effect::kDecideOnly);
      });
      return step.decision;
    } else {
      const auto locked = table.LockIfPresent(fingerprint);
      if (!locked) return DecideAbsent(limit, request, at).decision;
      PayloadState state(limit, events_, locked->slot->payload, FreshAt(locked->word));
      const PayloadStep step = state.Do(request, at, Effect::kDecideOnly);
      const Ticks fresh_at = step.stored ? step.fresh_at : FreshAt(locked->word);
      table.Unlock(*locked,
                   WordAfter(locked->word, fresh_at, step.decision, knock, Effect::kDecideOnly));
      return step.decision;
    }
  });
}

bool MemoryStore::Holds(const Limit& limit, std::uint64_t hash, Ticks now) noexcept {
  const std::uint64_t fingerprint = FingerprintOf(hash, limit);
  return In(RoomFor(limit), [&](auto& table) {
    const auto locked = table.LockIfPresent(fingerprint);
    if (locked) table.Unlock(*locked, locked->word);
    return locked && FreshAt(locked->word) > now;
  });
}

const Limit* MemoryStore::PredecessorWithState(const Limit& limit, std::uint64_t hash, Now now,
                                               Ticks at) noexcept {
  std::array<const Limit*, kMostPredecessors> line{};  // Newest first.
  std::size_t size = 0;
  const Limit* heir = &limit;
  for (const Limit* from = limit.predecessor(); from != nullptr && size < line.size();
       from = from->predecessor()) {
    if (now.steady >= heir->predecessor_until()) break;
    if (Holds(*from, hash, at)) return from;
    line[size++] = from;
    heir = from;
  }
  // Somebody who still knows only a predecessor may have moved the state there behind our back.
  // State moves from older to newer, so whoever looks in this order cannot miss it.
  if (size > 1) {
    while (size-- > 0) {
      if (Holds(*line[size], hash, at)) return line[size];
    }
  }
  return nullptr;
}

void MemoryStore::CarryOver(const Limit& limit, std::uint64_t hash, Now now,
                            const Instant& at) noexcept {
  const Limit* from = PredecessorWithState(limit, hash, now, at.now);
  // Several may have some, of requests that were slow; and it may be moved between look and lock.
  for (std::size_t i = 0; i < kMostPredecessors && from != nullptr; ++i) {
    In(RoomFor(limit), [&](auto& table) { CarryIn(table, *from, limit, hash, at); });
    from = PredecessorWithState(limit, hash, now, at.now);
  }
}

template <typename AnyTable>
void MemoryStore::CarryIn(AnyTable& table, const Limit& from, const Limit& to, std::uint64_t hash,
                          const Instant& at) noexcept {
  // In the order in which groups lock.
  const std::uint64_t old_key = FingerprintOf(hash, from);
  const std::uint64_t new_key = FingerprintOf(hash, to);
  const auto first = table.Lock(std::min(old_key, new_key), at.now, CallerHolds::kNothing);
  const auto second = table.Lock(std::max(old_key, new_key), at.now, CallerHolds::kSlots);
  const auto& old_state = old_key < new_key ? first : second;
  const auto& new_state = old_key < new_key ? second : first;

  std::uint64_t old_word = old_state.word;
  std::uint64_t new_word = new_state.word;
  const bool counts = FreshAt(old_word) > at.now;
  const bool carried_already = FreshAt(new_word) > at.now;
  // Added to what the new limit has counted: there may be more to come from somebody who had taken
  // up the old one before it changed.
  if (counts) {
    Ticks fresh_at{0};
    if constexpr (kIsBucketTable<AnyTable>) {
      const BucketState old_bucket{.theoretical_arrival = FreshAt(old_word)};
      fresh_at = CarryBucket(from, to, old_bucket, at.now).theoretical_arrival;
      if (carried_already) fresh_at += FreshAt(new_word) - at.now;
    } else if (carried_already) {
      PayloadState late(from, events_, old_state.slot->payload, FreshAt(old_word));
      late.CarryTo(to);
      PayloadState heir(to, events_, new_state.slot->payload, FreshAt(new_word));
      fresh_at = heir.Absorb(late, at);
    } else {
      // Swapped rather than copied: each payload goes on having one owner.
      std::swap_ranges(std::begin(old_state.slot->payload), std::end(old_state.slot->payload),
                       std::begin(new_state.slot->payload));
      PayloadState state(from, events_, new_state.slot->payload, FreshAt(old_word));
      fresh_at = state.CarryTo(to);
    }
    new_word = MakeWord(fresh_at) | (new_word & kDeniedBit);
    old_word = 0;
  }
  table.Unlock(old_state, old_word);
  table.Unlock(new_state, new_word);
}

bool MemoryStore::ReclaimEvents(Ticks now) noexcept {
  // A sample is enough; a small table is looked at as a whole.
  constexpr std::size_t kLinesPerLook = 4;
  constexpr std::size_t kMostLines = 1024;
  constexpr std::size_t kMostSeen = 64;
  using Locked = decltype(logs_)::Locked;
  const auto rank = [](const Locked& it) { return std::pair(IsDenied(it.word), FreshAt(it.word)); };

  // The best to give up so far, kept locked. Nobody is waited for while it is.
  std::optional<Locked> victim;
  bool freed = false;
  std::size_t seen = 0;
  const auto visit = [&](Locked locked) {
    const bool holds_chunks = locked.slot->payload[0] != 0;
    const bool past = FreshAt(locked.word) <= now;
    if (holds_chunks && past) {
      events_.GiveBackLog(locked.slot->payload);
      freed = true;
    } else if (holds_chunks) {
      ++seen;
      if (!victim) {
        victim = locked;
        return;
      }
      if (rank(locked) < rank(*victim)) std::swap(locked, *victim);
    }
    logs_.Unlock(locked, locked.word);
  };
  for (std::size_t lines = 0; lines < kMostLines && seen < kMostSeen && !freed;
       lines += kLinesPerLook) {
    logs_.VisitSome(kLinesPerLook, visit);
  }
  if (!victim) return freed;
  if (!freed) {
    events_.GiveBackLog(victim->slot->payload);
    (IsDenied(victim->word) ? evicted_denied_logs_ : evicted_logs_).Add();
  }
  logs_.Unlock(*victim, freed ? victim->word : 0);
  return true;
}

// Apart, so that the short way needs to keep nothing for it.
[[gnu::noinline]] Decision MemoryStore::DecideSlowly(const Charge& charge, Now now) noexcept {
  const Limit& limit = *charge.limit;
  const Instant at = timeline_.At(now);
  if (limit.predecessor() != nullptr) CarryOver(limit, charge.hash, now, at);
  const bool asks = charge.verb == Verb::kCheck || charge.verb == Verb::kPeek;
  const bool bucket = limit.kind() == LimitKind::kCounted && RoomFor(limit) == Room::kBuckets;
  if (!bucket || !asks) return DecideOther(charge, now, at);
  return limit.spec().queue ? CheckBucket<true>(charge, at.now)
                            : CheckBucket<false>(charge, at.now);
}

Decision MemoryStore::DecideOther(const Charge& charge, Now now, const Instant& at) noexcept {
  Decision decision;
  if (charge.limit->kind() != LimitKind::kCounted) {
    decision = DecideUncounted(charge);
  } else if (charge.limit->algorithm() == Algorithm::kConcurrency) {
    Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}};
    DecideGroup(group, now);
    decision = group.decision;
  } else {
    decision = Take(*charge.limit, charge.hash, RequestOf(charge), at).decision;
  }
  decision.rule = charge.rule;
  return decision;
}

void MemoryStore::Prefetch(const Charge& charge) noexcept {
  const Limit& limit = *charge.limit;
  In(RoomFor(limit), [&](auto& table) { table.Prefetch(FingerprintOf(charge.hash, limit)); });
}

void MemoryStore::DecideEach(std::span<const Charge> charges, Now now,
                             std::span<Decision> decisions) noexcept {
  for (std::size_t done = 0; done < charges.size(); done += kPrefetched) {
    const auto batch = charges.subspan(done, std::min(kPrefetched, charges.size() - done));
    for (const Charge& charge : batch) Prefetch(charge);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      // Made in place: to copy a Decision costs as much as to decide.
      new (&decisions[done + i]) Decision(Decide(batch[i], now));
    }
  }
}

void MemoryStore::Submit(std::span<Group> groups, Now now, Completion& completion) noexcept {
  for (std::size_t done = 0; done < groups.size(); done += kPrefetched) {
    const auto batch = groups.subspan(done, std::min(kPrefetched, groups.size() - done));
    for (const Group& group : batch) Prefetch(group);
    for (Group& group : batch) {
      Decide(group, now);
      completion.OnDecided(group);
    }
  }
}

MemoryStoreStats MemoryStore::Stats() const noexcept {
  MemoryStoreStats stats;
  for (const ByteBudget* part : {&events_budget_, &buckets_budget_, &windows_budget_, &logs_budget_,
                                 &short_strict_budget_, &long_strict_budget_}) {
    stats.bytes += part->used();
  }
  stats.reservations = reservations_.size();
  stats.event_chunks = events_.chunks_in_use();
  stats.shadow_denied = shadow_denied_.Value();
  stats.evicted_live = evicted_logs_.Value();
  stats.evicted_denied = evicted_denied_logs_.Value();
  const auto add = [&](const auto& table) {
    stats.entries += table.entries();
    stats.evicted_live += table.counters().evicted_live.Value();
    stats.evicted_denied += table.counters().evicted_denied.Value();
    stats.growths += table.counters().growths.Value();
  };
  add(buckets_);
  add(windows_);
  add(logs_);
  add(short_strict_);
  add(long_strict_);
  return stats;
}

}  // namespace weir
