#include "store/guard/feed.h"

#include <algorithm>

#include "base/inline_vector.h"
#include "limit/limit_check.h"
#include "store/memory/memory_store.h"

namespace weir {

void Feed::Take(const Group& group, int nodes, Now now) noexcept {
  if (!group.decision.allowed) return;
  const std::size_t size = std::min(group.charges.size(), group.decisions.size());
  InlineVector<Charge, kMaxGroupCharges> leases;
  shares_.Tidy();
  for (std::size_t i = 0; i < size; ++i) {
    const Charge& charge = group.charges[i];
    const bool took = group.decisions[i].allowed && charge.limit->kind() == LimitKind::kCounted;
    if (!took || charge.on_failure != FailureMode::kStatic) continue;
    const bool takes = charge.verb == Verb::kCheck || charge.verb == Verb::kPenalize;
    const bool gives = charge.verb == Verb::kRefund || charge.verb == Verb::kReset;
    if (!gives && (!takes || charge.cost == 0)) continue;
    Charge own = charge;
    own.limit = &shares_.Of(*charge.limit, NodesSharing(charge, nodes));
    own.wait = Duration(0);
    if (gives) {
      local_.Decide(own, now);
    } else if (IsPlaces(*charge.limit)) {
      leases.emplace_back(own);
    } else {
      own.verb = Verb::kCheck;
      ChargeUpTo(own, now);
    }
  }
  if (!leases.empty()) TakeLeases(leases.span(), group.reservation, now);
}

void Feed::ChargeUpTo(const Charge& charge, Now now) noexcept {
  Charge part = charge;
  // An overdraft would take it whole: there it is asked first how much is left.
  const bool asks = charge.limit->spec().overdraft;
  if (asks) part.cost = 0;
  const Decision decision = local_.Decide(part, now);
  if (decision.allowed && !asks) return;
  part.cost = std::min(charge.cost, decision.remaining);
  if (part.cost > 0) local_.Decide(part, now);
}

void Feed::TakeLeases(std::span<Charge> charges, ReservationId shared, Now now) noexcept {
  if (shared == ReservationId::kNone) return;
  InlineVector<Decision, kMaxGroupCharges> decisions;
  Duration lease{0};
  for (const Charge& charge : charges) {
    decisions.emplace_back();
    lease = std::max(lease, charge.limit->spec().lease);
  }
  Group own{.charges = charges, .decisions = decisions.span()};
  local_.Decide(own, now);
  if (!own.decision.allowed) {
    // More than the share: as many as there is room for.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      charges[kept] = charges[i];
      charges[kept].cost = std::min(charges[i].cost, decisions[i].remaining);
      if (charges[kept].cost > 0) ++kept;
    }
    if (kept == 0) return;
    own.charges = charges.first(kept);
    local_.Decide(own, now);
  }
  if (own.reservation == ReservationId::kNone) return;
  leases_.Put(shared, own.reservation, now.steady + lease, now.steady);
}

void Feed::Release(ReservationId shared, Now now) noexcept {
  const ReservationId local = leases_.Take(shared);
  if (local == ReservationId::kNone) return;
  Group own{.action = Action::kCancel, .reservation = local};
  local_.Decide(own, now);
}

}  // namespace weir
