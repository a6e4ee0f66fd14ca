#include "store_subject.h"

#include <array>
#include <utility>

#include "asked_groups.h"
#include "step_verb.h"

namespace weir::conformance {
namespace {

// Longer than any trace lasts.
constexpr Duration kForever = std::chrono::hours(24 * 365 * 5);

constexpr std::string_view kRule = "rule";

}  // namespace

StoreSubject::StoreSubject(Store& store, const Limit& limit, std::string key, Shortcut shortcut)
    : store_(store), limit_(limit), key_(std::move(key)), shortcut_(std::move(shortcut)) {}

Decision StoreSubject::Submit(Group& group, Now now) {
  Ignored completion;
  store_.Submit({&group, 1}, now, completion);
  error_ = group.error;
  decided_at_ = group.decided_at;
  return group.error ? Decision{} : group.decision;
}

Decision StoreSubject::Settle(const TraceAction& action, Now now) {
  const LimitInForce in_force{.rule = store_.Hash(kRule), .name = kRule, .limit = &limit_};
  Group group{.action = action.cost == 0 ? weir::Action::kCancel : weir::Action::kCommit,
              .in_force = {&in_force, 1},
              .reservation = taken_.at(action.of).reservation,
              .cost = action.cost};
  return Submit(group, now);
}

// Of another rule for the same key, which the same server has.
void StoreSubject::HearTime(Now now) {
  const Limit bucket = *Limit::Make({.count = 1, .period = std::chrono::seconds(1)});
  const Charge charge{.rule = "clock",
                      .key = key_,
                      .hash = store_.Hash(key_),
                      .limit = &bucket,
                      .verb = weir::Verb::kPeek};
  std::array<Decision, 1> decisions;
  Group group{.charges = {&charge, 1}, .decisions = decisions};
  Submit(group, now);
}

Decision StoreSubject::Do(const TraceAction& action, Now now) {
  if (hears_time_first_) HearTime(now);
  if (action.verb == TraceVerb::kSettle) return Settle(action, now);
  Charge charge{.rule = kRule,
                .key = key_,
                .hash = store_.Hash(key_),
                .limit = &limit_,
                .cost = action.cost,
                .verb = StepVerb(action.verb),
                .wait = action.wait};
  if (action.verb == TraceVerb::kUnbook) {
    charge.reserved = taken_.at(action.of).receipt.charged;
    charge.receipt = taken_.at(action.of).receipt.at;
  }
  if (shortcut_ && action.keeps == Keeps::kNothing) return shortcut_(charge, now);

  std::array<Decision, 1> decisions;
  std::array<Receipt, 1> receipts{};
  const bool reserves = action.keeps == Keeps::kReservation;
  Group group{.action = reserves ? weir::Action::kReserve : weir::Action::kDecide,
              .charges = {&charge, 1},
              .decisions = decisions,
              .ttl = kForever,
              .receipts = receipts};
  const Decision decision = Submit(group, now);
  taken_[action.number] = {group.reservation, receipts[0]};
  return decision;
}

std::optional<std::string> Replay(const Trace& trace, StoreSubject& subject) {
  for (const TraceStep& step : trace.steps) {
    const Decision decision = subject.Do(step.action, step.now);
    const std::string place = "at #" + std::to_string(step.action.number) + ": ";
    if (subject.error()) return place + subject.error()->message;
    if (auto difference = Difference(step.expected, decision)) return place + *difference;
  }
  return std::nullopt;
}

}  // namespace weir::conformance
