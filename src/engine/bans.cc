#include "engine/bans.h"

#include <algorithm>

namespace weir {
namespace {

std::uint64_t ScopeOf(Aspect aspect, const RuleInForce& rule) noexcept {
  switch (aspect) {
    case Aspect::kBan:
      return rule.ban_scope;
    case Aspect::kDenials:
      return rule.denials_scope;
    case Aspect::kBanSteps:
      return rule.steps_scope;
    default:
      return rule.scope;
  }
}

}  // namespace

DenialCount::DenialCount(const PolicyVersion& version, const Call::Denial& denial,
                         std::string_view subject) noexcept
    : block_(*version.compiled().rules[denial.rule].block),
      rule_(version.rules[denial.rule]),
      key_(denial.key),
      charge_{.rule = rule_.name,
              .key = subject,
              .on_failure = version.compiled().rules[denial.rule].on_store_failure} {
  Ask(Stage::kDenials, Aspect::kDenials, block_.denials, Verb::kCheck);
}

void DenialCount::Ask(Stage stage, Aspect aspect, const Limit& limit, Verb verb) noexcept {
  stage_ = stage;
  charge_.aspect = aspect;
  charge_.hash = key_ ^ ScopeOf(aspect, rule_);
  charge_.limit = &limit;
  charge_.verb = verb;
}

void DenialCount::AskForBan(std::size_t step) noexcept {
  const Limit& ban = block_.lengths[step];
  Ask(Stage::kBan, Aspect::kBan, ban, Verb::kPenalize);
  length_ = ban.spec().period;
}

void DenialCount::Take(const Decision& decision) noexcept {
  switch (stage_) {
    case Stage::kDenials: {
      // Of several that come at once just one takes the last place. Nobody is shut out by a store
      // that could not be asked.
      const bool counted = decision.source != Source::kOpen && decision.source != Source::kClosed;
      if (!counted || !decision.allowed || decision.remaining != 0) {
        stage_ = Stage::kOver;
      } else if (block_.steps) {
        Ask(Stage::kSteps, Aspect::kBanSteps, *block_.steps, Verb::kPenalize);
      } else {
        AskForBan(0);
      }
      break;
    }
    case Stage::kSteps: {
      // What stands in for a store does not know how often somebody was banned before.
      const bool known = decision.source == Source::kStore || decision.source == Source::kMemory;
      const auto before = static_cast<std::size_t>(
          std::max<std::int64_t>(block_.steps->capacity() - decision.remaining - 1, 0));
      AskForBan(known ? std::min(before, block_.lengths.size() - 1) : 0);
      break;
    }
    case Stage::kBan:
      Ask(Stage::kForget, Aspect::kDenials, block_.denials, Verb::kReset);
      break;
    default:
      stage_ = Stage::kOver;
      break;
  }
}

void DenialCounts::Go(std::size_t number) noexcept {
  number_ = call_.NextDenial(number);
  count_.reset();
  if (number_ == call_.rules()) return;
  count_.emplace(call_.version(), call_.DenialUnder(number_), call_.SubjectOf(number_));
}

const Charge* DenialCounts::Next() noexcept {
  while (count_) {
    if (const Charge* const charge = count_->Next()) return charge;
    if (count_->length() > Duration(0)) call_.Ban(number_, count_->length());
    Go(number_ + 1);
  }
  return nullptr;
}

Duration CountDenial(const PolicyVersion& version, const Call::Denial& denial,
                     std::string_view subject, Store& store, Now now) noexcept {
  DenialCount count(version, denial, subject);
  while (const Charge* const charge = count.Next()) {
    std::array<Decision, 1> decisions;
    Group group{.charges = {charge, 1}, .decisions = decisions};
    SubmitOne(store, group, now);
    if (group.error) return Duration(0);
    count.Take(decisions[0]);
  }
  return count.length();
}

}  // namespace weir
