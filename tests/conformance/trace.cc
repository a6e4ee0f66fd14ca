#include "trace.h"

#include <limits>
#include <map>

#include "oracle.h"
#include "random.h"
#include "trace_spec.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Duration kYear = std::chrono::hours(24 * 365);
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

class TraceMaker {
 public:
  TraceMaker(Family family, std::uint64_t seed, const TraceOptions& options)
      : random_(seed), family_(family), options_(options) {
    trace_.seed = seed;
    trace_.ticks_per_nanosecond = options.ticks_per_nanosecond;
    trace_.spec = RandomSpec(family, options, random_);
    trace_.start = {SteadyTime(Duration(random_.AnySize(1, 1LL << 60))),
                    WallTime(std::chrono::sys_days(std::chrono::year(2024) / 1 / 1)) +
                        Duration(random_.Between(0, 3 * kYear.count()))};
    if (options.server_clock) {
      trace_.start.wall += kYear * 2;
      trace_.start.wall -= trace_.start.wall.time_since_epoch() % 1us;
    }
    now_ = trace_.start;
    settle_weight_ = random_.OneOf({4, 11, 60});
    calm_ = random_.Chance(25);
    oracle_ = MakeOracle(trace_.spec, trace_.start, options.ticks_per_nanosecond);
    period_ = trace_.spec.algorithm == Algorithm::kConcurrency ? trace_.spec.lease
              : trace_.spec.align == Align::kCalendar          ? Duration(24h * 31)
                                                               : trace_.spec.period;
  }

  Trace Make() {
    const std::int64_t length = random_.Between(1, options_.most_steps);
    for (int number = 0; number < length; ++number) {
      if (number > 0) {
        const Now before = now_;
        Move();
        if (!options_.clock_damage && oracle_->FindsClockDamage(now_)) now_ = before;
      }
      TraceStep step;
      step.action = RandomAction();
      step.now = now_;
      step.action.number = number;
      step.action.cost = std::min(step.action.cost, options_.most_cost);
      step.expected = last_ = oracle_->Do(step.action, now_);
      step.clock_damage = oracle_->met_clock_damage();
      const bool charged = step.action.verb == Verb::kCheck && last_.allowed && last_.cost > 0;
      if (charged) open_.push_back({number, step.action.cost});
      trace_.steps.push_back(step);
    }
    return std::move(trace_);
  }

 private:
  struct OpenCharge {
    int number;
    std::int64_t cost;
  };

  // --- Time ---

  void Move() {
    MoveFreely();
    if (!options_.server_clock) return;
    // To a microsecond before or after.
    const Duration beyond = now_.wall.time_since_epoch() % 1us;
    if (beyond == Duration(0)) return;
    const Duration step = random_.Chance(50) && !options_.plain ? -beyond : 1us - beyond;
    now_.steady += step;
    now_.wall += step;
  }

  void MoveFreely() {
    if (calm_ && random_.Chance(95)) {
      return MoveBy(
          Duration(random_.AnySize(1, std::max<std::int64_t>(1, period_.count() / 2000))));
    }
    const Duration nudge(random_.Between(-1, 1));
    switch (random_.Weighted({40, 8, 10, 16, 6, 10, 4, 3, 2, 1})) {
      case 0:
        break;  // The clock stands still.
      case 1:
        return MoveBy(Duration(random_.AnySize(1, period_.count())));
      case 2:
        return MoveBy(Duration(period_.count() / trace_.spec.count * random_.Between(1, 3)) +
                      nudge);
      case 3:
        if (last_.retry_after != kNever) MoveBy(last_.retry_after + nudge);
        return;
      case 4:
        return MoveBy(last_.reset_after + nudge);
      case 5:
        return MoveBy(oracle_->NextBoundary(now_).steady - now_.steady + nudge);
      case 6:
        return MoveBy(period_ / 10 * random_.Between(1, 25));
      case 7:
        return MoveBy(-Duration(random_.AnySize(1, period_.count())));
      case 8:
        return MoveBy(-(period_ / 10 * random_.Between(1, 50)));
      default:
        return random_.Chance(50) ? MoveBy(random_.Chance(50) ? kYear : -kYear) : SetWall();
    }
  }

  void MoveBy(Duration step) {
    const bool within = step < 3 * kYear && step > -3 * kYear;
    if (!within || (options_.plain && step < Duration(0))) return;
    const SteadyTime then = now_.steady + step;
    if (then < trace_.start.steady - 300 * 24h || then > trace_.start.steady + 3 * kYear) return;
    now_.steady = then;
    now_.wall += step;
  }

  // As when somebody sets the machine's clock: only calendar windows may care.
  void SetWall() {
    if (options_.plain || options_.server_clock) return;
    now_.wall = trace_.start.wall + (now_.steady - trace_.start.steady) +
                Duration(random_.Between(-90 * 24 * 3600, 90 * 24 * 3600) * 1'000'000'000);
  }

  // --- What is asked ---

  Action RandomAction() {
    if (options_.plain) return PlainAction();
    Action action;
    switch (random_.Weighted(
        {70, 7, 5, 3, 1, open_.empty() ? 0 : settle_weight_, open_.empty() ? 0 : 3})) {
      case 0:
        action.verb = Verb::kCheck;
        break;
      case 1:
        action.verb = Verb::kPeek;
        break;
      case 2:
        action.verb = Verb::kRefund;
        break;
      case 3:
        action.verb = Verb::kPenalize;
        break;
      case 4:
        action.verb = Verb::kReset;
        break;
      case 5:
        return SettleOne();
      default:
        action.verb = Verb::kUnbook;
        action.cost = 0;
        action.of = open_.back().number;
        open_.pop_back();
        return action;
    }
    action.cost = RandomCost();
    if (random_.Chance(12)) action.wait = RandomWait();
    return action;
  }

  Action PlainAction() {
    if (family_ == Family::kConcurrency && !open_.empty() && random_.Chance(25)) {
      Action release = SettleOne();
      release.cost = 0;
      return release;
    }
    Action action;
    do {
      action.cost = RandomCost();
    } while (action.cost == 0);
    if (family_ <= Family::kLeakyQueue && random_.Chance(25)) action.wait = RandomWait();
    return action;
  }

  Action SettleOne() {
    const auto which = random_.Between(0, static_cast<std::int64_t>(open_.size()) - 1);
    const OpenCharge charge = open_[static_cast<std::size_t>(which)];
    open_.erase(open_.begin() + which);
    Action action{.verb = Verb::kSettle, .of = charge.number};
    switch (random_.Weighted({40, 15, 25, 18, 2})) {
      case 0:
        action.cost = 0;
        break;
      case 1:
        action.cost = charge.cost;
        break;
      case 2:
        action.cost = random_.Between(0, charge.cost);
        break;
      case 3:
        action.cost = charge.cost < kHuge / 2 ? charge.cost + RandomSmall() : charge.cost;
        break;
      default:
        action.cost = kHuge;
    }
    return action;
  }

  std::int64_t RandomSmall() { return random_.Between(1, 5); }

  std::int64_t RandomCost() {
    const std::int64_t capacity = trace_.spec.burst == 0 ? trace_.spec.count : trace_.spec.burst;
    switch (random_.Weighted({5, 35, 12, 12, 10, 8, 5, 10, 2, 1})) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return RandomSmall();
      case 3:
        return std::max<std::int64_t>(1, last_.remaining);
      case 4:
        return last_.remaining + 1;
      case 5:
        return capacity;
      case 6:
        return capacity + 1;
      case 7:
        return random_.Between(1, capacity);
      case 8:
        return 2 * capacity + random_.Between(-1, 1);
      default:
        return kHuge;
    }
  }

  Duration RandomWait() {
    const Duration most = trace_.spec.max_wait;
    if (most == Duration(0)) return most;
    if (last_.retry_after > Duration(1) && last_.retry_after < most && random_.Chance(60)) {
      return last_.retry_after + Duration(random_.Between(-1, 1));
    }
    return Duration(random_.AnySize(1, most.count()));
  }

  Random random_;
  const Family family_;
  const TraceOptions options_;
  Trace trace_;
  Now now_;
  Duration period_{0};
  std::unique_ptr<Oracle> oracle_;
  Decision last_;
  std::vector<OpenCharge> open_;
  // So that much is counted at once, and logs fray where much is given back.
  bool calm_ = false;
  int settle_weight_ = 0;
};

// The same steps asked of a fresh oracle. False if one settles a charge that is not there any more.
bool Reanswer(Trace& trace) {
  const auto oracle = MakeOracle(trace.spec, trace.start, trace.ticks_per_nanosecond);
  std::map<int, bool> charged;
  for (TraceStep& step : trace.steps) {
    if (step.action.of >= 0 && !charged[step.action.of]) return false;
    step.expected = oracle->Do(step.action, step.now);
    step.clock_damage = oracle->met_clock_damage();
    charged[step.action.number] =
        step.action.verb == Verb::kCheck && step.expected.allowed && step.action.cost > 0;
  }
  return true;
}

std::string_view NameOf(Verb verb) {
  switch (verb) {
    case Verb::kCheck:
      return "check";
    case Verb::kPeek:
      return "peek";
    case Verb::kRefund:
      return "refund";
    case Verb::kPenalize:
      return "penalize";
    case Verb::kReset:
      return "reset";
    case Verb::kSettle:
      return "settle";
    case Verb::kUnbook:
      return "unbook";
  }
  return "";
}

std::string Describe(const Decision& decision) {
  return std::string(decision.allowed ? "allowed" : "denied") + " " +
         std::string(weir::NameOf(decision.reason)) +
         " remaining=" + std::to_string(decision.remaining) + "/" + std::to_string(decision.limit) +
         " retry=" + std::to_string(decision.retry_after.count()) +
         " reset=" + std::to_string(decision.reset_after.count()) +
         " delay=" + std::to_string(decision.delay.count());
}

}  // namespace

std::string_view NameOf(Family family) {
  switch (family) {
    case Family::kTokenBucket:
      return "TokenBucket";
    case Family::kLeakyMeter:
      return "LeakyMeter";
    case Family::kLeakyQueue:
      return "LeakyQueue";
    case Family::kFixedEpoch:
      return "FixedEpoch";
    case Family::kFixedCalendar:
      return "FixedCalendar";
    case Family::kSlidingEstimate:
      return "SlidingEstimate";
    case Family::kSlidingStrict:
      return "SlidingStrict";
    case Family::kSlidingLog:
      return "SlidingLog";
    case Family::kConcurrency:
      return "Concurrency";
  }
  return "";
}

Trace MakeTrace(Family family, std::uint64_t seed, const TraceOptions& options) {
  return TraceMaker(family, seed, options).Make();
}

std::optional<std::string> Difference(const Decision& expected, const Decision& got) {
  const bool same = expected.allowed == got.allowed && expected.reason == got.reason &&
                    expected.limit == got.limit && expected.remaining == got.remaining &&
                    expected.cost == got.cost && expected.retry_after == got.retry_after &&
                    expected.reset_after == got.reset_after && expected.delay == got.delay;
  if (same) return std::nullopt;
  return "expected " + Describe(expected) + "\n     got " + Describe(got);
}

Trace Shrink(Trace trace, const Trial& trial) {
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (std::size_t i = trace.steps.size(); i-- > 0;) {
      Trace candidate = trace;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
      if (!Reanswer(candidate) || !trial(candidate)) continue;
      trace = std::move(candidate);
      shorter = true;
    }
  }
  return trace;
}

std::string Describe(const Trace& trace) {
  std::string text = "seed " + std::to_string(trace.seed) + ": " + Describe(trace.spec) +
                     " start wall=" + std::to_string(trace.start.wall.time_since_epoch().count()) +
                     "\n";
  for (const TraceStep& step : trace.steps) {
    const Action& action = step.action;
    text += "  #" + std::to_string(action.number) +
            " t=" + std::to_string((step.now.steady - trace.start.steady).count()) +
            " wall=" + std::to_string((step.now.wall - trace.start.wall).count()) + " " +
            std::string(NameOf(action.verb)) + " cost=" + std::to_string(action.cost);
    if (action.wait != Duration(0)) text += " wait=" + std::to_string(action.wait.count());
    if (action.of >= 0) text += " of=#" + std::to_string(action.of);
    text += " -> " + Describe(step.expected) + (step.clock_damage ? " (clock damage)" : "") + "\n";
  }
  return text;
}

}  // namespace weir::conformance
