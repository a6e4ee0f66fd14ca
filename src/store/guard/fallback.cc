#include "store/guard/fallback.h"

#include <algorithm>
#include <utility>

#include "limit/limit_check.h"
#include "store/memory/memory_store.h"

namespace weir {
namespace {

// Long enough to keep a client from hammering, short enough for a store that is back soon.
constexpr Duration kRetryAfter = std::chrono::seconds(1);

// What counts nothing needs no store.
bool IsDecidedHere(const Charge& charge) noexcept {
  return charge.limit->kind() != LimitKind::kCounted || charge.on_failure == FailureMode::kStatic;
}
bool IsRefused(const Charge& charge) noexcept {
  return !IsDecidedHere(charge) && charge.on_failure == FailureMode::kClosed;
}

Decision Refuse(const Charge& charge) noexcept {
  return {.allowed = false,
          .reason = Reason::kStoreFailure,
          .source = Source::kClosed,
          .rule = charge.rule,
          .limit = charge.limit->capacity(),
          .cost = charge.cost,
          .retry_after = kRetryAfter};
}

Decision LetThrough(const Charge& charge) noexcept {
  return {.allowed = true,
          .reason = Reason::kOk,
          .source = Source::kOpen,
          .rule = charge.rule,
          .limit = charge.limit->capacity(),
          .remaining = charge.limit->capacity(),
          .cost = charge.cost};
}

// What is too much for the share may well fit when the store is back.
void SoftenNeverFits(const Charge& charge, Decision& decision) noexcept {
  const bool fits_whole = charge.cost <= charge.limit->capacity();
  if (decision.reason != Reason::kNeverFits || !fits_whole) return;
  decision.reason = Reason::kStoreFailure;
  decision.retry_after = kRetryAfter;
}

}  // namespace

FailureMode Fallback::Decide(Group& group, int nodes, Now now) noexcept {
  const auto vetoes = [](const Charge& charge) { return !charge.shadow && IsRefused(charge); };
  const bool refused = std::ranges::any_of(group.charges, vetoes);
  group.error.reset();
  group.reservation = ReservationId::kNone;
  group.decided_at = now.wall;
  Part part;
  Pick(group, nodes, refused, part);
  DecidePart(group, refused, part, now);
  if (group.error) return FailureMode::kStatic;
  Tell(group, part);
  group.decision = Combine(group.charges, group.decisions);
  if (group.decision.allowed) NameUncounted(group, now);
  group.decision.reservation = group.reservation;
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    group.decisions[i].reservation = group.reservation;
  }
  if (refused) return FailureMode::kClosed;
  return part.charges.empty() ? FailureMode::kOpen : FailureMode::kStatic;
}

void Fallback::Pick(const Group& group, int nodes, bool refused, Part& part) noexcept {
  shares_.Tidy();
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    const Charge& charge = group.charges[i];
    if (!IsDecidedHere(charge)) continue;
    Charge& own = part.charges.emplace_back(charge);
    own.limit = &shares_.Of(*charge.limit, NodesSharing(charge, nodes));
    // Somebody else refuses: only to say how things are.
    if (refused) own.verb = Verb::kPeek;
    part.decisions.emplace_back();
    part.receipts.emplace_back();
    part.places.emplace_back(static_cast<std::uint8_t>(i));
  }
}

void Fallback::DecidePart(Group& group, bool refused, Part& part, Now now) noexcept {
  const bool reserves = group.action == Action::kReserve && !refused;
  if (part.charges.empty() && !reserves) return;
  Group own{.action = reserves ? Action::kReserve : Action::kDecide,
            .charges = part.charges.span(),
            .decisions = part.decisions.span(),
            .ttl = group.ttl};
  if (!group.receipts.empty()) own.receipts = part.receipts.span();
  local_.Decide(own, now);
  group.error = std::move(own.error);
  group.reservation = own.reservation;
}

void Fallback::Tell(Group& group, const Part& part) noexcept {
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    const Charge& charge = group.charges[i];
    if (i < group.receipts.size()) group.receipts[i] = {};
    if (!IsDecidedHere(charge)) {
      group.decisions[i] = IsRefused(charge) ? Refuse(charge) : LetThrough(charge);
    }
  }
  for (std::size_t i = 0; i < part.charges.size(); ++i) {
    const std::size_t place = part.places[i];
    Decision& decision = group.decisions[place];
    decision = part.decisions[i];
    decision.source = Source::kFallback;
    SoftenNeverFits(group.charges[place], decision);
    if (place < group.receipts.size()) group.receipts[place] = part.receipts[i];
  }
}

void Fallback::NameUncounted(Group& group, Now now) noexcept {
  if (group.reservation != ReservationId::kNone) return;
  Duration lease{0};
  for (const Charge& charge : group.charges) {
    if (TakesLease(charge)) lease = std::max(lease, charge.limit->spec().lease);
  }
  if (lease == Duration(0)) return;
  Group own{.action = Action::kReserve, .ttl = lease};
  local_.Decide(own, now);
  group.reservation = own.reservation;
}

void Fallback::Settle(Group& group, int nodes, Now now) noexcept {
  shares_.Tidy();
  in_force_.assign(group.in_force.begin(), group.in_force.end());
  for (LimitInForce& each : in_force_) each.limit = &shares_.Of(*each.limit, nodes);
  const std::span<const LimitInForce> told = std::exchange(group.in_force, in_force_);
  local_.Decide(group, now);
  group.in_force = told;
  group.decision.source = Source::kFallback;
  group.decided_at = now.wall;
}

}  // namespace weir
