#include "engine/joint_call.h"

#include <algorithm>
#include <array>

namespace weir {

struct Engine::State::JointCall::Part {
  // Either a call under the policy's rules, if it charges anything: one of these,
  std::unique_ptr<SmallCall> small{};
  std::unique_ptr<Call> large{};
  Call::Course course = Call::Course::kNoRule;
  std::int64_t cost = 0;
  bool is_call = true;
  // or a charge under a limit of its own, which it keeps.
  std::shared_ptr<const Limit> kept{};
  std::optional<SubjectWriter> subject{};
  std::optional<Charge> charge{};
  Decision decision{};

  std::size_t first = 0;  // Of its charges among those of all.

  bool charges_by_rules() const noexcept { return course == Call::Course::kCharges; }
  // Only if it does.
  template <typename Deed>
  decltype(auto) WithCall(Deed&& deed) {
    return small ? deed(*small) : deed(*large);
  }
};

Engine::State::JointCall::JointCall(State& state, const PolicyVersion& version,
                                    std::span<const RequestPart> parts, Verb verb)
    : state_(state), version_(version), verb_(verb) {
  for (const RequestPart& asked : parts.first(std::min(parts.size(), kMostParts))) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>());
    part.cost = NearestCost(asked.cost);
    if (asked.limit == nullptr) {
      Prepare(asked, part);
    } else {
      PrepareLimit(asked, part);
    }
  }
  Gather();
}

Engine::State::JointCall::~JointCall() = default;

std::vector<DenialNotes::Denied> Engine::State::JointCall::DeniedOf(std::size_t number) {
  return parts_[number]->WithCall([](auto& call) { return DenialNotes::Of(call); });
}

void Engine::State::JointCall::Ban(std::size_t number, const DenialNotes::Ban& ban) noexcept {
  parts_[number]->WithCall([&](auto& call) { call.Ban(ban.number, ban.length); });
}

void Engine::State::JointCall::CountDenials(std::size_t number, SteadyTime asked_at,
                                            Now now) noexcept {
  parts_[number]->WithCall([&](auto& call) {
    call.SetAskedAt(asked_at);
    state_.CountDenials(call, now);
  });
}

void Engine::State::JointCall::Prepare(const RequestPart& asked, Part& part) {
  part.small = std::make_unique<SmallCall>(version_, state_.hasher, asked.request);
  part.course = state_.Prepare(*part.small, verb_, part.cost);
  if (part.course == Call::Course::kTooMany) {
    part.small.reset();
    part.large = std::make_unique<Call>(version_, state_.hasher, asked.request);
    part.course = state_.Prepare(*part.large, verb_, part.cost);
  }
  if (part.charges_by_rules()) {
    part.WithCall([](auto& call) { call.RefuseDelays(); });
  } else {
    part.small.reset();
    part.large.reset();
  }
  refused_ |= part.course == Call::Course::kDenyList || part.course == Call::Course::kTooMany;
}

void Engine::State::JointCall::PrepareLimit(const RequestPart& asked, Part& part) {
  part.is_call = false;
  const std::int64_t cost = part.cost;
  const Limit* limit = asked.limit;
  if (version_.is_shared()) {
    const std::scoped_lock lock(state_.limits_mutex);
    part.kept = state_.shared_limits.Of(*limit).value_or(nullptr);
    limit = part.kept.get();
  }
  if (limit == nullptr) {
    part.decision = BeyondStore(cost);
    refused_ = true;
    return;
  }
  part.charge = state_.ChargeFor({.key = asked.key, .limit = limit, .cost = cost}, *limit,
                                 part.subject.emplace());
  part.charge->verb = verb_;
}

// What one part charges to a key, another may charge as well: the group adds that up.
void Engine::State::JointCall::Gather() {
  for (const auto& part : parts_) {
    part->first = charges_.size();
    // One part that is refused in any case must not cost the others anything.
    if (part->charges_by_rules()) {
      part->WithCall([&](auto& call) {
        if (refused_ && verb_ == Verb::kCheck) call.SetVerb(Verb::kPeek);
        const std::span<const Charge> its = call.group().charges;
        charges_.insert(charges_.end(), its.begin(), its.end());
      });
    } else if (part->charge) {
      if (refused_ && verb_ == Verb::kCheck) part->charge->verb = Verb::kPeek;
      charges_.push_back(*part->charge);
    }
  }
  if (charges_.size() > kMaxGroupCharges) {
    state_.NoteTooMany();
    refused_ = true;
    charges_.clear();
    for (const auto& part : parts_) {
      part->course = Call::Course::kTooMany;
      part->charge.reset();
      part->decision = AnswerWithoutCounting(Call::Course::kTooMany, 0).decision;
    }
  }
  decisions_.resize(charges_.size());
  group_.charges = charges_;
  group_.decisions = decisions_;
}

void Engine::State::JointCall::Spread() noexcept {
  for (const auto& part : parts_) {
    const auto from = decisions_.begin() + static_cast<std::ptrdiff_t>(part->first);
    if (part->charge) {
      part->decision = *from;
    } else if (part->charges_by_rules()) {
      part->WithCall([&](auto& call) {
        Group& its = call.group();
        std::copy_n(from, its.decisions.size(), its.decisions.begin());
        its.decision = Combine(its.charges, its.decisions);
        call.TakeUpBans();
      });
    }
  }
}

void Engine::State::JointCall::Fail() noexcept {
  for (const auto& part : parts_) {
    if (part->charge) {
      part->decision = {.allowed = false,
                        .reason = Reason::kStoreFailure,
                        .source = Source::kClosed,
                        .cost = part->charge->cost};
    } else if (part->charges_by_rules()) {
      part->WithCall([](auto& call) { call.Fail(); });
    }
  }
}

std::size_t Engine::State::JointCall::NextDenied(std::size_t number) const noexcept {
  for (; number < parts_.size(); ++number) {
    Part& part = *parts_[number];
    const bool decided = part.charges_by_rules() && verb_ == Verb::kCheck && !refused_;
    if (decided && part.WithCall([](auto& call) { return call.NextDenial(0) < call.rules(); })) {
      break;
    }
  }
  return number;
}

RuleDecision Engine::State::JointCall::DecisionOf(Part& part, Answer& answer) noexcept {
  if (!part.is_call) {
    answer.decision = part.decision;
    return {.decision = part.decision,
            .window = part.charge ? part.charge->limit->refill_time() : Duration(0)};
  }
  if (!part.charges_by_rules()) {
    answer = AnswerWithoutCounting(part.course, part.cost);
    return {.decision = answer.decision};
  }
  std::array<RuleDecision, kMaxGroupCharges> rules;
  part.WithCall([&](auto& call) { call.Conclude(rules, answer); });
  const auto met = std::span(rules).first(answer.rules);
  const auto speaks = std::ranges::find_if(met, [&](const RuleDecision& rule) {
    return !rule.shadow && rule.decision.rule == answer.decision.rule;
  });
  return {.decision = answer.decision,
          .window = speaks == met.end() ? Duration(0) : speaks->window};
}

Answer Engine::State::JointCall::Conclude(Now now, std::vector<RuleDecision>& each) noexcept {
  Answer all{.decision = SpeaksForNobody()};
  bool spoken = false;
  Duration delay{0};
  for (const auto& part : parts_) {
    if (verb_ == Verb::kCheck && part->is_call) {
      if (!part->charges_by_rules()) {
        state_.NoteOutcome(part->course);
      } else if (!refused_) {
        part->WithCall([&](auto& call) { state_.NoteOutcome(call, now); });
      }
    }
    Answer answer;
    each.push_back(DecisionOf(*part, answer));
    all.rules += answer.rules;
    delay = std::max(delay, answer.decision.delay);
    // Who is not counted has nothing to say, unless it is refused.
    const bool counts = part->charge || part->charges_by_rules();
    if (!counts && answer.decision.allowed) continue;
    if (spoken && !SpeaksBefore(answer.decision, all.decision)) continue;
    spoken = true;
    all.decision = answer.decision;
    all.message = answer.message;
  }
  if (all.decision.allowed) all.decision.delay = delay;
  all.decision.reservation = group_.reservation;
  return all;
}

void Engine::State::JointCall::ListKeys(std::vector<std::uint64_t>& keys) const {
  for (const Charge& charge : charges_) {
    if (!charge.shadow) keys.push_back(charge.hash);
  }
}

Answer Engine::State::DoTogether(std::span<const RequestPart> parts, Verb verb, Now now,
                                 std::span<RuleDecision> each) noexcept {
  // Kept, and not merely read: a shared store may take its time.
  const std::shared_ptr<const PolicyVersion> version = versions.Share();
  JointCall joint(*this, *version, parts, verb);
  if (joint.counts()) {
    const SteadyTime asked_at = version->is_shared() ? clock.Read().steady : now.steady;
    Decide(*version, joint.group(), now);
    if (joint.group().error) {
      joint.Fail();
    } else {
      joint.Spread();
    }
    for (std::size_t i = joint.NextDenied(0); i < joint.parts(); i = joint.NextDenied(i + 1)) {
      joint.CountDenials(i, asked_at, now);
    }
  }
  std::vector<RuleDecision> told;
  const Answer answer = joint.Conclude(now, told);
  std::copy_n(told.begin(), std::min(told.size(), each.size()), each.begin());
  if (verb == Verb::kRefund) {
    std::vector<std::uint64_t> keys;
    joint.ListKeys(keys);
    waiting.Nudge(keys);
  }
  return answer;
}

Answer Engine::CheckTogether(std::span<const RequestPart> parts, Now now,
                             std::span<RuleDecision> each) {
  return state_->DoTogether(parts, Verb::kCheck, now, each);
}

Answer Engine::RefundTogether(std::span<const RequestPart> parts, Now now,
                              std::span<RuleDecision> each) {
  return state_->DoTogether(parts, Verb::kRefund, now, each);
}

}  // namespace weir
