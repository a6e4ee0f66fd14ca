#include "store_subject.h"

#include <array>
#include <utility>

#include "step_verb.h"

namespace weir::conformance {
namespace {

// Longer than any trace lasts.
constexpr Duration kForever = std::chrono::hours(24 * 365 * 5);

class Ignored final : public Completion {
 public:
  void OnDecided(Group&) noexcept override {}
};

}  // namespace

StoreSubject::StoreSubject(Store& store, const Limit& limit, std::string key, const Trace& trace,
                           Shortcut shortcut)
    : store_(store), limit_(limit), key_(std::move(key)), shortcut_(std::move(shortcut)) {
  for (const TraceStep& step : trace.steps) {
    if (step.action.verb == Verb::kSettle) settled_.insert(step.action.of);
    if (step.action.verb == Verb::kUnbook) unbooked_.insert(step.action.of);
  }
}

Decision StoreSubject::Submit(Group& group, Now now) {
  Ignored completion;
  store_.Submit({&group, 1}, now, completion);
  return group.error ? Decision{} : group.decision;
}

Decision StoreSubject::Settle(const Action& action, Now now) {
  Group group{.action = action.cost == 0 ? weir::Action::kCancel : weir::Action::kCommit,
              .reservation = taken_.at(action.of).reservation,
              .cost = action.cost};
  return Submit(group, now);
}

Decision StoreSubject::Do(const Action& action, Now now) {
  if (action.verb == Verb::kSettle) return Settle(action, now);
  Charge charge{.rule = "rule",
                .key = key_,
                .hash = store_.Hash(key_),
                .limit = &limit_,
                .cost = action.cost,
                .verb = StepVerb(action.verb),
                .wait = action.wait};
  if (action.verb == Verb::kUnbook) {
    charge.reserved = taken_.at(action.of).receipt.charged;
    charge.receipt = taken_.at(action.of).receipt.at;
  }
  const bool reserves = settled_.contains(action.number);
  if (shortcut_ && !reserves && !unbooked_.contains(action.number)) return shortcut_(charge, now);

  std::array<Decision, 1> decisions;
  std::array<Receipt, 1> receipts{};
  Group group{.action = reserves ? weir::Action::kReserve : weir::Action::kDecide,
              .charges = {&charge, 1},
              .decisions = decisions,
              .ttl = kForever,
              .receipts = receipts};
  const Decision decision = Submit(group, now);
  taken_[action.number] = {group.reservation, receipts[0]};
  return decision;
}

}  // namespace weir::conformance
