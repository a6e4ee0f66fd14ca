#include "engine/call.h"

#include <algorithm>
#include <cstring>

#include "limit/limit_check.h"

namespace weir {
namespace {

// What those are charged under who are refused because they lack a part of the key.
const Limit& RefuseAll() noexcept {
  static const Limit kLimit = *Limit::Make({.kind = LimitKind::kDeny});
  return kLimit;
}

}  // namespace

template <std::size_t kRoom>
CallTypes::Course CallWithRoom<kRoom>::Prepare(Verb verb, std::int64_t cost) noexcept {
  const CompiledPolicy& policy = version_.compiled();
  cost_ = cost;
  Course course = Course::kNoRule;
  bool fits = true;
  policy.matcher->ForEach(facts_, [&](std::uint32_t number) {
    // Lists come before rules, and the allow list comes first.
    if (course == Course::kAllowList || course == Course::kDenyList || !fits) return;
    if (number < policy.allow_count) {
      course = Course::kAllowList;
    } else if (number < policy.first_rule()) {
      course = Course::kDenyList;
    } else {
      fits = Meet(number - policy.first_rule(), verb, cost);
    }
  });
  if (course != Course::kNoRule) return course;
  if (!fits || (some_ban_ && !AddBans(verb))) return Course::kTooMany;
  if (charges_.empty()) return Course::kNoRule;
  group_.charges = charges_.span();
  group_.decisions = decisions_.span();
  return Course::kCharges;
}

template <std::size_t kRoom>
bool CallWithRoom<kRoom>::IsNamed(const RuleInForce& rule) const noexcept {
  return std::ranges::find(request_.rules, rule.name) != request_.rules.end();
}

// False if there is no room for one more.
template <std::size_t kRoom>
bool CallWithRoom<kRoom>::Meet(std::uint32_t number, Verb verb, std::int64_t cost) noexcept {
  const RuleInForce& rule = version_.rules[number];
  if (!IsAskedFor(rule)) return true;
  if (charges_.size() == kRoom) return false;
  if (!rule.plain) [[unlikely]] {
    MeetSpecial(number, verb, cost);
    return true;
  }
  const std::uint8_t key = KeyOf(rule.plan, number);
  Add({.rule = rule.name,
       .hash = keys_[key].hash ^ rule.scope,
       .limit = rule.limits.data(),
       .cost = cost,
       .verb = verb,
       .shadow = !rule.enforced});
  met_.emplace_back(Met{.rule = number, .key = key, .bans = false});
  return true;
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::MeetSpecial(std::uint32_t number, Verb verb, std::int64_t cost) noexcept {
  const CompiledPolicy& policy = version_.compiled();
  const CompiledRule& rule = policy.rules[number];
  const std::size_t keys_before = keys_.size();
  const std::uint8_t key_number = KeyOf(rule.key, number);
  Key& key = keys_[key_number];
  if (!key.complete && rule.unidentified == Unidentified::kSkipRule) {
    // There is room for as many keys as charges, so one that leads to none must not stay.
    if (keys_.size() > keys_before) keys_.pop_back();
    return;
  }
  const RuleInForce& in_force = version_.rules[number];
  const bool refused = !key.complete && rule.unidentified == Unidentified::kDeny;
  const std::uint32_t its_tier = rule.tiers.empty() ? 0 : tier_.number;
  const std::string_view subject =
      rule.NeedsSubject() ? SubjectOf(key, policy.MatchOf(number)) : std::string_view();
  const auto chosen = policy.ChooseLimit(rule, subject, its_tier);
  Add({.rule = in_force.name,
       .hash = key.hash ^ in_force.scope,
       .limit = refused ? &RefuseAll() : &in_force.limits[chosen.number],
       .cost = rule.CostOf(facts_, cost),
       .verb = verb,
       .shadow = !rule.EnforcedFor(subject),
       .keeps_cost = rule.HasOwnCost()});
  met_.emplace_back(Met{.rule = number, .key = key_number, .bans = rule.block.has_value()});
  some_ban_ |= rule.block.has_value();
}

template <std::size_t kRoom>
std::uint8_t CallWithRoom<kRoom>::KeyOf(std::uint32_t plan, std::uint32_t rule) noexcept {
  std::size_t number = 0;
  for (; number < keys_.size(); ++number) {
    if (keys_[number].plan == plan) return static_cast<std::uint8_t>(number);
  }
  const CompiledPolicy& policy = version_.compiled();
  const auto [hash, complete] = policy.keys[plan].Hash(facts_, policy.MatchOf(rule), hasher_);
  keys_.emplace_back(Key{.plan = plan, .complete = complete, .hash = hash});
  return static_cast<std::uint8_t>(number);
}

template <std::size_t kRoom>
std::string_view CallWithRoom<kRoom>::WriteSubject(Key& key, const CompiledMatch& match) noexcept {
  const std::span<char> free = std::span<char>(texts_).subspan(texts_used_);
  SubjectWriter writer(free.first<SubjectWriter::kBufferBytes>());
  version_.compiled().keys[key.plan].Write(facts_, match, *version_.compiled().hash, writer);
  key.subject = writer.Finish();
  texts_used_ += key.subject.size();
  return key.subject;
}

template <std::size_t kRoom>
bool CallWithRoom<kRoom>::AddBans(Verb verb) noexcept {
  const bool asks = verb == Verb::kCheck || verb == Verb::kPeek;
  if (!asks && verb != Verb::kReset) return true;
  for (std::size_t i = 0; i < met_.size(); ++i) {
    Met& met = met_[i];
    const bool everything = verb == Verb::kReset;
    if (!met.bans || (charges_[i].shadow && !everything)) continue;
    const BlockPlan& block = *version_.compiled().rules[met.rule].block;
    const RuleInForce& rule = version_.rules[met.rule];
    const std::uint64_t key = keys_[met.key].hash;
    if (charges_.size() + (everything ? 3 : 1) > kRoom) return false;
    Charge charge{.rule = rule.name,
                  .aspect = Aspect::kBan,
                  .hash = key ^ rule.ban_scope,
                  .limit = &block.longest(),
                  .cost = 0,
                  .verb = verb,
                  .keeps_cost = true};
    met.ban = static_cast<std::uint8_t>(charges_.size());
    Add(charge);
    if (!everything) continue;
    charge.aspect = Aspect::kDenials;
    charge.hash = key ^ rule.denials_scope;
    charge.limit = &block.denials;
    Add(charge);
    if (!block.steps) continue;
    charge.aspect = Aspect::kBanSteps;
    charge.hash = key ^ rule.steps_scope;
    charge.limit = &*block.steps;
    Add(charge);
  }
  return true;
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::NameCharges() noexcept {
  for (std::size_t i = 0; i < met_.size(); ++i) {
    const Met& met = met_[i];
    const std::string_view subject = SubjectOf(i);
    const FailureMode on_failure = version_.compiled().rules[met.rule].on_store_failure;
    const auto name = [&](Charge& charge) {
      charge.key = subject;
      charge.on_failure = on_failure;
    };
    name(charges_[i]);
    // What else is asked about its bans stands behind the ban itself.
    for (std::size_t j = met.ban; j < charges_.size(); ++j) {
      if (j != met.ban && charges_[j].aspect == Aspect::kBan) break;
      name(charges_[j]);
    }
  }
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::Suppose(std::span<const RuleDecision> heard, Duration age) noexcept {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    const Charge& charge = charges_[i];
    const auto same = std::ranges::find_if(
        heard, [&](const RuleDecision& rule) { return rule.decision.rule == charge.rule; });
    Decision& decision = decisions_[i];
    const bool is_ban = i >= met_.size();
    // That somebody who wanted more was denied says nothing.
    const bool known = same != heard.end() && !is_ban &&
                       (same->decision.allowed || charge.cost >= same->decision.cost);
    const std::int64_t capacity = charge.limit->capacity();
    decision = known ? same->decision
                     : Decision{.allowed = true,
                                .reason = Reason::kOk,
                                .rule = charge.rule,
                                .limit = capacity,
                                .remaining = capacity};
    decision.cost = charge.cost;
    decision.delay = Duration(0);
    decision.reservation = ReservationId::kNone;
    decision.reset_after = std::max(decision.reset_after - age, Duration(0));
    if (decision.allowed || decision.retry_after == kNever) continue;
    decision.retry_after = std::max(decision.retry_after - age, Duration(1));
  }
  group_.decision = Combine(charges_.span(), decisions_.span());
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::Fail() noexcept {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    decisions_[i] = {.allowed = false,
                     .reason = Reason::kStoreFailure,
                     .source = Source::kClosed,
                     .rule = charges_[i].rule,
                     .limit = charges_[i].limit->capacity(),
                     .cost = charges_[i].cost};
  }
  group_.decision = Combine(charges_.span(), decisions_.span());
}

template <std::size_t kRoom>
std::size_t CallWithRoom<kRoom>::FindDenial(std::size_t number) const noexcept {
  for (; number < met_.size(); ++number) {
    const Met& met = met_[number];
    if (!met.bans || charges_[number].shadow || charges_[number].cost == 0) continue;
    const Decision& decision = decisions_[number];
    const bool denied = !decision.allowed && decision.reason == Reason::kLimited;
    if (denied && !IsBanned(met)) break;
  }
  return number;
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::ListKeys(KeyHashes& keys) const noexcept {
  for (std::size_t i = 0; i < met_.size(); ++i) {
    if (!charges_[i].shadow) keys.emplace_back(charges_[i].hash);
  }
}

template <std::size_t kRoom>
bool CallWithRoom<kRoom>::BooksAhead() const noexcept {
  return std::ranges::all_of(charges_, [](const Charge& charge) {
    return charge.shadow || charge.limit->kind() != LimitKind::kCounted ||
           IsBucket(charge.limit->algorithm());
  });
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::SetWait(Duration wait, WaitFor what) noexcept {
  waits_for_ = what;
  // Bans are not waited for.
  const std::span<Charge> rules = charges_.span().first(met_.size());
  const bool only_queues =
      what == WaitFor::kQueues || std::ranges::any_of(rules, [](const Charge& charge) {
        return !charge.shadow && IsPlaces(*charge.limit);
      });
  for (Charge& charge : rules) {
    charge.wait = only_queues && !charge.limit->spec().queue ? Duration(0) : wait;
  }
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::RefuseDelays() noexcept {
  for (Charge& charge : charges_.span().first(met_.size())) {
    if (charge.limit->spec().queue) charge.wait = Duration(1);
  }
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::SetVerb(Verb verb) noexcept {
  for (Charge& charge : charges_) charge.verb = verb;
}

template <std::size_t kRoom>
bool CallWithRoom<kRoom>::MayPassLater() const noexcept {
  // A queue books ahead: it has said all it has to say.
  if (waits_for_ == WaitFor::kQueues) return false;
  for (std::size_t i = 0; i < met_.size(); ++i) {
    const Charge& charge = charges_[i];
    if (charge.shadow || decisions_[i].allowed) continue;
    // A bucket that is booked for longer than the patience stays so: both grow shorter together.
    const bool too_late = charge.wait > Duration(0) && IsBucket(charge.limit->algorithm());
    if (decisions_[i].reason != Reason::kLimited || too_late) return false;
  }
  return !group_.decision.allowed;
}

template <std::size_t kRoom>
std::optional<Duration> CallWithRoom<kRoom>::DeniedBesidesPlaces() const noexcept {
  bool wants_place = false;
  Duration others{0};
  for (std::size_t i = 0; i < met_.size(); ++i) {
    if (charges_[i].shadow || decisions_[i].allowed) continue;
    if (IsPlaces(*charges_[i].limit)) {
      wants_place = true;
    } else {
      others = std::max(others, decisions_[i].retry_after);
    }
  }
  return wants_place ? std::optional(others) : std::nullopt;
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::TakeUpSomeBans() noexcept {
  for (std::size_t i = 0; i < met_.size(); ++i) {
    if (IsBanned(met_[i])) DenyFor(i, decisions_[met_[i].ban].retry_after);
  }
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::DenyFor(std::size_t number, Duration rest) noexcept {
  Decision& decision = decisions_[number];
  const bool denied_for_longer = !decision.allowed && decision.retry_after >= rest;
  if (denied_for_longer) return;
  decision.allowed = false;
  decision.reason = Reason::kBanned;
  decision.remaining = 0;
  decision.retry_after = rest;
  decision.reset_after = std::max(decision.reset_after, rest);
  decision.delay = Duration(0);
}

template <std::size_t kRoom>
void CallWithRoom<kRoom>::Conclude(std::span<RuleDecision> each, Answer& answer) noexcept {
  answer.rules = met_.size();
  answer.message = {};
  for (std::size_t i = 0; i < std::min(met_.size(), each.size()); ++i) {
    each[i] = {.decision = decisions_[i],
               .shadow = charges_[i].shadow,
               .window = charges_[i].limit->refill_time(),
               .key = charges_[i].hash};
  }
  // What asks for bans stands behind the rules, and has no say of its own.
  const std::span<const Charge> rules = charges_.span().first(met_.size());
  const bool may_be_banned = charges_.size() > met_.size();
  answer.decision = may_be_banned ? Combine(rules, decisions_.span()) : group_.decision;
  answer.decision.reservation = group_.reservation;
  if (answer.decision.allowed) return;
  for (const Met& met : met_) {
    if (version_.rules[met.rule].name != answer.decision.rule) continue;
    answer.message = version_.rules[met.rule].message;
    break;
  }
}

template class CallWithRoom<kMaxGroupCharges>;
template class CallWithRoom<8>;

}  // namespace weir
