#include "effect.h"

#include <algorithm>

namespace weir::simulation {
namespace {

// Of one that took effect. Leases know only that they are over.
std::int64_t ChangeBy(const Afterwards& after, const Asked& asked, std::size_t part) {
  if (asked.charges[part].limit->algorithm() == Algorithm::kConcurrency) return 0;
  if (after.settled) {
    // Of what was not reserved only leases are given back.
    const bool was_reserved = asked.group.action == Action::kReserve;
    return was_reserved ? *after.settled - asked.parts[part].cost : 0;
  }
  return after.part == part ? -after.refunded : 0;
}

// Of several places one may fail and others not.
bool MayBe(const Afterwards& after, const Asked& asked) {
  return after.fate == Fate::kDecided || after.fate == Fate::kUnknown ||
         (after.fate == Fate::kFailed && asked.is_split);
}

Duration EndOf(const Afterwards& after, const Asked& asked) {
  const bool is_over = after.fate == Fate::kDecided || after.fate == Fate::kNotAsked ||
                       (after.fate == Fate::kFailed && !asked.is_split);
  return is_over ? after.answered : Duration::max();
}

}  // namespace

Effect EffectInStore(const Asked& asked, std::size_t part, bool is_lossy) {
  Effect effect;
  if (asked.afterwards == nullptr) return effect;
  const Afterwards& after = *asked.afterwards;
  effect.sent = after.sent;
  effect.ended = EndOf(after, asked);
  effect.is_refund = after.refunded > 0;
  if (!MayBe(after, asked)) return effect;
  const std::int64_t change = ChangeBy(after, asked, part);
  if (after.fate == Fate::kDecided && !is_lossy) {
    effect.least = effect.most = change;
    // Parts in several places are settled at different times.
    if (!asked.is_split) effect.at = after.group.decided_at;
  } else {
    effect.least = std::min<std::int64_t>(0, change);
    effect.most = std::max<std::int64_t>(0, change);
  }
  return effect;
}

std::int64_t LeastChange(const Asked& asked, std::size_t part) {
  if (asked.afterwards == nullptr) return 0;
  return std::min<std::int64_t>(0, ChangeBy(*asked.afterwards, asked, part));
}

}  // namespace weir::simulation
