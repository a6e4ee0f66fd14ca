#include "algorithm/sliding_window.h"

#include <algorithm>

#include "algorithm/fixed_window.h"

namespace weir {
namespace {

// The state as it is seen in the window that ends at `end`.
SlidingWindowState RollTo(const Limit& limit, const SlidingWindowState& state, Ticks end) noexcept {
  const Ticks window(limit.window());
  SlidingWindowState rolled = state;
  if (state.end < end) {
    const bool follows = state.end == end - window;
    rolled.previous = follows ? state.current : 0;
    rolled.current = 0;
    rolled.end = end;
  } else if (state.end - end > window) {  // Clock damage: the current window takes the counts.
    rolled.end = end;
  }
  return rolled;
}

SlidingWindowState Roll(const Limit& limit, const SlidingWindowState& state,
                        const Instant& at) noexcept {
  return RollTo(limit, state, EpochWindowEnd(limit.window(), at));
}

bool HoldsAny(const SlidingWindowState& state) noexcept {
  return state.previous + state.current > 0;
}

// What is left of the previous window's count when `left` of the current window is to come.
std::int64_t Weighted(std::int64_t previous, std::int64_t left, std::int64_t window) noexcept {
  std::int64_t product = 0;
  const bool fits = !__builtin_mul_overflow(previous, left, &product);
  if (fits) [[likely]]
    return product / window;
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(Wide{previous} * left / window);
}

std::int64_t LeftOf(const Limit& limit, Ticks end, Ticks now) noexcept {
  return std::min((end - now).count(), limit.window());
}

std::int64_t WeightedPrevious(const Limit& limit, const SlidingWindowState& state,
                              Ticks now) noexcept {
  return Weighted(state.previous, LeftOf(limit, state.end, now), limit.window());
}

// The longest time before a window's end at which Weighted(count, time) <= allowed, for a count
// that is above it: otherwise there is nothing to wait for.
std::int64_t LongestLeft(std::int64_t count, std::int64_t allowed, std::int64_t window) noexcept {
  __extension__ using Wide = __int128;
  // floor(count * left / window) <= allowed  <=>  count * left < (allowed + 1) * window
  const Wide bound = Wide{allowed + 1} * window;
  return static_cast<std::int64_t>((bound + count - 1) / count - 1);
}

// When the estimate will have room for `wanted`, if nobody else asks meanwhile.
Ticks FitsAt(const Limit& limit, const SlidingWindowState& state, std::int64_t wanted) noexcept {
  const std::int64_t room = limit.capacity() - wanted;
  if (state.current <= room) {
    return state.end - Ticks(LongestLeft(state.previous, room - state.current, limit.window()));
  }
  return state.end + Ticks(limit.window() - LongestLeft(state.current, room, limit.window()));
}

void TakeBack(std::int64_t& count, std::int64_t& cost) noexcept {
  const std::int64_t taken = std::min(count, cost);
  count -= taken;
  cost -= taken;
}

SlidingWindowState After(const Limit& limit, SlidingWindowState state, std::int64_t used,
                         const StepRequest& request) noexcept {
  const auto add = [&](std::int64_t cost) {
    state.current += AddUpTo(used, cost, MostCounted(limit)) - used;
  };
  switch (request.verb) {
    case Verb::kCheck:
    case Verb::kPenalize:
      add(request.cost);
      break;
    case Verb::kPeek:
      break;
    case Verb::kRefund: {
      std::int64_t cost = request.cost;
      TakeBack(state.previous, cost);
      TakeBack(state.current, cost);
      break;
    }
    case Verb::kReset:
      state.previous = 0;
      state.current = 0;
      break;
    default: {  // kSettle, kUnbook
      if (request.cost >= request.reserved) {
        add(request.cost - request.reserved);
        break;
      }
      std::int64_t cost = request.reserved - request.cost;
      if (request.receipt == state.end) TakeBack(state.current, cost);
      if (request.receipt == state.end - Ticks(limit.window())) TakeBack(state.previous, cost);
      break;
    }
  }
  return state;
}

Duration ResetAfter(const Limit& limit, const SlidingWindowState& state, Ticks now) noexcept {
  if (state.current > 0) return ToDuration(state.end + Ticks(limit.window()) - now);
  if (state.previous > 0) return ToDuration(state.end - now);
  return Duration(0);
}

}  // namespace

Step<SlidingWindowState> StepSlidingWindow(const Limit& limit, const SlidingWindowState& state,
                                           const StepRequest& request, const Instant& at) noexcept {
  const SlidingWindowState rolled = Roll(limit, state, at);
  const std::int64_t weighted = WeightedPrevious(limit, rolled, at.now);
  const std::int64_t used = weighted + rolled.current;
  const CountedVerdict verdict = JudgeCount(limit, used, request);

  Step<SlidingWindowState> step;
  step.next = verdict.allowed ? After(limit, rolled, used, request) : rolled;
  step.charged = verdict.allowed && Takes(request) ? step.next.current - rolled.current : 0;
  step.receipt = rolled.end;
  const std::int64_t weighted_after =
      step.next.previous == rolled.previous ? weighted : WeightedPrevious(limit, step.next, at.now);
  step.decision = DescribeCount(limit, weighted_after + step.next.current, request, verdict);
  step.decision.reset_after = ResetAfter(limit, step.next, at.now);
  if (!verdict.allowed && !verdict.never_fits) {
    const std::int64_t wanted = limit.spec().overdraft ? 1 : AskedCost(request);
    step.decision.retry_after = ToDuration(FitsAt(limit, rolled, wanted) - at.now);
  }
  // An earlier clock may come after this one, so only clock damage is mended without a charge.
  const bool damaged = rolled.end < state.end;
  // Nor does a window begin with nothing: a key that was fresh by any clock stays so.
  const bool counts = HoldsAny(rolled) || HoldsAny(step.next);
  if (!damaged && !(verdict.allowed && Changes(request) && counts)) step.next = state;
  if (request.verb == Verb::kReset) step.next = {};
  return step;
}

SlidingWindowState CarrySlidingWindow(const Limit& from, const Limit& to,
                                      const SlidingWindowState& state) noexcept {
  SlidingWindowState carried = state;
  carried.previous = std::min(InProportion(state.previous, from, to), MostCounted(to));
  carried.current = std::min(InProportion(state.current, from, to), MostCounted(to));
  return carried;
}

SlidingWindowState MergeSlidingWindows(const Limit& limit, const SlidingWindowState& one,
                                       const SlidingWindowState& other,
                                       const Instant& at) noexcept {
  SlidingWindowState a = Roll(limit, one, at);
  SlidingWindowState b = Roll(limit, other, at);
  // Of two windows the later goes on.
  a = RollTo(limit, a, b.end);
  b = RollTo(limit, b, a.end);
  return {.end = a.end,
          .previous = AddUpTo(a.previous, b.previous, MostCounted(limit)),
          .current = AddUpTo(a.current, b.current, MostCounted(limit))};
}

}  // namespace weir
