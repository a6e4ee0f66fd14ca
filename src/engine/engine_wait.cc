// How a request waits: what is kept of it, and how it is asked again.
//
// Small, because ten thousand may wait: a waiter keeps its own copy of the request, and is put
// together anew for each attempt under the policy in force then. Between attempts it holds on to no
// policy, so that one can be replaced while thousands wait.
//
// With a shared store an attempt takes a while, so even the first is left to others: who begins a
// wait may be a loop that has others to serve.
#include <algorithm>
#include <array>
#include <utility>

#include "base/mix.h"
#include "engine/blocking_store.h"
#include "engine/engine_state.h"
#include "engine/owned_request.h"
#include "engine/shared_attempt.h"
#include "store/key_hashes.h"
#include "store/memory/memory_store.h"

namespace weir {

class Engine::State::PatientCall final : public Waiter {
 public:
  PatientCall(State& state, const Patience& patience, WaitDone done, Attempted attempted)
      : state_(state),
        request_(patience.request),
        cost_(patience.cost),
        what_(patience.what),
        asks_once_(patience.rest == Duration(0) && what_ == WaitFor::kRoom),
        done_(std::move(done)),
        attempted_(std::move(attempted)) {
    state_.waiting_bytes.fetch_add(request_.bytes(), std::memory_order_relaxed);
  }
  PatientCall(const PatientCall&) = delete;
  PatientCall& operator=(const PatientCall&) = delete;
  ~PatientCall() override {
    state_.waiting_bytes.fetch_sub(request_.bytes(), std::memory_order_relaxed);
  }

  std::optional<Answer> Attempt(const Chance& chance) override;
  Answer Outcome() override;
  std::optional<Decision> GiveUp(Now now, const Heard& heard, Duration age) override;
  void GiveBack(Now now) override { state_.GiveBack(attempted_, now); }
  void Done(const Decision& decision) override;

 private:
  Answer AnswerNow() const;

  State& state_;
  const OwnedRequest request_;
  const std::int64_t cost_;
  const WaitFor what_;
  const bool asks_once_;  // It has no patience: only the store is waited for.
  const WaitDone done_;
  Attempted attempted_;
  std::shared_ptr<SharedAttempt::Heard> heard_;  // By the attempt under way.
};

std::optional<Waiter::Answer> Engine::State::PatientCall::Attempt(const Chance& chance) {
  // One without patience would not stand behind others elsewhere either.
  const bool its_turn = chance.turn == Turn::kNow || asks_once_;
  const Patience patience{.request = request_.view(),
                          .cost = cost_,
                          .now = chance.now,
                          .rest = chance.patience,
                          .arrival = its_turn ? Arrival::kItsTurn : Arrival::kBehindOthers,
                          .asks_once = asks_once_,
                          .what = what_};
  std::shared_ptr<const PolicyVersion> version = state_.versions.Share();
  if (!version->is_shared()) {
    state_.Attempt(*version, patience, attempted_);
    return AnswerNow();
  }
  const std::shared_ptr<Home> home = version->home;
  auto attempt = std::make_unique<SharedAttempt>(state_, std::move(version), patience, chance.id);
  heard_ = attempt->heard();
  if (attempt->course() != Call::Course::kCharges) return Outcome();
  home->blocking->Start(std::move(attempt));
  return std::nullopt;
}

Waiter::Answer Engine::State::PatientCall::Outcome() {
  attempted_ = heard_->attempted;
  // Others go by what was said, not by what was taken: that would hold on to a store that was left.
  heard_->attempted.home.reset();
  heard_->attempted.bookings.clear();
  Answer answer = AnswerNow();
  answer.heard = std::move(heard_);
  return answer;
}

Waiter::Answer Engine::State::PatientCall::AnswerNow() const {
  Decision decision = attempted_.answer.decision;
  if (asks_once_) {
    decision.delay = Duration(0);  // That is told, not waited for.
    return {.decision = decision};
  }
  return {.decision = decision,
          .again = attempted_.again,
          .keys = attempted_.keys,
          .not_before = attempted_.not_before};
}

std::optional<Decision> Engine::State::PatientCall::GiveUp(Now now, const Heard& heard,
                                                           Duration age) {
  std::shared_ptr<const PolicyVersion> version = state_.versions.Share();
  // In memory there is no reason not to ask.
  if (asks_once_ || !version->is_shared()) return std::nullopt;
  const std::shared_ptr<Home> home = version->home;
  const Patience patience{.request = request_.view(),
                          .cost = cost_,
                          .now = now,
                          .rest = Duration(0),
                          .arrival = Arrival::kBehindOthers};
  auto attempt = std::make_unique<SharedAttempt>(state_, std::move(version), patience, WaitId{0});
  // All who wait for an engine hear the same kind.
  const bool counts = attempt->course() == Call::Course::kCharges &&
                      attempt->Suppose(static_cast<const SharedAttempt::Heard&>(heard), age);
  attempted_ = attempt->heard()->attempted;
  if (counts) home->blocking->Start(std::move(attempt));
  return attempted_.answer.decision;
}

void Engine::State::PatientCall::Done(const Decision& decision) {
  // Not what the last attempt said: the engine ends.
  if (decision.reason != attempted_.answer.decision.reason) attempted_ = {};
  if (asks_once_ && attempted_.answer.decision.reason == decision.reason) {
    return done_(attempted_.answer, attempted_.each);
  }
  // It was booked some time ago, and what was to be waited for has passed since.
  const Duration held = decision.allowed ? attempted_.answer.decision.delay : Duration(0);
  attempted_.answer.decision = decision;
  attempted_.TakeOff(held);
  attempted_.Tell(done_);
}

void Engine::State::Attempted::TakeOff(Duration passed) {
  const auto take_off = [&](Decision& decision) {
    decision.reset_after = std::max(decision.reset_after - passed, Duration(0));
  };
  take_off(answer.decision);
  for (RuleDecision& rule : each) take_off(rule.decision);
}

void Engine::State::Attempted::Tell(const WaitDone& done) {
  // Where it was waited for, nothing is left to wait.
  answer.decision.delay = Duration(0);
  for (RuleDecision& rule : each) rule.decision.delay = Duration(0);
  done(answer, each);
}

void Engine::State::Attempted::Refuse(Duration retry_after) {
  again = false;
  answer.decision.allowed = false;
  answer.decision.reason = Reason::kOverload;
  answer.decision.delay = Duration(0);
  answer.decision.retry_after = retry_after;
  answer.decision.reservation = ReservationId::kNone;
  each.clear();
}

void Engine::State::Attempted::YieldToOthers() {
  Decision& decision = answer.decision;
  decision.allowed = false;
  decision.reason = Reason::kLimited;
  decision.delay = Duration(0);
  decision.retry_after = std::max(decision.reset_after, Duration(1));
}

void Engine::State::Attempt(const PolicyVersion& version, const Patience& patience,
                            Attempted& attempted) noexcept {
  Call call(version, hasher, patience.request);
  const Call::Course course = Prepare(call, Verb::kCheck, patience.cost);
  attempted = {};
  if (course != Call::Course::kCharges) {
    NoteOutcome(course);
    attempted.answer = AnswerWithoutCounting(course, patience.cost);
    return;
  }
  // To wait for nothing is not to name a wait: a queue would say how long it takes, and be waited
  // for.
  if (!patience.asks_once) call.SetWait(std::max(patience.rest, Duration(1)), patience.what);
  KeyHashes keys;
  call.ListKeys(keys);
  attempted.keys.assign(keys.begin(), keys.end());
  bool behind = patience.arrival == Arrival::kBehindOthers;
  if (patience.arrival == Arrival::kNew) {
    behind =
        patience.what == WaitFor::kRoom && !call.BooksAhead() && waiting.HasLine(attempted.keys);
    if (waiting.IsFull() && MustWait(call, patience.now, attempted)) return;
  }
  Decide(call, patience, behind, attempted);
}

// Nothing is taken for one who could not wait; one who need not may still pass.
bool Engine::State::MustWait(Call& call, Now now, Attempted& attempted) noexcept {
  call.SetVerb(Verb::kPeek);
  Decide(call.version(), call.group(), now);
  call.TakeUpBans();
  call.Conclude({}, attempted.answer);
  const Decision& look = attempted.answer.decision;
  if (!look.allowed || look.delay == Duration(0)) return false;
  attempted.Refuse(look.delay);
  return true;
}

void Engine::State::Decide(Call& call, const Patience& patience, bool behind,
                           Attempted& attempted) noexcept {
  std::array<Receipt, kMaxGroupCharges> receipts;
  Group& group = call.group();
  group.receipts = receipts;
  // One who is not the first in line takes nothing.
  call.SetVerb(behind ? Verb::kPeek : Verb::kCheck);
  if (call.version().is_shared()) call.SetAskedAt(clock.Read().steady);
  Decide(call.version(), group, patience.now);
  call.TakeUpBans();
  const auto [has_room, is_last] = Weigh(call, patience.rest, behind, attempted);
  if (is_last && !has_room) CountDenials(call, patience.now);
  if (is_last) NoteOutcome(call, patience.now);
  TakeIn(call, receipts, behind, patience.now, attempted);
}

Engine::State::Verdict Engine::State::Weigh(Call& call, Duration rest, bool behind,
                                            Attempted& attempted) noexcept {
  const bool has_room = call.group().decision.allowed;
  const bool passes = has_room && !behind;
  attempted.again = !passes && (has_room || call.MayPassLater());
  // What other processes give back nobody hears of.
  if (call.version().is_shared() && attempted.again)
    attempted.not_before = call.DeniedBesidesPlaces();
  // Requests are counted, not attempts.
  return {.has_room = has_room, .is_last = passes || !attempted.again || rest == Duration(0)};
}

void Engine::State::TakeIn(Call& call, std::span<const Receipt> receipts, bool behind, Now asked,
                           Attempted& attempted) noexcept {
  attempted.each.resize(call.rules());
  call.Conclude(attempted.each, attempted.answer);
  if (!attempted.answer.decision.allowed) return;
  if (behind) return attempted.YieldToOthers();
  Duration& delay = attempted.answer.decision.delay;
  const bool takes_a_while = call.version().is_shared();
  // Its time is counted from when the store said so; and it may be wanted no more by now.
  if (delay > Duration(0) && takes_a_while) delay += clock.Read().steady - asked.steady;
  attempted.home = call.version().home;
  if (delay == Duration(0) && !takes_a_while) return;
  call.ForEachTaken(receipts, [&](const Charge& charge, const Receipt& receipt) {
    attempted.bookings.push_back(
        {charge.hash, *charge.limit, receipt, charge.rule, std::string(charge.key)});
  });
}

Charge Engine::State::Attempted::Booking::ToGiveBack() const noexcept {
  // Under the limit it was booked under: what another limit has taken over since is no longer the
  // last booking.
  return {.rule = rule,
          .key = key,
          .hash = hash,
          .limit = &limit,
          .cost = 0,
          .verb = Verb::kUnbook,
          .reserved = receipt.charged,
          .receipt = receipt.at};
}

void Engine::State::GiveBack(Attempted& attempted, Now now) noexcept {
  const std::shared_ptr<Home> home = std::move(attempted.home);
  if (home == nullptr) return;  // Nothing was taken.
  if (home->is_shared()) {
    return home->blocking->Start(std::make_unique<SharedGiveBack>(
        versions.Share(), waiting.reports(), std::exchange(attempted, {}), now));
  }
  InlineVector<Charge, kMaxGroupCharges> charges;
  std::array<Decision, kMaxGroupCharges> decisions;
  KeyHashes keys;
  for (const Attempted::Booking& booking : attempted.bookings) {
    charges.emplace_back(booking.ToGiveBack());
    keys.emplace_back(booking.hash);
  }
  Group group{.charges = charges.span(), .decisions = std::span(decisions).first(charges.size())};
  if (!charges.empty()) home->memory->Decide(group, now);
  // Places by their record, which is gone then; and last, because whoever gets one books again.
  const ReservationId places = attempted.answer.decision.reservation;
  if (places != ReservationId::kNone) std::ignore = Settle(Action::kCancel, places, 0, home.get());
  waiting.Nudge(keys.span());
}

// Without asking the store.
WaitId Engine::State::BeginSharedWait(const Patience& arriving, WaitDone done) {
  const auto version = versions.Share();
  Call call(*version, hasher, arriving.request);
  const Call::Course course = Prepare(call, Verb::kCheck, arriving.cost);
  if (course != Call::Course::kCharges) {
    Answer answer;
    FinishUncounted(course, call.cost(), {}, answer);
    done(answer, {});
    return WaitId{0};
  }
  KeyHashes keys;
  call.ListKeys(keys);
  std::unique_ptr<Waiter> waiter =
      std::make_unique<PatientCall>(*this, arriving, std::move(done), Attempted());
  std::optional<WaitId> id;
  // Without a thread of its own an engine serves nobody who waits.
  const bool room = waiting_bytes.load(std::memory_order_relaxed) <= kMostWaitingBytes;
  const bool has_thread = !version->is_shared() || version->home->blocking != nullptr;
  if (room && has_thread) {
    const SteadyTime now = arriving.now.steady;
    // For a queue nobody stands in line: it is one. So each has a line of its own.
    const std::uint64_t own = Mix(reinterpret_cast<std::uintptr_t>(waiter.get()));
    const auto line = arriving.what == WaitFor::kQueues ? std::span(&own, 1) : keys.span();
    id = waiting.StandInLine(waiter, line, now, now + arriving.rest);
  }
  if (id) return *id;
  waiter->Done({.allowed = false, .reason = Reason::kOverload, .cost = arriving.cost});
  return WaitId{0};
}

WaitId Engine::State::BeginWait(const Patience& arriving, WaitDone done) {
  if (is_shared) return BeginSharedWait(arriving, std::move(done));
  Attempted attempted;
  Attempt(*versions.Read(), arriving, attempted);
  const Decision& decision = attempted.answer.decision;
  const Duration delay = decision.delay;
  const bool held = decision.allowed && delay > Duration(0);
  if (!held && !attempted.again) {
    attempted.Tell(done);
    return WaitId{0};
  }
  Decision answer = decision;
  answer.delay = Duration(0);
  const SteadyTime now = arriving.now.steady;
  const std::vector<std::uint64_t> keys = attempted.keys;
  auto call = std::make_unique<PatientCall>(*this, arriving, std::move(done), std::move(attempted));
  std::unique_ptr<Waiter> waiter = std::move(call);
  std::optional<WaitId> id;
  if (waiting_bytes.load(std::memory_order_relaxed) <= kMostWaitingBytes) {
    id = held ? waiting.Hold(waiter, answer, now + delay)
              : waiting.StandInLine(waiter, keys, now, now + arriving.rest);
  }
  if (id) return *id;
  if (held) waiter->GiveBack(arriving.now);
  answer.allowed = false;
  answer.reason = Reason::kOverload;
  answer.reservation = ReservationId::kNone;
  if (held) answer.retry_after = delay;
  waiter->Done(answer);
  return WaitId{0};
}

WaitId Engine::CheckThen(const Request& request, const Ask& ask, Duration patience, WaitDone done,
                         WaitFor what) {
  const Duration most = state_->versions.Read()->compiled().spec.max_wait;
  patience = std::clamp(patience, Duration(0), std::max(most, Duration(0)));
  if (patience > Duration(0) || state_->is_shared || what == WaitFor::kQueues) {
    return state_->BeginWait({.request = request,
                              .cost = State::NearestCost(ask.cost),
                              .now = state_->When(ask),
                              .rest = patience,
                              .arrival = State::Arrival::kNew,
                              .what = what},
                             std::move(done));
  }
  std::array<RuleDecision, kMaxGroupCharges> each;
  const Answer answer = Check(request, ask, each);
  done(answer, std::span(each).first(answer.rules));
  return WaitId{0};
}

bool Engine::MayQueue(const Request& request) const {
  const auto version = state_->versions.Read();
  if (version->queues.empty()) return false;
  const CompiledPolicy& policy = version->compiled();
  const Request counted = policy.WithTierThatCounts(request);
  const Facts facts(counted);
  return std::ranges::any_of(version->queues,
                             [&](std::uint32_t rule) { return policy.MatchOf(rule).Holds(facts); });
}

bool Engine::CancelWait(WaitId id) { return state_->waiting.Cancel(id); }

void Engine::SetMaxWaiters(std::size_t most) { state_->waiting.SetCapacity(most); }

}  // namespace weir
