#include "lab/replay/policy_run.h"

#include <functional>

#include "store/store.h"

namespace weir::lab {

Result<std::unique_ptr<PolicyRun>> PolicyRun::Make(const Policy& policy, WallTime begin) {
  std::unique_ptr<PolicyRun> run(new PolicyRun(begin));
  Result<Engine> engine = Engine::Make(
      policy, {.clock = &run->clock_, .on_notice = [its = run.get()](std::string_view text) {
                 its->notices_.emplace_back(text);
               }});
  if (!engine) return std::unexpected(engine.error());
  run->engine_ = *std::move(engine);
  std::size_t in_force = 0;
  for (const RuleSpec& rule : policy.spec().rules) {
    const bool shadow = rule.mode == RuleMode::kShadow || rule.enforce_percent < 100;
    run->names_.push_back(rule.name);
    run->rules_.push_back({.name = rule.name, .is_shadow = shadow});
    run->has_shadows_or_queues_ = run->has_shadows_or_queues_ || shadow || rule.queue;
    in_force += rule.mode != RuleMode::kOff ? 1 : 0;
  }
  run->rules_at_once_ = std::min(in_force, kMaxGroupCharges);
  return run;
}

std::uint32_t PolicyRun::FindRule(std::string_view name) {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return kNoRule;
  const auto place = static_cast<std::uint32_t>(found - names_.begin());
  places_.emplace(name.data(), place);
  return place;
}

void PolicyRun::Check(std::span<BatchRequest> requests, std::span<const LogRecord> records) {
  each_.resize(std::max(each_.size(), requests.size() * rules_at_once_));
  const WallTime first = records.front().time;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].each = std::span(each_).subspan(i * rules_at_once_, rules_at_once_);
    requests[i].later = records[i].time - first;
  }
  engine_->CheckBatch(requests, {.steady = began_.steady + (first - began_.wall), .wall = first});

  // Whoever asks the engine about a key asks for the time that it has come to.
  clock_.Advance(records.back().time - clock_.Read().wall);

  requests_ += requests.size();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const RuleDecision& rule : EachOf(i, requests[i].answer)) keys_.Prefetch(rule.key);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const BatchRequest& request = requests[i];
    const std::span<const RuleDecision> each = EachOf(i, request.answer);
    for (const RuleDecision& rule : each) keys_.CountRequest(rule.key);
    bins_.Add(records[i].time, 0);
    const bool denied = !request.answer.decision.allowed;
    if (denied) NoteDenial(request, records[i].time);
    if (!denied && !has_shadows_or_queues_) continue;
    for (std::size_t j = 0; j < each.size(); ++j) NoteRule(each[j], j, request, records[i].time);
  }
}

void PolicyRun::NoteDenial(const BatchRequest& request, WallTime time) {
  ++denied_;
  const std::uint32_t rule = RuleOf(request.answer.decision);
  bins_.Add(time, 1 + std::min<std::size_t>(rule, rules_.size()));
  const std::uint64_t address = std::hash<std::string_view>()(request.request.ip);
  if (!request.request.ip.empty() && addresses_.CountDenial(address).is_first) ++addresses_denied_;
}

void PolicyRun::NoteRule(const RuleDecision& rule, std::size_t number, const BatchRequest& request,
                         WallTime time) {
  const Decision& decision = rule.decision;
  if (decision.allowed && decision.delay == Duration(0)) return;
  const std::uint32_t place = RuleOf(decision);
  if (place == kNoRule) return;
  RuleOutcome& outcome = rules_[place];
  if (decision.allowed) {
    // Only of a request that all let through did the queue keep its place.
    if (!request.answer.decision.allowed) return;
    ++outcome.delayed;
    outcome.longest_delay = std::max(outcome.longest_delay, decision.delay);
    return;
  }
  ++(rule.shadow ? outcome.shadow_denied : outcome.denied);
  if (rule.shadow) bins_.Add(time, 1 + place);
  if (outcome.keys_denied == 0) outcome.first_denied = time;
  outcome.last_denied = time;
  const KeyTally::Denial denial = keys_.CountDenial(rule.key);
  outcome.keys_denied += denial.is_first ? 1 : 0;
  if (denial.wants_name) keys_.Name(rule.key, place, KeyOf(request.request, number));
}

std::string PolicyRun::KeyOf(const Request& request, std::size_t number) const {
  for (const RuleExplanation& rule : engine_->Explain(request).rules) {
    if (rule.matches && number-- == 0) return rule.key;
  }
  return "";
}

PolicyOutcome PolicyRun::Outcome(std::size_t top) const {
  PolicyOutcome outcome{.requests = requests_,
                        .denied = denied_,
                        .addresses_denied = addresses_denied_,
                        .keys = keys_.keys(),
                        .rules = rules_,
                        .offenders = keys_.Top(top),
                        .notices = notices_};
  const LimiterStats store = engine_->Stats().store;
  outcome.forgotten_keys = store.evicted_live + store.evicted_denied;
  for (const RuleCount& count : engine_->RuleCounts()) {
    if (count.outcome == "no_rule") outcome.no_rule = count.count;
    if (count.outcome == "allow_list") outcome.allow_list = count.count;
    if (count.outcome == "deny_list") outcome.deny_list = count.count;
    if (count.outcome != "allowed") continue;
    for (RuleOutcome& rule : outcome.rules) {
      if (rule.name == count.rule) rule.allowed = count.count;
    }
  }
  return outcome;
}

}  // namespace weir::lab
