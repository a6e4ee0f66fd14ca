#include "engine/shared_attempt.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "store/key_hashes.h"

namespace weir {

Engine::State::SharedAttempt::SharedAttempt(State& state,
                                            std::shared_ptr<const PolicyVersion> version,
                                            const Patience& patience, WaitId id)
    : state_(state),
      reports_(state.waiting.reports()),
      version_(std::move(version)),
      now_(patience.now),
      rest_(patience.rest),
      behind_(patience.arrival == Arrival::kBehindOthers),
      id_(id),
      call_(*version_, state.hasher, patience.request),
      course_(state.Prepare(call_, Verb::kCheck, patience.cost)) {
  Attempted& attempted = heard_->attempted;
  if (course_ != Call::Course::kCharges) {
    state.NoteOutcome(course_);
    attempted.answer = AnswerWithoutCounting(course_, patience.cost);
    return;
  }
  // To wait for nothing is not to name a wait: a queue would say how long it takes, and be waited
  // for.
  if (!patience.asks_once) call_.SetWait(std::max(patience.rest, Duration(1)), patience.what);
  KeyHashes keys;
  call_.ListKeys(keys);
  attempted.keys.assign(keys.begin(), keys.end());
  call_.group().receipts = receipts_;
  // One who is not the first in line takes nothing.
  if (behind_) call_.SetVerb(Verb::kPeek);
}

bool Engine::State::SharedAttempt::Suppose(const Heard& other, Duration age) {
  supposed_ = true;
  call_.Suppose(other.attempted.each, age);
  state_.NoteOutcome(call_, now_);
  state_.TakeIn(call_, {}, /*behind=*/true, now_, heard_->attempted);
  return call_.NextDenial(0) < call_.rules();
}

void Engine::State::SharedAttempt::Begin() noexcept {
  asked_at_ = Time();
  if (supposed_) return CountDenials();
  std::ignore = Ask(call_.group(), now_);  // If the store ends, so does all waiting.
}

void Engine::State::SharedAttempt::OnDecided(Group& group) noexcept {
  if (group.error) call_.Fail();
  call_.TakeUpBans();
  const Verdict verdict = state_.Weigh(call_, rest_, behind_, heard_->attempted);
  is_last_ = verdict.is_last;
  if (is_last_ && !verdict.has_room) return CountDenials();
  Finish();
}

void Engine::State::SharedAttempt::CountDenials() noexcept {
  std::vector<DenialNotes::Denied> denied = DenialNotes::Of(call_);
  if (denied.empty()) return Finish();
  Count(version_, std::move(denied), asked_at_ + version_->home->place->timeout(),
        [this](std::span<const DenialNotes::Ban> bans) {
          for (const DenialNotes::Ban& ban : bans) call_.Ban(ban.number, ban.length);
          Finish();
        });
}

void Engine::State::SharedAttempt::Finish() noexcept {
  if (supposed_) return End();
  if (is_last_) state_.NoteOutcome(call_, now_);
  Attempted& attempted = heard_->attempted;
  state_.TakeIn(call_, receipts_, behind_, now_, attempted);
  const bool took = attempted.answer.decision.allowed;
  if (!reports_->Over(id_) && took) {
    StartAnother(std::make_unique<SharedGiveBack>(version_, reports_, attempted, now_));
  }
  End();
}

Engine::State::SharedGiveBack::SharedGiveBack(std::shared_ptr<const PolicyVersion> version,
                                              std::shared_ptr<AttemptReports> reports,
                                              Attempted attempted, Now now)
    : reports_(std::move(reports)),
      version_(std::move(version)),
      attempted_(std::move(attempted)),
      now_(now) {
  for (const Attempted::Booking& booking : attempted_.bookings) {
    charges_.emplace_back(booking.ToGiveBack());
  }
}

void Engine::State::SharedGiveBack::Begin() noexcept {
  if (charges_.empty()) return GiveUpPlaces();
  group_ =
      Group{.charges = charges_.span(), .decisions = std::span(decisions_).first(charges_.size())};
  if (!Ask(group_, now_)) End();
}

void Engine::State::SharedGiveBack::OnDecided(Group& /*group*/) noexcept {
  if (group_.action == Action::kDecide) return GiveUpPlaces();
  reports_->Nudge(std::span(settled_).first(group_.settled_count));
  Finish();
}

// By their record, which is gone then; and last, because whoever gets one books again.
void Engine::State::SharedGiveBack::GiveUpPlaces() noexcept {
  const ReservationId places = attempted_.answer.decision.reservation;
  if (places == ReservationId::kNone) return Finish();
  group_ = Group{.action = Action::kCancel,
                 .in_force = version_->in_force,
                 .reservation = places,
                 .settled = settled_};
  if (!Ask(group_, now_)) End();
}

void Engine::State::SharedGiveBack::Finish() noexcept {
  KeyHashes keys;
  for (const Charge& charge : charges_) keys.emplace_back(charge.hash);
  reports_->Nudge(keys.span());
  End();
}

}  // namespace weir
