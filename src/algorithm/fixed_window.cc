#include "algorithm/fixed_window.h"

#include <algorithm>

#include "limit/calendar.h"

namespace weir {
namespace {

// The window the clock is in, in the unit of FixedWindowState::end.
struct Frame {
  std::int64_t now;
  std::int64_t end;
  std::int64_t length;
  bool calendar;

  Duration Until(std::int64_t later) const noexcept {
    return calendar ? Duration(later - now) : ToDuration(Ticks(later - now));
  }
  // From when on nothing tells a window that ends at `later` from none. The wall clock may be set
  // back, and then a calendar window lasts longer on the steady one.
  Duration UntilForgotten(std::int64_t later) const noexcept {
    return Until(later) + (calendar ? Duration(length) : Duration(0));
  }
};

Frame FrameAt(const Limit& limit, const Instant& at) noexcept {
  if (limit.calendar() == nullptr) {
    const std::int64_t end = EpochWindowEnd(limit.window(), at).count();
    return {.now = at.now.count(), .end = end, .length = limit.window(), .calendar = false};
  }
  // A time that is held at an end of the calendar stands still there, in a window without end.
  const WallTime wall = Calendar::Nearest(at.wall);
  return {.now = wall.time_since_epoch().count(),
          .end = limit.calendar()->WindowAt(wall).end.time_since_epoch().count(),
          // Windows differ: the longest, or a short month would take the next for clock damage.
          .length = limit.time_to_fresh().count(),
          .calendar = true};
}

// The state as the clock's window sees it.
FixedWindowState Roll(const FixedWindowState& state, const Frame& frame) noexcept {
  if (state.end <= frame.now) return {.end = frame.end, .count = 0};
  const bool damaged = state.end - frame.end > frame.length;
  return {.end = damaged ? frame.end : std::max(state.end, frame.end), .count = state.count};
}

std::int64_t CountAfter(const Limit& limit, const FixedWindowState& state,
                        const StepRequest& request) noexcept {
  const std::int64_t most = MostCounted(limit);
  switch (request.verb) {
    case Verb::kCheck:
      return AddUpTo(state.count, request.cost, most);
    case Verb::kPeek:
      return state.count;
    case Verb::kRefund:
      return state.count - std::min(state.count, request.cost);
    case Verb::kPenalize:
      return AddUpTo(state.count, request.cost, most);
    case Verb::kReset:
      return 0;
    default:  // kSettle and kUnbook: only while the window it was charged to goes on.
      if (request.cost >= request.reserved) {
        return AddUpTo(state.count, request.cost - request.reserved, most);
      }
      if (state.end != request.receipt.count()) return state.count;
      return state.count - std::min(state.count, request.reserved - request.cost);
  }
}

}  // namespace

Ticks EpochWindowEnd(std::int64_t window, const Instant& at) noexcept {
  const std::int64_t nanoseconds = window / kTicksPerNanosecond;
  std::int64_t phase = at.origin.time_since_epoch().count() % nanoseconds;
  if (phase < 0) phase += nanoseconds;
  const std::int64_t elapsed = (phase * kTicksPerNanosecond + at.now.count()) % window;
  return at.now + Ticks(window - elapsed);
}

Step<FixedWindowState> StepFixedWindow(const Limit& limit, const FixedWindowState& state,
                                       const StepRequest& request, const Instant& at) noexcept {
  const Frame frame = FrameAt(limit, at);
  const FixedWindowState rolled = Roll(state, frame);
  const CountedVerdict verdict = JudgeCount(limit, rolled.count, request);

  Step<FixedWindowState> step;
  step.next = rolled;
  if (verdict.allowed) step.next.count = CountAfter(limit, rolled, request);
  step.next.fresh_at = at.now + ToTicks(frame.UntilForgotten(rolled.end));
  step.charged = verdict.allowed && Takes(request) ? step.next.count - rolled.count : 0;
  step.receipt = Ticks(rolled.end);
  step.decision = DescribeCount(limit, step.next.count, request, verdict);
  if (step.next.count > 0) step.decision.reset_after = frame.Until(rolled.end);
  if (!verdict.allowed && !verdict.never_fits) {
    step.decision.retry_after = frame.Until(rolled.end);
  }
  // An earlier clock may come after this one, so only clock damage is mended without a charge.
  const bool damaged = rolled.end < state.end;
  // Nor does a window begin with nothing: a key that was fresh by any clock stays so.
  const bool counts = rolled.count > 0 || step.next.count > 0;
  if (!damaged && !(verdict.allowed && Changes(request) && counts)) {
    // A wall clock that was set back has put the end off; whoever asks shows that it still matters.
    const bool goes_on = rolled.end == state.end;
    const Ticks fresh_at = goes_on ? std::max(state.fresh_at, step.next.fresh_at) : state.fresh_at;
    step.next = state;
    step.next.fresh_at = fresh_at;
  }
  if (request.verb == Verb::kReset) step.next = {};
  return step;
}

FixedWindowState CarryFixedWindow(const Limit& from, const Limit& to,
                                  const FixedWindowState& state) noexcept {
  FixedWindowState carried = state;
  carried.count = std::min(InProportion(state.count, from, to), MostCounted(to));
  return carried;
}

FixedWindowState MergeFixedWindows(const Limit& limit, const FixedWindowState& one,
                                   const FixedWindowState& other, const Instant& at) noexcept {
  const Frame frame = FrameAt(limit, at);
  const FixedWindowState a = Roll(one, frame);
  const FixedWindowState b = Roll(other, frame);
  const std::int64_t end = std::max(a.end, b.end);
  return {.end = end,
          .count = AddUpTo(a.count, b.count, MostCounted(limit)),
          .fresh_at = at.now + ToTicks(frame.UntilForgotten(end))};
}

}  // namespace weir
