#include "trace_maker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trace_spec.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

constexpr Duration kYear = std::chrono::hours(24 * 365);
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Now RandomStart(const TraceOptions& options, Random& random) {
  if (options.start) return *options.start;
  Now start{SteadyTime(Duration(random.AnySize(1, 1LL << 60))),
            WallTime(std::chrono::sys_days(std::chrono::year(2024) / 1 / 1)) +
                Duration(random.Between(0, 3 * kYear.count()))};
  if (!options.server_clock) return start;
  start.wall += kYear * 2;
  start.wall -= start.wall.time_since_epoch() % 1us;
  return start;
}

}  // namespace

TraceMaker::TraceMaker(Family family, std::uint64_t seed, const TraceOptions& options)
    : random_(seed), family_(family), options_(options) {
  trace_.seed = seed;
  trace_.ticks_per_nanosecond = options.ticks_per_nanosecond;
  trace_.spec = RandomSpec(family, options, random_);
  trace_.start = now_ = RandomStart(options, random_);
  settle_weight_ = random_.OneOf({4, 11, 60});
  reserve_percent_ = random_.OneOf({20, 50, 90});
  calm_ = random_.Chance(25);
  oracle_ = MakeOracle(trace_.spec, trace_.start, options.ticks_per_nanosecond);
  period_ = trace_.spec.algorithm == Algorithm::kConcurrency ? trace_.spec.lease
            : trace_.spec.align == Align::kCalendar          ? Duration(24h * 31)
                                                             : trace_.spec.period;
  length_ = random_.Between(1, options_.most_steps);
}

const TraceStep& TraceMaker::Next() {
  const int number = static_cast<int>(trace_.steps.size());
  if (number > 0) {
    const Now before = now_;
    Move();
    if (!options_.clock_damage && oracle_->FindsClockDamage(now_)) now_ = before;
  }
  EndLeases();
  TraceStep& step = trace_.steps.emplace_back();
  step.action = RandomAction();
  step.action.number = number;
  step.action.cost = std::min(step.action.cost, options_.most_cost);
  step.now = now_;
  return step;
}

const TraceStep& TraceMaker::Answer(Now at) {
  TraceStep& step = trace_.steps.back();
  step.now = now_ = at;
  step.expected = last_ = oracle_->Do(step.action, now_);
  step.clock_damage = oracle_->met_clock_damage();
  const TraceAction& action = step.action;
  const bool charged = action.verb == TraceVerb::kCheck && last_.allowed && last_.cost > 0;
  if (charged && action.keeps != Keeps::kNothing) {
    open_.push_back({action.number, action.cost, action.keeps, at.steady});
  }
  return step;
}

// --- Time ---

void TraceMaker::Move() {
  MoveFreely();
  if (!options_.server_clock) return;
  // To a microsecond before or after.
  const Duration beyond = now_.wall.time_since_epoch() % 1us;
  if (beyond == Duration(0)) return;
  const Duration step = random_.Chance(50) && !OnlyForward() ? -beyond : 1us - beyond;
  now_.steady += step;
  now_.wall += step;
}

void TraceMaker::MoveFreely() {
  if (calm_ && random_.Chance(95)) {
    return MoveBy(Duration(random_.AnySize(1, std::max<std::int64_t>(1, period_.count() / 2000))));
  }
  const Duration nudge(random_.Between(-1, 1));
  switch (random_.Weighted({40, 8, 10, 16, 6, 10, 4, 3, 2, 1})) {
    case 0:
      break;  // The clock stands still.
    case 1:
      return MoveBy(Duration(random_.AnySize(1, period_.count())));
    case 2:
      return MoveBy(Duration(period_.count() / trace_.spec.count * random_.Between(1, 3)) + nudge);
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

void TraceMaker::MoveBy(Duration step) {
  const bool within = step < 3 * kYear && step > -3 * kYear;
  if (!within || (OnlyForward() && step < Duration(0))) return;
  const SteadyTime then = now_.steady + step;
  if (then < trace_.start.steady - 300 * 24h || then > trace_.start.steady + 3 * kYear) return;
  now_.steady = then;
  now_.wall += step;
}

// As when somebody sets the machine's clock: only calendar windows may care.
void TraceMaker::SetWall() {
  if (OnlyForward() || options_.server_clock) return;
  now_.wall = trace_.start.wall + (now_.steady - trace_.start.steady) +
              Duration(random_.Between(-90 * 24 * 3600, 90 * 24 * 3600) * 1'000'000'000);
}

// --- What is asked ---

TraceAction TraceMaker::RandomAction() {
  if (options_.plain) return PlainAction();
  const auto booked = [](const OpenCharge& charge) { return charge.keeps == Keeps::kReceipt; };
  const int settles = CanSettleAny() ? settle_weight_ : 0;
  const int unbooks = std::ranges::any_of(open_, booked) ? 3 : 0;
  constexpr TraceVerb kOrder[] = {TraceVerb::kCheck,    TraceVerb::kPeek,  TraceVerb::kRefund,
                                  TraceVerb::kPenalize, TraceVerb::kReset, TraceVerb::kSettle,
                                  TraceVerb::kUnbook};
  TraceAction action{.verb = kOrder[random_.Weighted({70, 7, 5, 3, 1, settles, unbooks})]};
  if (action.verb == TraceVerb::kSettle) return SettleOne();
  if (action.verb == TraceVerb::kUnbook) return UnbookLast();
  action.cost = RandomCost();
  if (random_.Chance(12)) action.wait = RandomWait();
  if (action.verb == TraceVerb::kCheck) action.keeps = RandomKeeps();
  return action;
}

TraceAction TraceMaker::PlainAction() {
  const bool releases = family_ == Family::kConcurrency;
  if (releases && CanSettleAny() && random_.Chance(25)) {
    TraceAction release = SettleOne();
    release.cost = 0;
    return release;
  }
  TraceAction action;
  do {
    action.cost = RandomCost();
  } while (action.cost == 0);
  if (family_ <= Family::kLeakyQueue && random_.Chance(25)) action.wait = RandomWait();
  if (releases) action.keeps = random_.OneOf({Keeps::kReceipt, Keeps::kReservation});
  return action;
}

Keeps TraceMaker::RandomKeeps() {
  if (random_.Chance(reserve_percent_)) return Keeps::kReservation;
  return random_.OneOf({Keeps::kNothing, Keeps::kReceipt});
}

void TraceMaker::EndLeases() {
  for (OpenCharge& charge : open_) {
    charge.has_ended = charge.has_ended || charge.at + trace_.spec.lease <= now_.steady;
  }
}

// A lease can be given back whether it was reserved or not; if not, stores know it no longer than
// it lasts.
bool TraceMaker::CanSettle(const OpenCharge& charge) const {
  if (charge.keeps == Keeps::kReservation) return true;
  return family_ == Family::kConcurrency && !charge.has_ended;
}

bool TraceMaker::CanSettleAny() const {
  return std::ranges::any_of(open_, [this](const OpenCharge& one) { return CanSettle(one); });
}

TraceMaker::OpenCharge TraceMaker::TakeOut(std::size_t place) {
  const OpenCharge charge = open_[place];
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
  return charge;
}

TraceAction TraceMaker::SettleOne() {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (CanSettle(open_[i])) places.push_back(i);
  }
  const auto which = random_.Between(0, static_cast<std::int64_t>(places.size()) - 1);
  const OpenCharge charge = TakeOut(places[static_cast<std::size_t>(which)]);
  TraceAction action{.verb = TraceVerb::kSettle, .of = charge.number};
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

TraceAction TraceMaker::UnbookLast() {
  std::size_t place = open_.size() - 1;
  while (open_[place].keeps != Keeps::kReceipt) --place;
  return {.verb = TraceVerb::kUnbook, .cost = 0, .of = TakeOut(place).number};
}

std::int64_t TraceMaker::RandomCost() {
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

Duration TraceMaker::RandomWait() {
  const Duration most = trace_.spec.max_wait;
  if (most == Duration(0)) return most;
  if (last_.retry_after > Duration(1) && last_.retry_after < most && random_.Chance(60)) {
    return last_.retry_after + Duration(random_.Between(-1, 1));
  }
  return Duration(random_.AnySize(1, most.count()));
}

}  // namespace weir::conformance
