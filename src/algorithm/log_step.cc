#include "algorithm/log_step.h"

#include <algorithm>

namespace weir {
namespace {

// Drops what is over and mends what a broken clock left behind. Changes nothing that counts, so
// it may be done before anything is decided.
void Expire(EventLog& log, Ticks lifetime, Ticks now) noexcept {
  if (Event* last = log.Last(); last != nullptr && last->at - now > lifetime) {
    for (Event* event = log.First(); event != nullptr; event = log.Next(event)) {
      event->at = std::min(event->at, now);
    }
  }
  for (Event* first = log.First(); first != nullptr; first = log.First()) {
    if (first->cost != 0 && first->at + lifetime > now) break;
    log.DropFirst();
  }
}

// When enough of the oldest will have left for `wanted` to fit.
Ticks FitsAt(const Limit& limit, Ticks lifetime, EventLog& log, std::int64_t wanted) noexcept {
  std::int64_t used = log.total();
  Event* event = log.First();
  for (; used - event->cost > limit.capacity() - wanted; event = log.Next(event)) {
    used -= event->cost;
  }
  return event->at + lifetime;
}

// Events stay in order when the clock steps back.
Ticks DateFor(EventLog& log, Ticks now) noexcept {
  const Event* last = log.Last();
  return last == nullptr ? now : std::max(last->at, now);
}

void Add(const Limit& limit, EventLog& log, std::int64_t cost, Ticks now) noexcept {
  const std::int64_t charged = AddUpTo(log.total(), cost, MostCounted(limit)) - log.total();
  if (charged == 0) return;
  const Ticks date = DateFor(log, now);
  if (Event* last = log.Last(); last != nullptr && last->at == date) {
    log.Change(*last, charged);
  } else {
    log.Append({.at = date, .cost = charged});
  }
}

void TakeOldest(EventLog& log, std::int64_t cost) noexcept {
  for (Event* event = log.First(); event != nullptr && cost > 0; event = log.Next(event)) {
    const std::int64_t taken = std::min(event->cost, cost);
    log.Change(*event, -taken);
    cost -= taken;
  }
}

// Takes from the event `receipt` tells of (from several, where mending gave them one date); if
// that is gone, it no longer counts.
void TakeFrom(EventLog& log, Ticks receipt, std::int64_t cost) noexcept {
  for (Event* event = log.First(); event != nullptr && cost > 0; event = log.Next(event)) {
    if (event->at != receipt) continue;
    const std::int64_t taken = std::min(event->cost, cost);
    log.Change(*event, -taken);
    cost -= taken;
  }
}

void Apply(const Limit& limit, EventLog& log, const StepRequest& request, Ticks now) noexcept {
  switch (request.verb) {
    case Verb::kCheck:
    case Verb::kPenalize:
      Add(limit, log, request.cost, now);
      break;
    case Verb::kPeek:
      break;
    case Verb::kRefund:
      TakeOldest(log, request.cost);
      break;
    case Verb::kReset:
      log.Clear();
      break;
    default:  // kSettle, kUnbook
      if (request.cost >= request.reserved) {
        Add(limit, log, request.cost - request.reserved, now);
      } else {
        TakeFrom(log, request.receipt, request.reserved - request.cost);
      }
      break;
  }
  log.Tidy();
}

// Letting through what cannot be remembered would break the promise.
LogStep NoMemory(const Limit& limit, Ticks lifetime, EventLog& log, const StepRequest& request,
                 Ticks now) noexcept {
  LogStep step;
  step.decision =
      DescribeCount(limit, log.total(), request, {.allowed = false, .never_fits = false});
  step.decision.reason = Reason::kOverload;
  step.decision.retry_after = ToDuration(lifetime);
  if (const Event* last = log.Last(); last != nullptr) {
    step.decision.reset_after = ToDuration(last->at + lifetime - now);
  }
  return step;
}

}  // namespace

LogStep StepLog(const Limit& limit, Ticks lifetime, EventLog& log, const StepRequest& request,
                Ticks now, Effect effect) noexcept {
  Expire(log, lifetime, now);
  const std::int64_t used = log.total();
  const CountedVerdict verdict = JudgeCount(limit, used, request);
  if (verdict.allowed && Adds(request) && !log.MakeRoom()) {
    return NoMemory(limit, lifetime, log, request, now);
  }

  LogStep step;
  std::int64_t used_after = used;
  if (verdict.allowed && effect == Effect::kApply) {
    Apply(limit, log, request, now);
    used_after = log.total();
  } else if (verdict.allowed && Takes(request)) {
    used_after = AddUpTo(used, request.cost, MostCounted(limit));
  }
  if (Takes(request)) step.charged = used_after - used;
  step.receipt = DateFor(log, now);
  step.decision = DescribeCount(limit, used_after, request, verdict);
  if (const Event* last = log.Last(); last != nullptr) {
    step.fresh_at = last->at + lifetime;
    step.decision.reset_after = ToDuration(step.fresh_at - now);
  }
  if (!verdict.allowed && !verdict.never_fits) {
    const std::int64_t wanted = limit.spec().overdraft ? 1 : AskedCost(request);
    step.decision.retry_after = ToDuration(FitsAt(limit, lifetime, log, wanted) - now);
  }
  return step;
}

}  // namespace weir
