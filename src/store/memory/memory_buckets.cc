// The short way for a group of a few plain buckets: looks at every key, judges them all, and stores
// the words of all in one moment if none has changed since. Takes no lock that another has to wait
// for longer than a few instructions, and never waits itself. Whatever is not like that, an absent
// key included, takes the long way.
#include <array>
#include <new>

#include "store/memory/memory_store.h"

namespace weir {

class MemoryStore::PlainBuckets {
 public:
  static constexpr std::size_t kMost = 8;

  PlainBuckets(MemoryStore& store, Group& group, Ticks now) noexcept  // NOLINT: filled by Judge
      : store_(store), group_(group), now_(now), size_(group.charges.size()) {}

  // Whether it is a group like that; judges every charge then.
  bool Judge(SteadyTime now) noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      const Charge& charge = group_.charges[i];
      const Limit& limit = *charge.limit;
      const bool replaces = limit.predecessor() != nullptr && now < limit.predecessor_until();
      const bool plain = limit.is_plain_bucket() && !replaces && charge.verb == Verb::kCheck &&
                         charge.wait == Duration(0);
      if (!plain) [[unlikely]]
        return false;
      seen_[i] = store_.buckets_.See(FingerprintOf(charge.hash, limit));
      if (seen_[i].slot == nullptr) [[unlikely]]
        return false;
      words_[i] = charge.cost == 1 ? JudgeOne(limit, seen_[i].word, verdicts_[i])
                                   : JudgeWord<false>(limit, {.cost = charge.cost}, seen_[i].word,
                                                      now_, verdicts_[i]);
      pass_ = pass_ && (charge.shadow || verdicts_[i].reason == Reason::kOk);
    }
    return true;
  }

  // False if somebody interfered.
  bool Store() noexcept { return pass_ ? StoreAll() : StoreMarks(); }

  void Answer() noexcept {
    const Decision* speaker = nullptr;
    for (std::size_t i = 0; i < size_; ++i) {
      const Charge& charge = group_.charges[i];
      const StepRequest request{.cost = charge.cost};
      // Made in place: to copy a Decision costs as much as to judge a key.
      const Decision& decision = *new (&group_.decisions[i]) Decision(DescribeBucket(
          *charge.limit, charge.rule, request, verdicts_[i], charge.limit->burst_tolerance()));
      if (charge.shadow) [[unlikely]] {
        if (!decision.allowed && Takes(request)) store_.shadow_denied_.Add();
      } else if (speaker == nullptr || SpeaksBefore(decision, *speaker)) {
        speaker = &decision;
      }
    }
    group_.reservation = ReservationId::kNone;
    group_.decision = speaker != nullptr ? *speaker : SpeaksForNobody();
  }

 private:
  // The same as JudgeWord for what most requests cost.
  std::uint64_t JudgeOne(const Limit& limit, std::uint64_t word,
                         BucketVerdict& verdict) const noexcept {
    const OneUnit unit = JudgeOneUnit(limit, {.theoretical_arrival = FreshAt(word)}, now_);
    const std::uint64_t moved = MakeWord(now_ + Ticks(unit.level));
    if (!unit.allowed()) {
      verdict = {Reason::kLimited, unit.level, unit.excess};
      return moved | kDeniedBit;
    }
    verdict = {Reason::kOk, unit.level, 0};
    const bool used_up = -unit.excess < limit.emission_interval();
    return moved | (used_up ? word & kDeniedBit : 0);
  }

  bool StoreAll() noexcept {
    return Table<0>::TryStoreAll(std::span(seen_).first(size_), std::span(words_).first(size_));
  }

  bool SomeComeTwice() const noexcept {
    for (std::size_t i = 1; i < size_; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (seen_[i].slot == seen_[j].slot) return true;
      }
    }
    return false;
  }

  // Nothing is taken: what passes by itself is shown as it is, and where somebody knocked on a
  // closed door that is remembered.
  bool StoreMarks() noexcept {
    if (SomeComeTwice()) return false;  // Their charges count as one.
    for (std::size_t i = 0; i < size_; ++i) {
      const Charge& charge = group_.charges[i];
      if (verdicts_[i].reason == Reason::kOk) {
        words_[i] = JudgeWord<false>(*charge.limit, {.verb = Verb::kPeek, .cost = charge.cost},
                                     seen_[i].word, now_, verdicts_[i]);
      }
      // Where there is nothing to store, too: the slot may have become another key's just before.
      const bool done = words_[i] == seen_[i].word
                            ? Table<0>::IsAsSeen(seen_[i])
                            : Table<0>::TryStoreAll({&seen_[i], 1}, {&words_[i], 1});
      if (!done) return false;
    }
    return true;
  }

  MemoryStore& store_;
  Group& group_;
  const Ticks now_;
  const std::size_t size_;
  bool pass_ = true;
  std::array<Table<0>::Seen, kMost> seen_;
  std::array<std::uint64_t, kMost> words_;
  std::array<BucketVerdict, kMost> verdicts_;
};

bool MemoryStore::TryPlainBuckets(Group& group, Now now) noexcept {
  const std::size_t size = group.charges.size();
  const bool fits = size != 0 && size <= PlainBuckets::kMost && group.decisions.size() >= size &&
                    group.receipts.empty() && group.action == Action::kDecide;
  if (!fits) return false;
  PlainBuckets buckets(*this, group, timeline_.TicksAt(now.steady));
  if (!buckets.Judge(now.steady) || !buckets.Store()) return false;
  buckets.Answer();
  return true;
}

}  // namespace weir
