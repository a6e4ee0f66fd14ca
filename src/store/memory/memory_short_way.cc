// The short way for groups of a few plain buckets and windows, which are the usual ones.
//
// Windows are locked first, in the order in which all groups lock them, and charged at once; what
// they held is put back if the group does not pass. Buckets are looked at without a lock, judged,
// and stored all in one moment if none has changed since; nobody is waited for there, so a group
// that holds buckets and waits for a window is not in the way. Whatever is not like that, a key
// that is absent or comes twice included, takes the long way.
#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/inline_vector.h"
#include "store/memory/memory_store.h"
#include "store/memory/payload.h"

namespace weir {

class MemoryStore::ShortWay {
 public:
  static constexpr std::size_t kMost = 8;

  ShortWay(MemoryStore& store, Group& group, Now now) noexcept
      : store_(store), group_(group), now_(now), at_(store.timeline_.At(now)) {}
  ShortWay(const ShortWay&) = delete;
  ShortWay& operator=(const ShortWay&) = delete;
  ~ShortWay() {
    for (const Window& window : windows_) {
      if (window.locked.slot != nullptr) store_.windows_.Unlock(window.locked, window.word_after);
    }
  }

  // False if somebody interfered, or the group is not like that: nothing was decided then.
  bool Decide() noexcept {
    if (!SortOut() || !JudgeBuckets()) return false;
    if (!windows_.empty() && !TakeWindows()) return false;
    if (pass_ ? StoreBuckets() : ShowUntaken()) [[likely]] {
      Answer();
      return true;
    }
    if (!windows_.empty()) PutWindowsBack();
    return false;
  }

 private:
  struct Bucket {
    std::size_t charge;
    std::uint64_t word_after;
    BucketVerdict verdict;
  };
  struct Window {
    std::size_t charge;
    std::uint64_t fingerprint;
    Table<2>::Locked locked{};  // Without a slot as long as it is not.
    std::uint64_t word_after = 0;
    std::array<std::uint64_t, 2> payload{};  // As it was found.
  };

  bool SortOut() noexcept;
  bool JudgeBuckets() noexcept;
  std::uint64_t JudgeOne(const Limit& limit, std::uint64_t word,
                         BucketVerdict& verdict) const noexcept;
  bool TakeWindows() noexcept;
  void Take(Window& window) noexcept;
  void PutWindowsBack() noexcept;
  bool StoreBuckets() noexcept;
  bool ShowUntaken() noexcept;
  bool MarkBuckets() noexcept;
  void Look(Window& window) noexcept;
  bool BucketsComeTwice() const noexcept;
  void Answer() noexcept;

  const Charge& ChargeOf(std::size_t number) const noexcept { return group_.charges[number]; }
  void Judged(const Charge& charge, bool allowed) noexcept {
    pass_ = pass_ && (charge.shadow || allowed);
  }

  MemoryStore& store_;
  Group& group_;
  const Now now_;
  const Instant at_;
  bool pass_ = true;
  InlineVector<Bucket, kMost> buckets_;
  InlineVector<Table<0>::Seen, kMost> seen_;  // By bucket.
  InlineVector<Window, kMost> windows_;
};

// Finds the buckets, and what has to be locked.
bool MemoryStore::ShortWay::SortOut() noexcept {
  for (std::size_t i = 0; i < group_.charges.size(); ++i) {
    const Charge& charge = ChargeOf(i);
    const Limit& limit = *charge.limit;
    const bool replaces = limit.predecessor() != nullptr && now_.steady < limit.predecessor_until();
    if (replaces || charge.verb != Verb::kCheck || charge.wait != Duration(0)) [[unlikely]]
      return false;
    if (limit.is_plain_bucket()) [[likely]] {
      buckets_.emplace_back(Bucket{.charge = i, .word_after = 0, .verdict = {}});
    } else if (limit.kind() == LimitKind::kCounted && RoomFor(limit) == Room::kWindows) {
      windows_.emplace_back(Window{.charge = i, .fingerprint = FingerprintOf(charge.hash, limit)});
    } else {
      return false;
    }
  }
  return true;
}

bool MemoryStore::ShortWay::JudgeBuckets() noexcept {
  for (Bucket& bucket : buckets_) {
    const Charge& charge = ChargeOf(bucket.charge);
    const Limit& limit = *charge.limit;
    const auto& seen = seen_.emplace_back(store_.buckets_.See(FingerprintOf(charge.hash, limit)));
    if (seen.slot == nullptr) [[unlikely]]
      return false;
    bucket.word_after = charge.cost == 1 ? JudgeOne(limit, seen.word, bucket.verdict)
                                         : JudgeWord<false>(limit, {.cost = charge.cost}, seen.word,
                                                            at_.now, bucket.verdict);
    Judged(charge, bucket.verdict.reason == Reason::kOk);
  }
  return true;
}

// The same as JudgeWord for what most requests cost.
inline std::uint64_t MemoryStore::ShortWay::JudgeOne(const Limit& limit, std::uint64_t word,
                                                     BucketVerdict& verdict) const noexcept {
  const OneUnit unit = JudgeOneUnit(limit, {.theoretical_arrival = FreshAt(word)}, at_.now);
  const std::uint64_t moved = MakeWord(at_.now + Ticks(unit.level));
  if (!unit.allowed()) {
    verdict = {Reason::kLimited, unit.level, unit.excess};
    return moved | kDeniedBit;
  }
  verdict = {Reason::kOk, unit.level, 0};
  const bool used_up = -unit.excess < limit.emission_interval();
  return moved | (used_up ? word & kDeniedBit : 0);
}

bool MemoryStore::ShortWay::TakeWindows() noexcept {
  std::ranges::sort(windows_.span(), {}, &Window::fingerprint);
  const auto same = std::ranges::adjacent_find(windows_.span(), {}, &Window::fingerprint);
  if (same != windows_.span().end()) return false;
  for (Window& window : windows_) {
    const auto locked = store_.windows_.LockIfPresent(window.fingerprint);
    if (!locked) {
      PutWindowsBack();
      return false;
    }
    window.locked = *locked;
    window.word_after = locked->word;
    std::ranges::copy(locked->slot->payload, window.payload.begin());
    if (ChargeOf(window.charge).cost == 0) {
      Look(window);
    } else {
      Take(window);
    }
    Judged(ChargeOf(window.charge), group_.decisions[window.charge].allowed);
  }
  return true;
}

void MemoryStore::ShortWay::Take(Window& window) noexcept {
  const Charge& charge = ChargeOf(window.charge);
  PayloadState state(*charge.limit, store_.events_, window.locked.slot->payload,
                     FreshAt(window.locked.word));
  const PayloadStep step = state.Do({.cost = charge.cost}, at_, Effect::kApply);
  window.word_after =
      WordAfter(window.locked.word, step.fresh_at, step.decision, Knock::kYes, Effect::kApply);
  group_.decisions[window.charge] = step.decision;
}

void MemoryStore::ShortWay::PutWindowsBack() noexcept {
  for (Window& window : windows_) {
    if (window.locked.slot == nullptr) continue;
    std::ranges::copy(window.payload, window.locked.slot->payload);
    window.word_after = window.locked.word;
  }
}

bool MemoryStore::ShortWay::StoreBuckets() noexcept {
  if (buckets_.empty()) return true;
  InlineVector<std::uint64_t, kMost> words;
  for (const Bucket& bucket : buckets_) words.emplace_back(bucket.word_after);
  return Table<0>::TryStoreAll(seen_.span(), words.span());
}

// Nothing is taken: what passes by itself is shown as it is, and where somebody knocked on a closed
// door that is remembered.
bool MemoryStore::ShortWay::ShowUntaken() noexcept {
  if (!MarkBuckets()) return false;
  for (Window& window : windows_) {
    if (!group_.decisions[window.charge].allowed) continue;  // Took nothing.
    std::ranges::copy(window.payload, window.locked.slot->payload);
    Look(window);
  }
  return true;
}

void MemoryStore::ShortWay::Look(Window& window) noexcept {
  const Charge& charge = ChargeOf(window.charge);
  PayloadState state(*charge.limit, store_.events_, window.locked.slot->payload,
                     FreshAt(window.locked.word));
  const StepRequest request{.verb = Verb::kPeek, .cost = charge.cost};
  const PayloadStep step = state.Do(request, at_, Effect::kDecideOnly);
  const Ticks fresh_at = step.stored ? step.fresh_at : FreshAt(window.locked.word);
  window.word_after =
      WordAfter(window.locked.word, fresh_at, step.decision, Knock::kNo, Effect::kDecideOnly);
  group_.decisions[window.charge] = step.decision;
}

bool MemoryStore::ShortWay::BucketsComeTwice() const noexcept {
  for (std::size_t i = 1; i < seen_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (seen_[i].slot == seen_[j].slot) return true;
    }
  }
  return false;
}

bool MemoryStore::ShortWay::MarkBuckets() noexcept {
  if (BucketsComeTwice()) return false;  // Their charges count as one.
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    const Charge& charge = ChargeOf(bucket.charge);
    if (bucket.verdict.reason == Reason::kOk) {
      const StepRequest peek{.verb = Verb::kPeek, .cost = charge.cost};
      bucket.word_after =
          JudgeWord<false>(*charge.limit, peek, seen_[i].word, at_.now, bucket.verdict);
    }
    // Where there is nothing to store, too: the slot may have become another key's just before.
    const bool done = bucket.word_after == seen_[i].word
                          ? Table<0>::IsAsSeen(seen_[i])
                          : Table<0>::TryStoreAll({&seen_[i], 1}, {&bucket.word_after, 1});
    if (!done) return false;
  }
  return true;
}

void MemoryStore::ShortWay::Answer() noexcept {
  for (const Bucket& bucket : buckets_) {
    const Charge& charge = ChargeOf(bucket.charge);
    // Made in place: to copy a Decision costs as much as to judge a key.
    new (&group_.decisions[bucket.charge])
        Decision(DescribeBucket(*charge.limit, charge.rule, {.cost = charge.cost}, bucket.verdict,
                                charge.limit->burst_tolerance()));
  }
  for (const Window& window : windows_) {
    group_.decisions[window.charge].rule = ChargeOf(window.charge).rule;
  }
  const Decision* speaker = nullptr;
  for (std::size_t i = 0; i < group_.charges.size(); ++i) {
    const Decision& decision = group_.decisions[i];
    if (ChargeOf(i).shadow) [[unlikely]] {
      if (!decision.allowed && ChargeOf(i).cost != 0) store_.shadow_denied_.Add();
    } else if (speaker == nullptr || SpeaksBefore(decision, *speaker)) {
      speaker = &decision;
    }
  }
  group_.reservation = ReservationId::kNone;
  group_.decision = speaker != nullptr ? *speaker : SpeaksForNobody();
}

bool MemoryStore::TryShortWay(Group& group, Now now) noexcept {
  const std::size_t size = group.charges.size();
  const bool fits = size != 0 && size <= ShortWay::kMost && group.decisions.size() >= size &&
                    group.receipts.empty() && group.action == Action::kDecide;
  return fits && ShortWay(*this, group, now).Decide();
}

}  // namespace weir
