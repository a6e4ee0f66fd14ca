#include "store/memory/payload.h"

#include <algorithm>

#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/sliding_window.h"
#include "algorithm/strict_window.h"

namespace weir {
namespace {

std::int64_t Signed(std::uint64_t word) noexcept { return static_cast<std::int64_t>(word); }
std::uint64_t Unsigned(std::int64_t value) noexcept { return static_cast<std::uint64_t>(value); }

// What the end of a window counts from.
std::int64_t EndsFrom(const Limit& limit, Ticks fresh_at) noexcept {
  return limit.calendar() != nullptr ? 0 : fresh_at.count();
}

FixedWindowState ReadFixed(const Limit& limit, const std::uint64_t* payload,
                           Ticks fresh_at) noexcept {
  return {.end = Signed(payload[1]) + EndsFrom(limit, fresh_at),
          .count = Signed(payload[0]),
          .fresh_at = fresh_at};
}
void Write(const Limit& limit, std::uint64_t* payload, const FixedWindowState& state) noexcept {
  payload[0] = Unsigned(state.count);
  payload[1] = Unsigned(state.end - EndsFrom(limit, state.fresh_at));
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

// What a broken clock left behind is mended even by a step that should only decide, or it would be
// as far ahead of every later now. State that ends sooner than before was mended.
template <typename Ends, typename State>
bool Mends(Ends before, const Step<State>& step) noexcept {
  return step.next.end < before || !step.decision.allowed;
}

StepRequest AskedOnly(StepRequest request) noexcept {
  request.verb = Verb::kPeek;
  return request;
}

}  // namespace

PayloadState::PayloadState(const Limit& limit, EventPool& pool, std::uint64_t* payload,
                           Ticks fresh_at) noexcept
    : limit_(limit), payload_(payload), fresh_at_(fresh_at) {
  if (KeepsLog(limit)) log_.emplace(pool, payload);
}

PayloadStep PayloadState::Do(const StepRequest& request, const Instant& at,
                             Effect effect) noexcept {
  if (log_) return DoLog(*log_, request, at, effect);
  if (limit_.algorithm() == Algorithm::kFixedWindow) {
    return DoWindow(
        ReadFixed(limit_, payload_, fresh_at_), request, effect,
        [&](const auto& state, const StepRequest& asked) {
          return StepFixedWindow(limit_, state, asked, at);
        },
        [](const FixedWindowState& state) { return state.fresh_at; },
        [&](const FixedWindowState& state) { Write(limit_, payload_, state); });
  }
  if (limit_.spec().strict) {
    return DoWindow(
        ReadStrict(limit_, payload_), request, effect,
        [&](const auto& state, const StepRequest& asked) {
          return StepStrictWindow(limit_, state, asked, at);
        },
        [&](const StrictWindowState& state) { return FreshAt(limit_, state); },
        [&](const StrictWindowState& state) { Write(limit_, payload_, state); });
  }
  return DoWindow(
      ReadSliding(limit_, payload_, fresh_at_), request, effect,
      [&](const auto& state, const StepRequest& asked) {
        return StepSlidingWindow(limit_, state, asked, at);
      },
      [&](const SlidingWindowState& state) { return state.end + Ticks(limit_.window()); },
      [&](const SlidingWindowState& state) { Write(payload_, state); });
}

template <typename State, typename StepFunction, typename FreshFunction, typename WriteFunction>
PayloadStep PayloadState::DoWindow(const State& state, const StepRequest& request, Effect effect,
                                   StepFunction step_on, FreshFunction fresh_at,
                                   WriteFunction write) noexcept {
  const Step<State> step = step_on(state, request);
  PayloadStep report{.decision = step.decision,
                     .charged = step.charged,
                     .receipt = step.receipt,
                     .fresh_at = fresh_at(step.next)};
  if (effect == Effect::kApply) {
    write(step.next);
    report.stored = true;
  } else if (Mends(state.end, step)) {
    // With nothing of the request's own.
    const State mended = step_on(state, AskedOnly(request)).next;
    write(mended);
    report.fresh_at = fresh_at(mended);
    report.stored = true;
  }
  if (report.stored) fresh_at_ = report.fresh_at;
  return report;
}

PayloadStep PayloadState::DoLog(ChunkedLog& log, const StepRequest& request, const Instant& at,
                                Effect effect) noexcept {
  const LogStep step = limit_.algorithm() == Algorithm::kConcurrency
                           ? StepConcurrency(limit_, log, request, at, effect)
                           : StepSlidingLog(limit_, log, request, at, effect);
  log.Save();  // Even a mere look lets go of what is over.
  return {.decision = step.decision,
          .charged = step.charged,
          .receipt = step.receipt,
          .fresh_at = step.fresh_at,
          .stored = effect == Effect::kApply};
}

Ticks PayloadState::CarryTo(const Limit& to) noexcept {
  if (log_) {
    CarrySlidingLog(limit_, to, *log_);
    log_->Save();
  } else if (limit_.algorithm() == Algorithm::kFixedWindow) {
    Write(limit_, payload_, CarryFixedWindow(limit_, to, ReadFixed(limit_, payload_, fresh_at_)));
  } else if (limit_.spec().strict) {
    Write(limit_, payload_, CarryStrictWindow(limit_, to, ReadStrict(limit_, payload_)));
  } else {
    Write(payload_, CarrySlidingWindow(limit_, to, ReadSliding(limit_, payload_, fresh_at_)));
  }
  return fresh_at_;
}

Ticks PayloadState::Absorb(PayloadState& late, const Instant& at) noexcept {
  if (log_ && late.log_) {
    MergeSlidingLogs(limit_, *log_, *late.log_);
    log_->Save();
    fresh_at_ = std::max(fresh_at_, late.fresh_at_);
  } else {
    MergeWindow(late, at);
  }
  late.Blank();
  return fresh_at_;
}

void PayloadState::MergeWindow(const PayloadState& late, const Instant& at) noexcept {
  if (limit_.algorithm() == Algorithm::kFixedWindow) {
    const FixedWindowState merged =
        MergeFixedWindows(limit_, ReadFixed(limit_, payload_, fresh_at_),
                          ReadFixed(limit_, late.payload_, late.fresh_at_), at);
    Write(limit_, payload_, merged);
    fresh_at_ = merged.fresh_at;
  } else if (limit_.spec().strict) {
    const StrictWindowState merged = MergeStrictWindows(limit_, ReadStrict(limit_, payload_),
                                                        ReadStrict(limit_, late.payload_), at);
    Write(limit_, payload_, merged);
    fresh_at_ = FreshAt(limit_, merged);
  } else {
    const SlidingWindowState merged =
        MergeSlidingWindows(limit_, ReadSliding(limit_, payload_, fresh_at_),
                            ReadSliding(limit_, late.payload_, late.fresh_at_), at);
    Write(payload_, merged);
    fresh_at_ = merged.end + Ticks(limit_.window());
  }
}

void PayloadState::Blank() noexcept {
  if (log_) {
    log_->Clear();
    log_->Save();
  } else if (limit_.spec().strict) {
    Write(limit_, payload_, StrictWindowState{});
  } else {
    Write(payload_, SlidingWindowState{});
  }
  fresh_at_ = Ticks(0);
}

}  // namespace weir
