// How a request waits: what is kept of it, and how it is asked again.
#include <algorithm>
#include <utility>

#include "limit/limit_check.h"
#include "limiter/limiter_state.h"
#include "store/key_hashes.h"

namespace weir {

// Small, because ten thousand may wait: the charges are put together again for each attempt, under
// the limits in force then.
class Limiter::State::PatientRequest final : public Waiter {
 public:
  PatientRequest(State& state, const ChargedRequest& request, WaitDone done)
      : state_(state), cost_(request.cost()), done_(std::move(done)) {
    charges_.reserve(request.charges().size());
    for (std::size_t i = 0; i < request.charges().size(); ++i) {
      charges_.push_back({.hash = request.charges()[i].hash, .layer = request.layer_of(i)});
    }
  }

  Answer Ask(Verb verb, Now now, Duration patience);
  Answer AskInTurn(Now now, Turn turn, Duration patience);
  std::optional<Answer> Attempt(const Chance& chance) override {
    return AskInTurn(chance.now, chance.turn, chance.patience);
  }
  void GiveBack(Now now) override;
  void Done(const Decision& decision) override { done_(decision); }

 private:
  struct KeptCharge {
    std::uint64_t hash = 0;
    Receipt receipt{};
    std::uint8_t layer = 0;
  };

  State& state_;
  const std::int64_t cost_;
  const WaitDone done_;
  std::vector<KeptCharge> charges_;
  // How it was let through, if it was.
  const Layers* passed_under_ = nullptr;
  ReservationId places_ = ReservationId::kNone;
};

Waiter::Answer Limiter::State::PatientRequest::Ask(Verb verb, Now now, Duration patience) {
  const Layers& in_force = state_.Current();
  ChargedRequest request(state_.store, in_force, verb, cost_);
  for (const KeptCharge& charge : charges_) request.Add(charge.layer, charge.hash);
  // To wait for nothing is not to name a wait: a queue would say how long it takes, and be waited
  // for.
  request.SetWait(std::max(patience, Duration(1)));
  const Group& group = request.Decide(now);
  Answer answer{.decision = group.decision, .again = group.decision.reason == Reason::kLimited};
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    const Charge& charge = group.charges[i];
    charges_[i].receipt = group.receipts[i];
    // A bucket that is booked for longer than the patience stays so: both grow shorter together.
    const bool too_late = !charge.shadow && charge.wait > Duration(0) &&
                          IsBucket(charge.limit->algorithm()) &&
                          group.decisions[i].reason == Reason::kLimited;
    answer.again = answer.again && !too_late;
  }
  passed_under_ = &in_force;
  places_ = group.reservation;
  return answer;
}

Waiter::Answer Limiter::State::PatientRequest::AskInTurn(Now now, Turn turn, Duration patience) {
  if (turn == Turn::kNow) return Ask(Verb::kCheck, now, patience);
  Answer answer = Ask(Verb::kPeek, now, patience);
  Decision& decision = answer.decision;
  if (decision.allowed) {
    // There is room, but for those who came before.
    decision.allowed = false;
    decision.reason = Reason::kLimited;
    decision.delay = Duration(0);
    decision.retry_after = std::max(decision.reset_after, Duration(1));
    answer.again = true;
  }
  return answer;
}

void Limiter::State::PatientRequest::GiveBack(Now now) {
  // Under the limits it was booked under: what another limit has taken over since is no longer the
  // last booking.
  ChargedRequest request(state_.store, *passed_under_, Verb::kUnbook, 0);
  KeyHashes keys;
  for (const KeptCharge& charge : charges_) {
    if (charge.receipt.charged == 0 || IsPlaces(passed_under_->all[charge.layer].limit)) continue;
    Charge& booked = request.Add(charge.layer, charge.hash);
    booked.reserved = charge.receipt.charged;
    booked.receipt = charge.receipt.at;
    keys.emplace_back(charge.hash);
  }
  request.Decide(now);
  // Places by their record, which is gone then; and last, because whoever gets one books again.
  if (places_ != ReservationId::kNone) std::ignore = state_.Settle(Action::kCancel, places_, 0);
  state_.waiting.Nudge(keys.span());
}

WaitId Limiter::State::Begin(const ChargedRequest& request, Now now, Duration patience,
                             WaitDone done) {
  KeyHashes keys;  // Shadows have no say in who stands in line with whom.
  for (const Charge& charge : request.charges()) {
    if (!charge.shadow) keys.emplace_back(charge.hash);
  }
  const bool in_line = !request.BooksAhead();
  auto patient = std::make_unique<PatientRequest>(*this, request, std::move(done));
  const auto refuse = [](Waiter& waiter, Decision decision, Duration retry_after) {
    decision.allowed = false;
    decision.reason = Reason::kOverload;
    decision.delay = Duration(0);
    decision.retry_after = retry_after;
    waiter.Done(decision);
    return WaitId{0};
  };
  if (waiting.IsFull()) {
    // Nothing is taken for one who could not wait; one who need not may still pass.
    const Decision look = patient->Ask(Verb::kPeek, now, patience).decision;
    if (look.allowed && look.delay > Duration(0)) return refuse(*patient, look, look.delay);
  }

  const bool others_ahead = in_line && waiting.HasLine(keys.span());
  auto [decision, again, line, not_before, heard] =
      patient->AskInTurn(now, others_ahead ? Waiter::Turn::kNotYet : Waiter::Turn::kNow, patience);
  const Duration delay = std::exchange(decision.delay, Duration(0));
  const bool held = decision.allowed && delay > Duration(0);
  if (!held && (!in_line || !again || patience == Duration(0))) {
    patient->Done(decision);
    return WaitId{0};
  }
  std::unique_ptr<Waiter> waiter = std::move(patient);
  const std::optional<WaitId> id =
      held ? waiting.Hold(waiter, decision, now.steady + delay)
           : waiting.StandInLine(waiter, keys.span(), now.steady, now.steady + patience);
  if (id) return *id;
  if (held) waiter->GiveBack(now);
  return refuse(*waiter, decision, held ? delay : decision.retry_after);
}

}  // namespace weir
