#include "counting_oracle.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace weir::conformance {
namespace {

// A charge and where it was made: the end of its window or sub-window, or its very instant.
struct CountedEvent {
  Wide slot;
  Wide cost;
};

// What a key looks like at some instant.
struct View {
  std::vector<CountedEvent> events;
  Wide current = 0;  // The slot that a charge would go to.
};

class CountingOracle : public Oracle {
 public:
  CountingOracle(const LimitSpec& spec, Now start, int resolution)
      : spec_(spec), start_(start), resolution_(resolution), limit_(spec.count) {}

  Decision Do(const TraceAction& action, Now now) override {
    const Wide at = At(now);
    View view = Look(at);
    // Nobody may be shut out for longer than a full drain, so the drain begins now, whatever is
    // asked and whatever the answer.
    if (met_clock_damage_) Keep(view);
    const bool counted = HoldsAny(view, at);

    Decision decision;
    decision.limit = spec_.count;
    decision.cost = action.cost;
    decision.allowed = true;
    decision.reason = Reason::kOk;
    switch (action.verb) {
      case TraceVerb::kCheck:
      case TraceVerb::kPeek:
        Judge(action, at, view, decision);
        break;
      case TraceVerb::kRefund:
        TakeBack(view, at, action.cost, std::nullopt);
        if (counted) Keep(view);
        break;
      case TraceVerb::kPenalize:
        Charge(view, std::min(Wide(action.cost), DebtLeft(view, at)));
        if (counted || HoldsAny(view, at)) Keep(view);
        break;
      case TraceVerb::kReset:
        view.events.clear();
        Keep(view);
        stored_.reset();
        break;
      case TraceVerb::kUnbook:  // Nothing here is booked ahead: the charge is cancelled.
      case TraceVerb::kSettle: {
        const CountedEvent& charge = charges_.at(action.of);
        const Wide cost = spec_.algorithm == Algorithm::kConcurrency ? 0 : action.cost;
        if (cost > charge.cost) {
          Charge(view, std::min(cost - charge.cost, DebtLeft(view, at)));
        } else {
          TakeBack(view, at, charge.cost - cost, charge.slot);
        }
        if (counted || HoldsAny(view, at)) Keep(view);
        break;
      }
    }
    decision.remaining = static_cast<std::int64_t>(std::max<Wide>(0, limit_ - Used(view, at)));
    decision.reset_after = UpToNanoseconds(std::max<Wide>(0, FreshAt(view, at) - at));
    return decision;
  }

  bool FindsClockDamage(Now now) override {
    Look(At(now));
    return met_clock_damage_;
  }

  Now NextBoundary(Now now) const override {
    const Duration step = UpToNanoseconds(Boundary(At(now)) - At(now));
    return {now.steady + step, now.wall + step};
  }

 protected:
  // The instant in ticks, on the wall clock as it was set at the start.
  virtual Wide At(Now now) const {
    return Wide((now.steady - start_.steady + start_.wall.time_since_epoch()).count()) *
           resolution_;
  }
  // Where a charge goes at that instant if nothing was stored yet.
  virtual Wide Slot(Wide at) const = 0;
  // The slot one period after `slot`: what is stored further ahead than that is clock damage.
  virtual Wide OnePeriodAfter(Wide slot) const = 0;
  virtual bool Counts(const View& view, const CountedEvent& event, Wide at) const = 0;
  virtual Wide Used(const View& view, Wide at) const {
    Wide sum = 0;
    for (const CountedEvent& event : view.events)
      sum += Counts(view, event, at) ? event.cost : Wide(0);
    return sum;
  }
  // From when on an event no longer counts.
  virtual Wide EndOf(const CountedEvent& event) const = 0;
  virtual Wide Boundary(Wide at) const = 0;

  // The stored window wins over an earlier one of the clock's; one that is more than a period
  // ahead becomes the clock's, with its count.
  virtual View Look(Wide at) {
    View view{.events = events_, .current = Slot(at)};
    met_clock_damage_ = stored_ && *stored_ > OnePeriodAfter(view.current);
    if (met_clock_damage_) {
      for (CountedEvent& event : view.events) event.slot -= *stored_ - view.current;
    } else if (stored_) {
      view.current = std::max(view.current, *stored_);
    }
    return view;
  }
  // The same key later on, untouched: only forward, so damage cannot be met.
  virtual View Later(const View& view, Wide at) const {
    return {.events = view.events, .current = std::max(view.current, Slot(at))};
  }

  const LimitSpec spec_;
  const Now start_;
  const Wide resolution_;
  const Wide limit_;
  std::vector<CountedEvent> events_;
  std::optional<Wide> stored_;

 private:
  Duration UpToNanoseconds(Wide ticks) const {
    return Duration(static_cast<std::int64_t>(CeilDiv(ticks, resolution_)));
  }

  Wide FreshAt(const View& view, Wide at) const {
    Wide fresh_at = at;
    for (const CountedEvent& event : view.events) {
      if (event.cost > 0 && Counts(view, event, at)) fresh_at = std::max(fresh_at, EndOf(event));
    }
    return fresh_at;
  }

  // Who leaves a fresh key fresh begins no window.
  bool HoldsAny(const View& view, Wide at) const {
    return std::ranges::any_of(view.events, [&](const CountedEvent& event) {
      return event.cost > 0 && Counts(view, event, at);
    });
  }

  Wide DebtLeft(const View& view, Wide at) const {
    return std::max<Wide>(0, 2 * limit_ - Used(view, at));
  }

  void Judge(const TraceAction& action, Wide at, View& view, Decision& decision) {
    const bool takes = action.verb == TraceVerb::kCheck && action.cost != 0;
    const Wide asked = action.cost == 0 ? 1 : action.cost;
    const Wide wanted = spec_.overdraft ? 1 : asked;
    if (wanted > limit_) {
      decision.allowed = false;
      decision.reason = Reason::kNeverFits;
      decision.retry_after = kNever;
    } else if (Used(view, at) + wanted > limit_) {
      decision.allowed = false;
      decision.reason = Reason::kLimited;
      decision.retry_after = FirstFit(view, at, wanted);
    } else if (takes) {
      const Wide taken = spec_.overdraft ? std::min(asked, DebtLeft(view, at)) : asked;
      Charge(view, taken);
      charges_[action.number] = {view.current, taken};
      Keep(view);
    }
  }

  // The first nanosecond from now at which `wanted` fits, found by halving: what counts only ever
  // shrinks while nothing is charged.
  Duration FirstFit(const View& view, Wide at, Wide wanted) const {
    Wide denied = 0;
    Wide fits = CeilDiv(FreshAt(view, at) - at, resolution_);
    while (fits - denied > 1) {
      const Wide middle = denied + (fits - denied) / 2;
      const Wide then = at + middle * resolution_;
      (Used(Later(view, then), then) + wanted <= limit_ ? fits : denied) = middle;
    }
    return Duration(static_cast<std::int64_t>(fits));
  }

  static void Charge(View& view, Wide cost) {
    if (cost > 0) view.events.push_back({view.current, cost});
  }

  // From the oldest on; from one slot only, if one is named.
  void TakeBack(View& view, Wide at, Wide cost, std::optional<Wide> slot) const {
    std::ranges::sort(view.events, {}, &CountedEvent::slot);
    for (CountedEvent& event : view.events) {
      if (!Counts(view, event, at) || (slot && event.slot != *slot)) continue;
      const Wide back = std::min(cost, event.cost);
      event.cost -= back;
      cost -= back;
    }
  }

  void Keep(const View& view) {
    events_ = view.events;
    stored_ = view.current;
  }

  std::map<int, CountedEvent> charges_;
};

// Windows of equal length since 1970; a slot is named by its end.
class EpochOracle : public CountingOracle {
 public:
  EpochOracle(const LimitSpec& spec, Now start, int resolution, Wide length, Wide counted)
      : CountingOracle(spec, start, resolution), length_(length), counted_(counted) {}

 protected:
  Wide Slot(Wide at) const override { return (FloorDiv(at, length_) + 1) * length_; }
  Wide OnePeriodAfter(Wide slot) const override {
    return slot + Wide(spec_.period.count()) * resolution_;
  }
  bool Counts(const View& view, const CountedEvent& event, Wide) const override {
    return event.slot <= view.current && event.slot > view.current - counted_ * length_;
  }
  Wide EndOf(const CountedEvent& event) const override {
    return event.slot + (counted_ - 1) * length_;
  }
  Wide Boundary(Wide at) const override { return Slot(at); }

  const Wide length_;
  const Wide counted_;  // How many windows count, the current one among them.
};

class SlidingOracle final : public EpochOracle {
 public:
  SlidingOracle(const LimitSpec& spec, Now start, int resolution)
      : EpochOracle(spec, start, resolution, Wide(spec.period.count()) * resolution, 2) {}

 protected:
  Wide Used(const View& view, Wide at) const override {
    Wide previous = 0;
    Wide current = 0;
    for (const CountedEvent& event : view.events) {
      if (event.slot == view.current) current += event.cost;
      if (event.slot == view.current - length_) previous += event.cost;
    }
    const Wide left = std::min(length_, view.current - at);
    return FloorDiv(previous * left, length_) + current;
  }
};

class CalendarOracle final : public CountingOracle {
 public:
  using CountingOracle::CountingOracle;

 protected:
  Wide At(Now now) const override {
    return Wide(now.wall.time_since_epoch().count()) * resolution_;
  }
  Wide Slot(Wide at) const override {
    // Local time is dear to ask for; between two instants of one window lies only that window.
    const auto after = earliest_seen_.upper_bound(at);
    if (after != earliest_seen_.end() && after->second <= at) return after->first;
    const WallTime wall(Duration(static_cast<std::int64_t>(FloorDiv(at, resolution_))));
    const Wide end = Wide(CalendarEnd(spec_, wall).time_since_epoch().count()) * resolution_;
    Wide& earliest = earliest_seen_.try_emplace(end, at).first->second;
    earliest = std::min(earliest, at);
    return end;
  }
  Wide OnePeriodAfter(Wide slot) const override { return Slot(slot); }
  bool Counts(const View& view, const CountedEvent& event, Wide) const override {
    return event.slot == view.current;
  }
  Wide EndOf(const CountedEvent& event) const override { return event.slot; }
  Wide Boundary(Wide at) const override { return Slot(at); }
  // Windows differ in length, so the stored count moves and nothing else does.
  View Look(Wide at) override {
    View view{.events = events_, .current = Slot(at)};
    met_clock_damage_ = stored_ && *stored_ > OnePeriodAfter(view.current);
    if (!met_clock_damage_) {
      if (stored_) view.current = std::max(view.current, *stored_);
      return view;
    }
    std::erase_if(view.events, [&](const CountedEvent& event) { return event.slot != *stored_; });
    for (CountedEvent& event : view.events) event.slot = view.current;
    return view;
  }

 private:
  mutable std::map<Wide, Wide> earliest_seen_;  // By the window's end.
};

// The log, and leases: an event counts for its lifetime.
class LogOracle final : public CountingOracle {
 public:
  LogOracle(const LimitSpec& spec, Now start, int resolution, Duration lifetime)
      : CountingOracle(spec, start, resolution), lifetime_(Wide(lifetime.count()) * resolution) {}

 protected:
  Wide Slot(Wide at) const override { return at; }
  Wide OnePeriodAfter(Wide slot) const override { return slot + lifetime_; }
  bool Counts(const View&, const CountedEvent& event, Wide at) const override {
    return event.slot > at - lifetime_;
  }
  Wide EndOf(const CountedEvent& event) const override { return event.slot + lifetime_; }
  Wide Boundary(Wide at) const override {
    Wide next = at + lifetime_;
    for (const CountedEvent& event : events_) {
      if (EndOf(event) >= at) next = std::min(next, EndOf(event));
    }
    return next;
  }
  // Events later than the clock stay. If the newest is more than a period later, all that are later
  // count as of now: were the others to stay, they would outlive what came after them.
  View Look(Wide at) override {
    // No log can keep everything: it forgets what is over by any clock it was shown.
    std::erase_if(events_, [&](const CountedEvent& event) { return EndOf(event) <= at; });
    View view{.events = events_, .current = at};
    for (const CountedEvent& event : view.events) {
      if (event.cost > 0) view.current = std::max(view.current, event.slot);
    }
    met_clock_damage_ = view.current > OnePeriodAfter(at);
    if (!met_clock_damage_) return view;
    for (CountedEvent& event : view.events) event.slot = std::min(event.slot, at);
    view.current = at;
    return view;
  }

 private:
  const Wide lifetime_;
};

}  // namespace

std::unique_ptr<Oracle> MakeCountingOracle(const LimitSpec& spec, Now start, int resolution) {
  const Wide window = Wide(spec.period.count()) * resolution;
  switch (spec.algorithm) {
    case Algorithm::kFixedWindow:
      if (spec.align == Align::kCalendar) {
        return std::make_unique<CalendarOracle>(spec, start, resolution);
      }
      return std::make_unique<EpochOracle>(spec, start, resolution, window, 1);
    case Algorithm::kSlidingWindow:
      if (!spec.strict) return std::make_unique<SlidingOracle>(spec, start, resolution);
      return std::make_unique<EpochOracle>(spec, start, resolution,
                                           CeilDiv(window, spec.sub_windows), spec.sub_windows + 1);
    case Algorithm::kSlidingLog:
      return std::make_unique<LogOracle>(spec, start, resolution, spec.period);
    default:
      return std::make_unique<LogOracle>(spec, start, resolution, spec.lease);
  }
}

}  // namespace weir::conformance
