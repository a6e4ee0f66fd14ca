#include "engine/joint_call.h"

#include <algorithm>
#include <array>

namespace weir {

struct Engine::State::JointCall::Part {
  // Either a call under the policy's rules,
  std::optional<Call> call{};
  Call::Course course = Call::Course::kNoRule;
  // or a charge under a limit of its own, which it keeps.
  std::shared_ptr<const Limit> kept{};
  std::optional<SubjectWriter> subject{};
  std::optional<Charge> charge{};
  Decision decision{};

  std::size_t first = 0;  // Of its charges among those of all.
};

Engine::State::JointCall::JointCall(State& state, const PolicyVersion& version,
                                    std::span<const RequestPart> parts, Verb verb)
    : state_(state), version_(version), verb_(verb) {
  for (const RequestPart& asked : parts.first(std::min(parts.size(), kMostParts))) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>());
    if (asked.limit == nullptr) {
      Prepare(asked, part);
    } else {
      PrepareLimit(asked, part);
    }
  }
  Gather();
}

Engine::State::JointCall::~JointCall() = default;

Call& Engine::State::JointCall::call(std::size_t number) noexcept { return *parts_[number]->call; }

void Engine::State::JointCall::Prepare(const RequestPart& asked, Part& part) {
  part.call.emplace(version_, state_.hasher, asked.request);
  part.course = state_.Prepare(*part.call, verb_, NearestCost(asked.cost));
  part.call->RefuseDelays();
  refused_ |= part.course == Call::Course::kDenyList || part.course == Call::Course::kTooMany;
}

void Engine::State::JointCall::PrepareLimit(const RequestPart& asked, Part& part) {
  const std::int64_t cost = NearestCost(asked.cost);
  const Limit* limit = asked.limit;
  if (state_.is_shared()) {
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
    if (part->call && part->course == Call::Course::kCharges) {
      if (refused_ && verb_ == Verb::kCheck) part->call->SetVerb(Verb::kPeek);
      const std::span<const Charge> its = part->call->group().charges;
      charges_.insert(charges_.end(), its.begin(), its.end());
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
    } else if (part->course == Call::Course::kCharges) {
      Group& its = part->call->group();
      std::copy_n(from, its.decisions.size(), its.decisions.begin());
      its.decision = Combine(its.charges, its.decisions);
      part->call->TakeUpBans();
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
    } else if (part->course == Call::Course::kCharges) {
      part->call->Fail();
    }
  }
}

std::size_t Engine::State::JointCall::NextDenied(std::size_t number) const noexcept {
  for (; number < parts_.size(); ++number) {
    const Part& part = *parts_[number];
    const bool decided = part.course == Call::Course::kCharges && verb_ == Verb::kCheck;
    if (decided && !refused_ && part.call->NextDenial(0) < part.call->rules()) break;
  }
  return number;
}

RuleDecision Engine::State::JointCall::DecisionOf(Part& part, Answer& answer) noexcept {
  if (!part.call) {
    answer.decision = part.decision;
    return {.decision = part.decision,
            .window = part.charge ? part.charge->limit->refill_time() : Duration(0)};
  }
  if (part.course != Call::Course::kCharges) {
    answer = AnswerWithoutCounting(part.course, part.call->cost());
    return {.decision = answer.decision};
  }
  std::array<RuleDecision, kMaxGroupCharges> rules;
  part.call->Conclude(rules, answer);
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
    if (verb_ == Verb::kCheck && part->call) {
      if (part->course != Call::Course::kCharges) {
        state_.NoteOutcome(part->course);
      } else if (!refused_) {
        state_.NoteOutcome(*part->call, now);
      }
    }
    Answer answer;
    each.push_back(DecisionOf(*part, answer));
    all.rules += answer.rules;
    delay = std::max(delay, answer.decision.delay);
    // Who is not counted has nothing to say, unless it is refused.
    const bool counts = part->charge || part->course == Call::Course::kCharges;
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
    const SteadyTime asked_at = is_shared() ? clock.Read().steady : now.steady;
    Decide(joint.group(), now);
    if (joint.group().error) {
      joint.Fail();
    } else {
      joint.Spread();
    }
    for (std::size_t i = joint.NextDenied(0); i < joint.calls(); i = joint.NextDenied(i + 1)) {
      joint.call(i).SetAskedAt(asked_at);
      CountDenials(joint.call(i), now);
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
