#include "pure_subject.h"

#include "step_verb.h"

namespace weir::conformance {
namespace {

// Equal to no answer that a limit gives.
const Decision kContradiction{};

bool KeepsLog(const Limit& limit) {
  return limit.algorithm() == Algorithm::kSlidingLog ||
         limit.algorithm() == Algorithm::kConcurrency;
}

// Whether the instant at which a store may forget the key is the one that the caller was told.
bool IsFreshAsTold(DrivenKey& key, const Decision& decision) {
  if (decision.reset_after == Duration(0)) return true;
  const Ticks now = key.instant().now;
  const Limit& limit = key.limit();
  if (KeepsLog(limit)) {
    const Ticks fresh_at =
        key.LogStepNow({.verb = weir::Verb::kPeek}, Effect::kDecideOnly).fresh_at;
    return ToDuration(fresh_at - now) == decision.reset_after;
  }
  if (limit.algorithm() == Algorithm::kFixedWindow) {
    // A calendar window is kept for one longer than its own: the wall clock may be set back.
    const Duration longer = limit.calendar() == nullptr ? Duration(0) : limit.time_to_fresh();
    return ToDuration(key.fixed.fresh_at - now) == decision.reset_after + longer;
  }
  if (limit.spec().strict) {
    return ToDuration(FreshAt(limit, key.strict) - now) == decision.reset_after;
  }
  return true;
}

std::string Text(std::int64_t number) { return std::to_string(number) + ' '; }
std::string Text(Ticks ticks) { return Text(ticks.count()); }

}  // namespace

Decision PureSubject::Do(const TraceAction& action, Now now) {
  key_.SetNow(now);
  StepRequest request{
      .verb = StepVerb(action.verb), .cost = action.cost, .wait = ToTicks(action.wait)};
  if (action.of >= 0) {
    const DrivenKey::Receipt& receipt = receipts_.at(action.of);
    request.reserved = receipt.charged;
    request.receipt = receipt.at;
  }
  // A store asks first and takes then, when the whole group agrees: the answers must not differ.
  const bool keeps_log = KeepsLog(key_.limit());
  const LogStep asked = keeps_log ? key_.LogStepNow(request, Effect::kDecideOnly) : LogStep{};
  const Decision decision = key_.Do(request);
  if (keeps_log && (asked.decision.allowed != decision.allowed ||
                    asked.decision.retry_after != decision.retry_after ||
                    asked.charged != key_.receipt().charged ||
                    (asked.charged != 0 && asked.receipt != key_.receipt().at))) {
    return kContradiction;
  }
  if (action.verb == TraceVerb::kCheck && decision.allowed && action.cost != 0) {
    receipts_[action.number] = key_.receipt();
    if (!IsFreshAsTold(key_, decision)) return kContradiction;
  }
  return decision;
}

std::string PureSubject::State(Now now) {
  key_.SetNow(now);
  const Ticks lifetime = key_.limit().algorithm() == Algorithm::kConcurrency
                             ? ToTicks(key_.limit().spec().lease)
                             : Ticks(key_.limit().window());
  std::string text = Text(key_.bucket.theoretical_arrival) + Text(key_.fixed.end) +
                     Text(key_.fixed.count) + Text(key_.sliding.end) + Text(key_.sliding.previous) +
                     Text(key_.sliding.current) + Text(key_.strict.end);
  // When a calendar window may be forgotten is put off by whoever asks after the clock was set.
  if (key_.limit().calendar() == nullptr) text += Text(key_.fixed.fresh_at);
  if (key_.limit().spec().strict) {
    for (const std::int64_t count : key_.strict.counts) text += Text(count);
  }
  for (const Event& event : key_.log.events()) {
    const bool counts = event.cost > 0 && event.at > key_.instant().now - lifetime;
    if (counts) text += Text(event.at) + Text(event.cost);
  }
  return text;
}

}  // namespace weir::conformance
