#include "algorithm/strict_window.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace weir {
namespace {

std::span<std::int64_t> Counts(const Limit& limit, StrictWindowState& state) noexcept {
  return std::span(state.counts).first(CountedSubWindows(limit));
}
std::span<const std::int64_t> Counts(const Limit& limit, const StrictWindowState& state) noexcept {
  return std::span(state.counts).first(CountedSubWindows(limit));
}

std::int64_t Sum(const Limit& limit, const StrictWindowState& state) noexcept {
  const auto counts = Counts(limit, state);
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Sub-windows are aligned to the epoch, as windows are; their length need not be a whole number of
// nanoseconds.
Ticks SubWindowEnd(const Limit& limit, const Instant& at) noexcept {
  __extension__ using Wide = __int128;
  const Wide origin = Wide{at.origin.time_since_epoch().count()} * kTicksPerNanosecond;
  const auto elapsed = static_cast<std::int64_t>((origin + at.now.count()) % limit.sub_window());
  return at.now +
         Ticks(limit.sub_window() - (elapsed < 0 ? elapsed + limit.sub_window() : elapsed));
}

// The state as it is seen in the sub-window that ends at `end`.
StrictWindowState RollTo(const Limit& limit, const StrictWindowState& state, Ticks end) noexcept {
  StrictWindowState rolled = state;
  rolled.end = end;
  if (state.end < end) {
    const auto counts = Counts(limit, rolled);
    const auto passed = static_cast<std::size_t>((end - state.end).count() / limit.sub_window());
    const std::size_t shift = std::min(passed, counts.size());
    // NOLINTNEXTLINE(modernize-use-ranges): g++ 12 has no std::ranges::shift_right
    std::shift_right(counts.begin(), counts.end(), static_cast<std::ptrdiff_t>(shift));
    std::fill_n(counts.begin(), shift, 0);
  } else if ((state.end - end).count() <= limit.window()) {
    rolled.end = state.end;  // Later than the clock, within reason: the stored one goes on.
  }
  return rolled;
}

StrictWindowState Roll(const Limit& limit, const StrictWindowState& state,
                       const Instant& at) noexcept {
  return RollTo(limit, state, SubWindowEnd(limit, at));
}

// When enough of the oldest counts will have left for `wanted` to fit.
Ticks FitsAt(const Limit& limit, const StrictWindowState& state, std::int64_t wanted) noexcept {
  const auto counts = Counts(limit, state);
  std::int64_t used = Sum(limit, state);
  Ticks at = state.end;
  for (std::size_t oldest = counts.size() - 1; oldest > 0; --oldest) {
    used -= counts[oldest];
    if (used <= limit.capacity() - wanted) return at;
    at += Ticks(limit.sub_window());
  }
  return at;
}

void After(const Limit& limit, StrictWindowState& state, const StepRequest& request) noexcept {
  const auto counts = Counts(limit, state);
  const auto add = [&](std::int64_t cost) {
    const std::int64_t used = Sum(limit, state);
    counts[0] += AddUpTo(used, cost, MostCounted(limit)) - used;
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
      for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
        const std::int64_t taken = std::min(*count, cost);
        *count -= taken;
        cost -= taken;
      }
      break;
    }
    case Verb::kReset:
      std::ranges::fill(counts, 0);
      break;
    default: {  // kSettle, kUnbook
      if (request.cost >= request.reserved) {
        add(request.cost - request.reserved);
        break;
      }
      // A receipt ahead of the state was given before clock damage was mended: nobody knows where
      // its charge is now, so it is left alone.
      const std::int64_t since = (state.end - request.receipt).count();
      const auto age = static_cast<std::size_t>(since / limit.sub_window());
      if (since < 0 || age >= counts.size()) break;
      counts[age] -= std::min(counts[age], request.reserved - request.cost);
      break;
    }
  }
}

}  // namespace

Ticks FreshAt(const Limit& limit, const StrictWindowState& state) noexcept {
  const auto counts = Counts(limit, state);
  for (std::size_t newest = 0; newest < counts.size(); ++newest) {
    if (counts[newest] == 0) continue;
    const auto to_come = static_cast<std::int64_t>(counts.size() - 1 - newest);
    return state.end + Ticks(to_come * limit.sub_window());
  }
  return Ticks(0);
}

Step<StrictWindowState> StepStrictWindow(const Limit& limit, const StrictWindowState& state,
                                         const StepRequest& request, const Instant& at) noexcept {
  Step<StrictWindowState> step;
  step.next = Roll(limit, state, at);
  const std::int64_t used = Sum(limit, step.next);
  const CountedVerdict verdict = JudgeCount(limit, used, request);
  if (verdict.allowed) After(limit, step.next, request);
  const std::int64_t used_after = Sum(limit, step.next);
  step.charged = verdict.allowed && Takes(request) ? used_after - used : 0;
  step.receipt = step.next.end;
  step.decision = DescribeCount(limit, used_after, request, verdict);
  const Ticks fresh_at = FreshAt(limit, step.next);
  if (fresh_at > at.now) step.decision.reset_after = ToDuration(fresh_at - at.now);
  if (!verdict.allowed && !verdict.never_fits) {
    const std::int64_t wanted = limit.spec().overdraft ? 1 : AskedCost(request);
    step.decision.retry_after = ToDuration(FitsAt(limit, step.next, wanted) - at.now);
  }
  // An earlier clock may come after this one, so only clock damage is mended without a charge.
  const bool damaged = step.next.end < state.end;
  // Nor does a window begin with nothing: a key that was fresh by any clock stays so.
  const bool counts = used > 0 || used_after > 0;
  if (!damaged && !(verdict.allowed && Changes(request) && counts)) step.next = state;
  if (request.verb == Verb::kReset) step.next = {};
  return step;
}

StrictWindowState CarryStrictWindow(const Limit& from, const Limit& to,
                                    const StrictWindowState& state) noexcept {
  // Rounds the running total, newest first, rather than each count: many small ones would not
  // shrink at all, and what is left when the older ones have gone is rounded up as well.
  StrictWindowState carried = state;
  std::int64_t before = 0;
  std::int64_t after = 0;
  for (std::int64_t& count : Counts(to, carried)) {
    before += count;
    const std::int64_t total = std::min(InProportion(before, from, to), MostCounted(to));
    count = total - after;
    after = total;
  }
  return carried;
}

StrictWindowState MergeStrictWindows(const Limit& limit, const StrictWindowState& one,
                                     const StrictWindowState& other, const Instant& at) noexcept {
  StrictWindowState a = Roll(limit, one, at);
  StrictWindowState b = Roll(limit, other, at);
  // Of two sub-windows the later goes on.
  a = RollTo(limit, a, b.end);
  b = RollTo(limit, b, a.end);
  // Held at the most as a whole: what is newest counts longest, so the oldest is forgiven first.
  std::int64_t total = 0;
  for (std::size_t i = 0; i < CountedSubWindows(limit); ++i) {
    const std::int64_t before = total;
    total = AddUpTo(total, a.counts[i] + b.counts[i], MostCounted(limit));
    a.counts[i] = total - before;
  }
  return a;
}

}  // namespace weir
