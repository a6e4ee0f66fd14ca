#include "store/redis/charge_numbers.h"

#include <algorithm>
#include <limits>

#include "limit/calendar.h"
#include "store/redis/key_text.h"

namespace weir::redis {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Longer than any level, and short enough to be added to one.
constexpr std::int64_t kMostTime = std::int64_t{10} * 366 * 86'400 * kNanosecondsPerSecond;
// Above every count and cost that makes a difference; sums stay exact.
constexpr std::int64_t kMostUnits = 4 * kMaxCount;

std::int64_t Nanoseconds(std::int64_t ticks) noexcept {
  return (ticks + kTicksPerNanosecond - 1) / kTicksPerNanosecond;
}

std::int64_t TimeOf(const Limit& limit, std::int64_t units) noexcept {
  __extension__ using Wide = __int128;
  const Wide time = Wide{std::max<std::int64_t>(0, units)} * Nanoseconds(limit.emission_interval());
  return time > kMostTime ? kMostTime : static_cast<std::int64_t>(time);
}

void SetAsking(const Limit& limit, const StepRequest& request, LevelChange& change) noexcept {
  const std::int64_t tolerance = Nanoseconds(limit.burst_tolerance());
  const std::int64_t wait = Nanoseconds(request.wait.count());
  const bool queue = limit.spec().queue;
  const bool overdraft = limit.spec().overdraft && !queue;
  const std::int64_t wanted = overdraft ? 1 : AskedCost(request);
  if (wanted > limit.capacity() + (queue ? 1 : 0)) {
    change.slack = -1;
    return;
  }
  if (queue) {
    change.slack = tolerance + TimeOf(limit, 1) - TimeOf(limit, wanted);
    if (wait > 0) change.slack = std::min(change.slack, wait);
  } else {
    change.slack = tolerance + wait - TimeOf(limit, wanted);
  }
  if (Takes(request)) change.add = TimeOf(limit, request.cost);
  if (overdraft) change.most = 2 * tolerance + wait;
}

// A time as two numbers. Of a negative one both are.
void AppendPair(std::vector<double>& numbers, std::int64_t nanoseconds) {
  if (nanoseconds == LevelChange::kInfinite || nanoseconds == -LevelChange::kInfinite) {
    numbers.push_back(nanoseconds > 0 ? kInfinity : -kInfinity);
    numbers.push_back(0);
    return;
  }
  const std::int64_t seconds = nanoseconds / kNanosecondsPerSecond;
  numbers.push_back(static_cast<double>(seconds));
  numbers.push_back(static_cast<double>(nanoseconds % kNanosecondsPerSecond));
}

double Number(std::int64_t nanoseconds) noexcept {
  if (nanoseconds == LevelChange::kInfinite) return kInfinity;
  if (nanoseconds == -LevelChange::kInfinite) return -kInfinity;
  return static_cast<double>(nanoseconds);
}

void AppendBucket(std::vector<double>& numbers, const Limit& limit, const StepRequest& request) {
  const LevelChange change = LevelChangeOf(limit, request);
  numbers.push_back(static_cast<double>(change.kind));
  AppendPair(numbers, change.add);
  AppendPair(numbers, change.slack);
  AppendPair(numbers, change.furthest);
  AppendPair(numbers, change.most);
  AppendPair(numbers, request.receipt.count());
}

void AppendCalendar(std::vector<double>& numbers, const Limit& limit, WallTime wall) {
  const auto seconds = [](WallTime time) {
    const auto since = std::chrono::floor<std::chrono::seconds>(time - kEpoch);
    return static_cast<double>(since.count());
  };
  const Calendar::Window window = limit.calendar()->WindowAt(Calendar::Nearest(wall));
  numbers.push_back(seconds(window.start));
  numbers.push_back(seconds(window.end));
  numbers.push_back(seconds(limit.calendar()->WindowAt(window.end).end));
  const std::int64_t fresh_after = limit.time_to_fresh().count() / kNanosecondsPerSecond;
  numbers.push_back(static_cast<double>(fresh_after));
}

void AppendWindow(std::vector<double>& numbers, const Limit& limit, StateKind kind) {
  if (kind == StateKind::kCalendarWindow) {
    numbers.push_back(ShapeOf(limit));
    numbers.push_back(static_cast<double>(UINT32_MAX));
  } else if (kind == StateKind::kLog) {
    const bool leases = limit.algorithm() == Algorithm::kConcurrency;
    const std::int64_t length = leases ? limit.spec().lease.count() : Nanoseconds(limit.window());
    const std::int64_t whole = length / 1000;  // Microseconds.
    const std::int64_t begun = (length + 999) / 1000;
    numbers.push_back(static_cast<double>(begun));
    numbers.push_back(static_cast<double>(whole));
  } else {
    AppendPair(numbers, Nanoseconds(limit.window()));
  }
}

}  // namespace

bool LevelChange::is_short() const noexcept {
  return kind == Kind::kAdd && furthest <= std::int64_t{1} << 52;
}

LevelChange LevelChangeOf(const Limit& limit, const StepRequest& request) noexcept {
  LevelChange change{.furthest = Nanoseconds(limit.furthest())};
  const std::int64_t most_debt = 2 * Nanoseconds(limit.burst_tolerance());
  switch (request.verb) {
    case Verb::kCheck:
    case Verb::kPeek:
      SetAsking(limit, request, change);
      break;
    case Verb::kRefund:
      change.add = -TimeOf(limit, request.cost);
      break;
    case Verb::kPenalize:
      change.add = TimeOf(limit, request.cost);
      change.most = most_debt;
      break;
    case Verb::kReset:
      change.add = -LevelChange::kInfinite;
      break;
    case Verb::kSettle:
      if (request.cost >= request.reserved) {
        change.add = TimeOf(limit, request.cost - request.reserved);
        change.most = most_debt;
      } else {
        change.kind = LevelChange::Kind::kGiveBack;
        change.add = TimeOf(limit, request.reserved - request.cost);
      }
      break;
    case Verb::kUnbook:
      change.kind = LevelChange::Kind::kUnbook;
      change.add = TimeOf(limit, request.reserved);
      break;
  }
  return change;
}

void AppendShort(std::vector<double>& numbers, const LevelChange& change) {
  numbers.push_back(Number(change.add));
  numbers.push_back(Number(change.slack));
  numbers.push_back(Number(change.furthest));
  numbers.push_back(Number(change.most));
}

void AppendNumbers(std::vector<double>& numbers, const Limit& limit, const StepRequest& request,
                   WallTime wall) {
  const StateKind kind = KindOf(limit);
  if (kind == StateKind::kBucket) return AppendBucket(numbers, limit, request);
  const bool leases = limit.algorithm() == Algorithm::kConcurrency;
  // A lease that is given back has ended, whatever the work turned out to cost.
  const bool ends_lease = leases && request.verb == Verb::kSettle;
  const auto units = [](std::int64_t count) {
    return static_cast<double>(std::min(count, kMostUnits));
  };
  // Of a difference neither side may be held alone.
  const bool settles = request.verb == Verb::kSettle || request.verb == Verb::kUnbook;
  const std::int64_t cost = ends_lease ? 0 : request.cost;
  const std::int64_t both = settles ? std::min(cost, request.reserved) : 0;
  numbers.push_back(static_cast<double>(request.verb));
  numbers.push_back(units(cost - both));
  numbers.push_back(units(request.reserved - both));
  AppendPair(numbers, request.receipt.count());
  numbers.push_back(units(limit.capacity()));
  numbers.push_back(units(limit.spec().overdraft ? 1 : AskedCost(request)));
  AppendWindow(numbers, limit, kind);
  // A lease is a lease under any number of places.
  numbers.push_back(leases ? 0 : limit.family());
  if (kind == StateKind::kCalendarWindow) AppendCalendar(numbers, limit, wall);
  if (kind == StateKind::kStrictWindow) {
    AppendPair(numbers, Nanoseconds(limit.sub_window()));
    numbers.push_back(limit.spec().sub_windows + 1);
  }
}

}  // namespace weir::redis
