#include "engine/loop_engine.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/denial_notes.h"
#include "engine/engine_state.h"
#include "engine/joint_call.h"
#include "engine/loop_store.h"
#include "engine/shared_limits.h"
#include "store/key_hashes.h"

namespace weir {
namespace {

using State = EngineParts::State;

// What all questions of a loop share.
struct QuestionsAround {
  QuestionsAround(State& its_state, Loop& its_loop)
      : state(its_state), loop(its_loop), store(its_state, its_loop) {}

  State& state;
  Loop& loop;
  LoopStore store;
  SharedLimits limits;
};

// Questions are used again and again: each is answered far sooner than memory is had for the next.
// They are large, so of those that a burst of requests needed most are given back.
template <typename T>
class Pool {
 public:
  explicit Pool(QuestionsAround& around) : around_(around) {}

  T& Take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<T>(around_, *this));
      all_.back()->place = all_.size() - 1;
      free_.push_back(all_.back().get());
    }
    T& taken = *free_.back();
    free_.pop_back();
    return taken;
  }
  // It may be gone then.
  void Return(T& item) {
    if (free_.size() < kMostIdle || around_.store.has_ended()) return free_.push_back(&item);
    std::swap(all_[item.place], all_.back());
    std::swap(all_[item.place]->place, all_.back()->place);
    all_.pop_back();
  }
  // Those who are told may ask again.
  void AbandonAll() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i]->IsUnderWay()) all_[i]->Abandon();
    }
  }
  std::size_t taken() const noexcept { return all_.size() - free_.size(); }

 private:
  static constexpr std::size_t kMostIdle = 64;

  QuestionsAround& around_;
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

struct RequestDeed {
  State::Deed deed{};
  bool gives_back = false;
};

RequestDeed DeedOf(const Question& question) noexcept {
  using Kind = Question::Kind;
  switch (question.kind) {
    case Kind::kPeek:
      return {.deed = {.verb = Verb::kPeek}};
    case Kind::kReserve:
      return {.deed = {.action = Action::kReserve,
                       .ttl = std::clamp(question.ttl, Duration(0), Duration(kMaxPeriod))}};
    case Kind::kRefund:
      return {.deed = {.verb = Verb::kRefund}, .gives_back = true};
    case Kind::kPenalize:
      return {.deed = {.verb = Verb::kPenalize}};
    case Kind::kReset:
      return {.deed = {.verb = Verb::kReset}, .gives_back = true};
    default:
      return {};
  }
}

// One that is about a request. After a denial under a rule that bans it goes on: denials are
// counted, and the request that leads to a ban is told of it, if that is known in time.
template <typename AnyCall>
class RequestQuestion final : public Completion {
 public:
  RequestQuestion(QuestionsAround& around, Pool<RequestQuestion>& home)
      : around_(around), home_(home) {}

  bool IsUnderWay() const noexcept { return call_.has_value(); }
  std::size_t place = 0;  // In its pool.

  // False if the request meets more rules than there is room for here: then nothing was done.
  bool Begin(const Question& question, LoopEngine::Done& done) {
    version_ = around_.store.Version();
    now_ = around_.loop.now();
    const auto [deed, gives_back] = DeedOf(question);
    deed_ = deed;
    gives_back_ = gives_back;
    State& state = around_.state;
    call_.emplace(*version_, state.hasher, question.request);
    const Call::Course course = state.Prepare(*call_, deed.verb, State::NearestCost(question.cost));
    if (course == Call::Course::kTooMany && !std::is_same_v<AnyCall, Call>) {
      PutBack();
      return false;
    }
    if (question.at_once) call_->RefuseDelays();
    done_ = std::move(done);
    if (course != Call::Course::kCharges) {
      Answer answer;
      state.FinishUncounted(course, call_->cost(), deed_, answer);
      End(answer, {});
      return true;
    }
    Group& group = call_->group();
    group.action = deed.action;
    group.ttl = deed.ttl;
    if (around_.store.has_ended()) {
      Abandon();
    } else {
      around_.store.Submit(*version_, group, now_, *this);
    }
    return true;
  }

  void OnDecided(Group& group) noexcept override {
    if (group.error) call_->Fail();
    call_->TakeUpBans();
    const bool counts =
        deed_.verb == Verb::kCheck && !group.decision.allowed && !around_.store.has_ended();
    if (counts && call_->NextDenial(0) < call_->rules()) return CountDenials();
    Conclude();
  }

  // The store ended without a word.
  void Abandon() noexcept {
    call_->Fail();
    Conclude();
  }

 private:
  // What is left of the time that the store had.
  void CountDenials() noexcept {
    if (!version_->is_shared()) {
      around_.state.CountDenials(*call_, now_);
      return Conclude();
    }
    DenialNotes* const denials = around_.store.DenialsUnder(*version_);
    if (denials == nullptr) return Conclude();
    const SteadyTime until = now_.steady + version_->home->place->timeout();
    denials->Count(version_, DenialNotes::Of(*call_), until,
                   [this](std::span<const DenialNotes::Ban> bans) {
                     for (const auto& ban : bans) call_->Ban(ban.number, ban.length);
                     Conclude();
                   });
  }

  void Conclude() noexcept {
    if (deed_.verb == Verb::kCheck) around_.state.NoteOutcome(*call_, now_);
    std::array<RuleDecision, kMaxGroupCharges> each;
    Answer answer;
    call_->Conclude(each, answer);
    if (gives_back_) {
      KeyHashes given_back;
      call_->ListKeys(given_back);
      around_.state.waiting.Nudge(given_back.span());
    }
    End(answer, std::span(each).first(answer.rules));
  }

  // Who is told may ask again, so all is put back before.
  void End(const Answer& answer, std::span<const RuleDecision> each) noexcept {
    const LoopEngine::Done done = std::exchange(done_, nullptr);
    PutBack();
    done({.answer = answer, .each = each});
  }
  void PutBack() noexcept {
    call_.reset();
    version_.reset();
    home_.Return(*this);
  }

  QuestionsAround& around_;
  Pool<RequestQuestion>& home_;
  std::shared_ptr<const PolicyVersion> version_;
  LoopEngine::Done done_;
  Now now_{};
  State::Deed deed_{};
  bool gives_back_ = false;
  std::optional<AnyCall> call_;
};

// One about a reservation, or a key whose limit comes with it.
class OtherQuestion final : public Completion {
 public:
  OtherQuestion(QuestionsAround& around, Pool<OtherQuestion>& home)
      : around_(around), home_(home) {}

  bool IsUnderWay() const noexcept { return done_ != nullptr; }
  std::size_t place = 0;  // In its pool.

  void BeginSettle(const Question& question, LoopEngine::Done done) {
    done_ = std::move(done);
    version_ = around_.store.Version();
    const bool commits = question.kind == Question::Kind::kCommit;
    group_ = Group{.action = commits ? Action::kCommit : Action::kCancel,
                   .in_force = version_->in_force,
                   .reservation = question.reservation,
                   .cost = State::NearestCost(question.cost),
                   .keeps_cost = commits && question.keeps_cost,
                   .settled = settled_};
    Submit();
  }

  void BeginLimit(const Question& question, LoopEngine::Done done) {
    done_ = std::move(done);
    version_ = around_.store.Version();
    Result<std::shared_ptr<const Limit>> limit = around_.limits.Of(*question.limit);
    if (!limit) {
      group_ = Group{.decision = State::BeyondStore(State::NearestCost(question.cost))};
      group_.error = limit.error();
      return End();
    }
    limit_ = *std::move(limit);
    SubjectWriter subject(subject_);
    charge_ = around_.state.ChargeFor({.key = question.key,
                                       .limit = question.limit,
                                       .cost = question.cost,
                                       .verb = question.verb},
                                      *limit_, subject);
    group_ = Group{.charges = {&charge_, 1}, .decisions = {&decision_, 1}};
    Submit();
  }

  void OnDecided(Group& /*group*/) noexcept override { End(); }

  void Abandon() noexcept {
    group_.error = Error{ErrorCode::kOverloaded, "the store is being left"};
    End();
  }

 private:
  void Submit() noexcept {
    if (around_.store.has_ended()) return Abandon();
    around_.store.Submit(*version_, group_, around_.loop.now(), *this);
  }

  void End() noexcept {
    const bool by_limit = group_.action == Action::kDecide;
    if (!by_limit && !group_.error) {
      around_.state.waiting.Nudge(std::span(settled_).first(group_.settled_count));
    }
    Answer answer;
    // A limit is decided, one way or another; only one that the store cannot count by is not.
    const bool failed = by_limit && group_.error && limit_ != nullptr;
    std::optional<Error> error = failed ? std::nullopt : std::exchange(group_.error, std::nullopt);
    if (failed) {
      answer.decision = {.allowed = false,
                         .reason = Reason::kStoreFailure,
                         .source = Source::kClosed,
                         .cost = charge_.cost};
    } else if (by_limit && limit_ != nullptr) {
      answer.decision = decision_;
      answer.decision.reservation = group_.reservation;
    } else {
      answer.decision = group_.decision;
    }
    const LoopEngine::Done done = std::exchange(done_, nullptr);
    version_.reset();
    limit_.reset();
    home_.Return(*this);
    done({.answer = answer, .each = {}, .error = error ? &*error : nullptr});
  }

  QuestionsAround& around_;
  Pool<OtherQuestion>& home_;
  LoopEngine::Done done_;
  std::shared_ptr<const PolicyVersion> version_;
  std::shared_ptr<const Limit> limit_;
  Charge charge_;
  Decision decision_;
  std::array<char, SubjectWriter::kBufferBytes> subject_;
  Group group_;
  std::array<std::uint64_t, kMaxGroupCharges> settled_;
};

// One about a request of several parts.
class JointQuestion final : public Completion {
 public:
  JointQuestion(QuestionsAround& around, Pool<JointQuestion>& home)
      : around_(around), home_(home) {}

  bool IsUnderWay() const noexcept { return call_.has_value(); }
  std::size_t place = 0;  // In its pool.

  void Begin(const Question& question, LoopEngine::Done done) {
    version_ = around_.store.Version();
    now_ = around_.loop.now();
    done_ = std::move(done);
    gives_back_ = question.kind == Question::Kind::kRefundTogether;
    call_.emplace(around_.state, *version_, question.parts,
                  gives_back_ ? Verb::kRefund : Verb::kCheck);
    if (!call_->counts()) return Conclude();
    if (around_.store.has_ended()) return Abandon();
    around_.store.Submit(*version_, call_->group(), now_, *this);
  }

  void OnDecided(Group& group) noexcept override {
    if (group.error) return Abandon();
    call_->Spread();
    CountDenials(0);
  }

  // The store ended without a word.
  void Abandon() noexcept {
    call_->Fail();
    Conclude();
  }

 private:
  // Of one part after the other, in what is left of the time that the store had.
  void CountDenials(std::size_t number) noexcept {
    number = call_->NextDenied(number);
    if (number == call_->parts() || around_.store.has_ended()) return Conclude();
    if (!version_->is_shared()) {
      call_->CountDenials(number, now_.steady, now_);
      return CountDenials(number + 1);
    }
    DenialNotes* const denials = around_.store.DenialsUnder(*version_);
    if (denials == nullptr) return Conclude();
    const SteadyTime until = now_.steady + version_->home->place->timeout();
    denials->Count(version_, call_->DeniedOf(number), until,
                   [this, number](std::span<const DenialNotes::Ban> bans) {
                     for (const auto& ban : bans) call_->Ban(number, ban);
                     CountDenials(number + 1);
                   });
  }

  // Who is told may ask again, so all is put back before.
  void Conclude() noexcept {
    std::vector<RuleDecision> each;
    const Answer answer = call_->Conclude(now_, each);
    if (gives_back_) {
      std::vector<std::uint64_t> keys;
      call_->ListKeys(keys);
      around_.state.waiting.Nudge(keys);
    }
    const LoopEngine::Done done = std::exchange(done_, nullptr);
    call_.reset();
    version_.reset();
    home_.Return(*this);
    done({.answer = answer, .each = each});
  }

  QuestionsAround& around_;
  Pool<JointQuestion>& home_;
  std::shared_ptr<const PolicyVersion> version_;
  LoopEngine::Done done_;
  Now now_{};
  bool gives_back_ = false;
  std::optional<State::JointCall> call_;
};

class LoopQuestions final : public LoopEngine {
 public:
  LoopQuestions(State& state, Loop& loop) : around_(state, loop) {}
  LoopQuestions(const LoopQuestions&) = delete;
  LoopQuestions& operator=(const LoopQuestions&) = delete;
  ~LoopQuestions() override {
    around_.store.End();
    // Those that even its end told nothing.
    requests_.AbandonAll();
    large_requests_.AbandonAll();
    others_.AbandonAll();
    joint_.AbandonAll();
  }

  bool is_shared() const noexcept override {
    return around_.state.is_shared.load(std::memory_order_relaxed);
  }
  void TakeUpStore() override { std::ignore = around_.store.Version(); }

  void Ask(const Question& question, Done done) override {
    using Kind = Question::Kind;
    switch (question.kind) {
      case Kind::kCommit:
      case Kind::kCancel:
        return others_.Take().BeginSettle(question, std::move(done));
      case Kind::kLimit:
        return others_.Take().BeginLimit(question, std::move(done));
      case Kind::kCheckTogether:
      case Kind::kRefundTogether:
        return joint_.Take().Begin(question, std::move(done));
      default:
        if (!requests_.Take().Begin(question, done)) large_requests_.Take().Begin(question, done);
    }
  }
  std::size_t pending() const noexcept override {
    return requests_.taken() + large_requests_.taken() + others_.taken() + joint_.taken();
  }

 private:
  QuestionsAround around_;
  Pool<RequestQuestion<SmallCall>> requests_{around_};
  Pool<RequestQuestion<Call>> large_requests_{around_};
  Pool<OtherQuestion> others_{around_};
  Pool<JointQuestion> joint_{around_};
};

}  // namespace

std::unique_ptr<LoopEngine> LoopEngine::Make(Engine& engine, Loop& loop) {
  return std::make_unique<LoopQuestions>(EngineParts::StateOf(engine), loop);
}

}  // namespace weir
