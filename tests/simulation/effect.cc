#include "effect.h"

#include <algorithm>
#include <vector>

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

// Of several places one may fail and others not. Who finds nothing left has only helped others.
bool MayBe(const Afterwards& after, const Asked& asked) {
  return after.fate == Fate::kDecided || after.fate == Fate::kUnknown ||
         (after.fate == Fate::kFailed && asked.is_split && !after.was_gone);
}

Duration EndOf(const Afterwards& after, const Asked& asked) {
  const bool is_over = after.fate == Fate::kDecided || after.fate == Fate::kNotAsked ||
                       (after.fate == Fate::kFailed && !asked.is_split);
  return is_over ? after.answered : Duration::max();
}

std::vector<const Afterwards*> AttemptsOf(const Asked& asked) {
  std::vector<const Afterwards*> attempts;
  for (const auto* const it : {&asked.afterwards, &asked.contradiction}) {
    if (*it != nullptr) attempts.push_back(it->get());
  }
  return attempts;
}

struct Winner {
  const Afterwards* attempt = nullptr;
  Duration known{0};  // From then on.
};

// The one that took effect for sure: it was told so, or the other was told that it came too late.
std::optional<Winner> WinnerOf(const std::vector<const Afterwards*>& attempts, const Asked& asked) {
  for (const Afterwards* const it : attempts) {
    if (it->fate == Fate::kDecided) return Winner{it, it->answered};
  }
  if (attempts.size() != 2) return std::nullopt;
  const bool first_lost = attempts[0]->was_gone;
  const Afterwards& lost = *attempts[first_lost ? 0 : 1];
  const Afterwards& other = *attempts[first_lost ? 1 : 0];
  if (!lost.was_gone || !MayBe(other, asked)) return std::nullopt;
  return Winner{&other, lost.answered};
}

}  // namespace

Effect EffectInStore(const Asked& asked, std::size_t part, bool is_lossy) {
  Effect effect;
  const std::vector<const Afterwards*> attempts = AttemptsOf(asked);
  if (attempts.empty()) return effect;
  effect.is_refund = attempts.front()->refunded > 0;
  effect.ended = Duration::min();
  for (const Afterwards* const it : attempts) {
    effect.sent = std::min(effect.sent, it->sent);
    effect.ended = std::max(effect.ended, EndOf(*it, asked));
    if (!MayBe(*it, asked)) continue;
    effect.least = std::min(effect.least, ChangeBy(*it, asked, part));
    effect.most = std::max(effect.most, ChangeBy(*it, asked, part));
  }
  const std::optional<Winner> winner = is_lossy ? std::nullopt : WinnerOf(attempts, asked);
  if (!winner) return effect;
  effect.least = effect.most = ChangeBy(*winner->attempt, asked, part);
  effect.ended = winner->known;
  // Parts in several places are settled at different times.
  const bool is_dated = winner->attempt->fate == Fate::kDecided && !asked.is_split;
  if (is_dated) effect.at = winner->attempt->group.decided_at;
  return effect;
}

std::int64_t LeastChange(const Asked& asked, std::size_t part) {
  std::int64_t least = 0;
  for (const Afterwards* const it : AttemptsOf(asked)) {
    least = std::min(least, ChangeBy(*it, asked, part));
  }
  return least;
}

Duration FirstSettling(const Asked& asked) {
  Duration first = Duration::max();
  for (const Afterwards* const it : AttemptsOf(asked)) {
    if (it->settled) first = std::min(first, it->sent);
  }
  return first;
}

Duration KnownSettled(const Asked& asked) {
  Duration known = Duration::max();
  for (const Afterwards* const it : AttemptsOf(asked)) {
    if (it->settled && it->fate == Fate::kDecided) known = std::min(known, it->answered);
  }
  return known;
}

std::optional<std::string> FindContradiction(const Asked& asked) {
  const std::vector<const Afterwards*> attempts = AttemptsOf(asked);
  // Leases end by themselves, and their records with them.
  if (asked.group.action != Action::kReserve || asked.fate != Fate::kDecided) return std::nullopt;
  std::size_t told = 0;
  std::size_t gone = 0;
  bool may_be = false;
  bool is_same = true;
  for (const Afterwards* const it : attempts) {
    told += it->fate == Fate::kDecided ? 1U : 0U;
    gone += it->was_gone ? 1U : 0U;
    may_be |= MayBe(*it, asked);
    is_same &= it->group.action == attempts.front()->group.action &&
               it->settled == attempts.front()->settled;
  }
  if (told > 1 && !is_same) return "settled in two ways";
  if (gone > 0 && !may_be) return "nothing left to settle, though nobody has";
  return std::nullopt;
}

}  // namespace weir::simulation
