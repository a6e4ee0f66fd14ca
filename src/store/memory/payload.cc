#include "store/memory/payload.h"

#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/sliding_window.h"
#include "algorithm/strict_window.h"

namespace weir {
namespace {

std::int64_t Signed(std::uint64_t word) noexcept { return static_cast<std::int64_t>(word); }
std::uint64_t Unsigned(std::int64_t value) noexcept { return static_cast<std::uint64_t>(value); }

FixedWindowState ReadFixed(const std::uint64_t* payload, Ticks fresh_at) noexcept {
  return {.end = Signed(payload[1]), .count = Signed(payload[0]), .fresh_at = fresh_at};
}
void Write(std::uint64_t* payload, const FixedWindowState& state) noexcept {
  payload[0] = Unsigned(state.count);
  payload[1] = Unsigned(state.end);
}

SlidingWindowState ReadSliding(const Limit& limit, const std::uint64_t* payload,
                               Ticks fresh_at) noexcept {
  return {.end = fresh_at - Ticks(limit.window()),
          .previous = Signed(payload[0]),
          .current = Signed(payload[1])};
}
void Write(std::uint64_t* payload, const SlidingWindowState& state) noexcept {
  payload[0] = Unsigned(state.previous);
  payload[1] = Unsigned(state.current);
}

StrictWindowState ReadStrict(const Limit& limit, const std::uint64_t* payload) noexcept {
  StrictWindowState state;
  state.end = Ticks(Signed(payload[0]));
  for (std::size_t i = 0; i < CountedSubWindows(limit); ++i) {
    state.counts[i] = Signed(payload[i + 1]);
  }
  return state;
}
void Write(const Limit& limit, std::uint64_t* payload, const StrictWindowState& state) noexcept {
  payload[0] = Unsigned(state.end.count());
  for (std::size_t i = 0; i < CountedSubWindows(limit); ++i) {
    payload[i + 1] = Unsigned(state.counts[i]);
  }
}

bool KeepsLog(const Limit& limit) noexcept {
  return limit.algorithm() == Algorithm::kSlidingLog ||
         limit.algorithm() == Algorithm::kConcurrency;
}

// A denial changes nothing but what a broken clock left behind. That is mended even if the step
// should only decide: whoever is denied by it would be denied for as long as the clock was wrong.
template <typename State>
bool Changes(const Step<State>& step, Effect effect) noexcept {
  return effect == Effect::kApply || !step.decision.allowed;
}

template <typename State>
PayloadStep Report(const Step<State>& step, Ticks fresh_at) noexcept {
  return {.decision = step.decision,
          .charged = step.charged,
          .receipt = step.receipt,
          .fresh_at = fresh_at};
}

}  // namespace

PayloadState::PayloadState(const Limit& limit, EventPool& pool, std::uint64_t* payload,
                           Ticks fresh_at) noexcept
    : limit_(limit), payload_(payload), fresh_at_(fresh_at) {
  if (KeepsLog(limit)) log_.emplace(pool, payload);
}

PayloadStep PayloadState::Do(const Request& request, const Instant& at, Effect effect) noexcept {
  if (log_) return DoLog(request, at, effect);
  if (limit_.algorithm() == Algorithm::kFixedWindow) return DoFixed(request, at, effect);
  return limit_.spec().strict ? DoStrict(request, at, effect) : DoSliding(request, at, effect);
}

PayloadStep PayloadState::DoFixed(const Request& request, const Instant& at,
                                  Effect effect) noexcept {
  const auto step = StepFixedWindow(limit_, ReadFixed(payload_, fresh_at_), request, at);
  if (Changes(step, effect)) Write(payload_, step.next);
  return Report(step, step.next.fresh_at);
}

PayloadStep PayloadState::DoSliding(const Request& request, const Instant& at,
                                    Effect effect) noexcept {
  const auto step =
      StepSlidingWindow(limit_, ReadSliding(limit_, payload_, fresh_at_), request, at);
  if (Changes(step, effect)) Write(payload_, step.next);
  return Report(step, step.next.end + Ticks(limit_.window()));
}

PayloadStep PayloadState::DoStrict(const Request& request, const Instant& at,
                                   Effect effect) noexcept {
  const auto step = StepStrictWindow(limit_, ReadStrict(limit_, payload_), request, at);
  if (Changes(step, effect)) Write(limit_, payload_, step.next);
  return Report(step, FreshAt(limit_, step.next));
}

PayloadStep PayloadState::DoLog(const Request& request, const Instant& at, Effect effect) noexcept {
  const LogStep step = limit_.algorithm() == Algorithm::kConcurrency
                           ? StepConcurrency(limit_, *log_, request, at, effect)
                           : StepSlidingLog(limit_, *log_, request, at, effect);
  log_->Save();  // Even a mere look lets go of what is over.
  return {.decision = step.decision,
          .charged = step.charged,
          .receipt = step.receipt,
          .fresh_at = step.fresh_at};
}

Ticks PayloadState::CarryTo(const Limit& to) noexcept {
  switch (limit_.algorithm()) {
    case Algorithm::kSlidingLog:
      CarrySlidingLog(limit_, to, *log_);
      log_->Save();
      break;
    case Algorithm::kFixedWindow:
      Write(payload_, CarryFixedWindow(limit_, to, ReadFixed(payload_, fresh_at_)));
      break;
    case Algorithm::kSlidingWindow:
      if (limit_.spec().strict) {
        Write(limit_, payload_, CarryStrictWindow(limit_, to, ReadStrict(limit_, payload_)));
      } else {
        Write(payload_, CarrySlidingWindow(limit_, to, ReadSliding(limit_, payload_, fresh_at_)));
      }
      break;
    default:  // Leases belong to their holders, whatever the limit is now.
      break;
  }
  return fresh_at_;
}

}  // namespace weir
