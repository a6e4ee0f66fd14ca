// Works out what the algorithms need from a LimitSpec that was found to be right.
#include <weir/limit.h>

#include <algorithm>
#include <utility>

#include "base/mix.h"
#include "base/ticks.h"
#include "limit/calendar.h"
#include "limit/limit_check.h"

namespace weir {
namespace {

// Enough for every change that people make by hand. A longer chain would make the first check of a
// key after a change slow.
constexpr int kMostPredecessors = 8;

// As far ahead as any bucket may be.
constexpr std::int64_t kFurthest = ToTicks(2 * kMaxBurstTime + kMaxWait).count();

constexpr std::int64_t DivideRoundingUp(std::int64_t dividend, std::int64_t divisor) noexcept {
  return dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
}

// Of the longest window of the kind, by the calendar alone.
Duration NominalWindow(CalendarPeriod period) noexcept {
  switch (period) {
    case CalendarPeriod::kWeek:
      return std::chrono::days(7);
    case CalendarPeriod::kMonth:
      return std::chrono::days(31);
    case CalendarPeriod::kYear:
      return std::chrono::days(366);
    default:
      return std::chrono::days(1);
  }
}

// A window may last longer if the clocks are set back in it: by 3 hours at most, as the history of
// time zones has it (a polar base; elsewhere by 1 or 2).
constexpr std::chrono::hours kSetBack(3);

SteadyTime LaterBy(Duration step, SteadyTime at) noexcept {
  return std::min(at, SteadyTime::max() - step) + step;
}

// Absorbs values one by one; the result depends on every bit of each and on their order.
class SaltMixer {
 public:
  SaltMixer& Add(std::uint64_t value) noexcept {
    state_ = Mix(state_ ^ value);
    return *this;
  }
  std::uint64_t Salt() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0;
};

// Limits of which one can go on with the state of the other have the same salt in the same
// generation. Buckets can with any rate, windows with any count.
std::uint64_t SaltOf(const LimitSpec& spec, std::uint64_t generation) noexcept {
  SaltMixer mixer;
  mixer.Add(generation).Add(std::to_underlying(spec.kind));
  mixer.Add(std::to_underlying(spec.algorithm)).Add(spec.queue ? 1 : 0);
  if (spec.algorithm == Algorithm::kConcurrency) {
    mixer.Add(static_cast<std::uint64_t>(spec.lease.count()));
  } else if (spec.align == Align::kCalendar) {
    const bool weekly = spec.calendar == CalendarPeriod::kWeek;
    mixer.Add(std::to_underlying(spec.calendar)).Add(weekly ? spec.week_start.c_encoding() : 0);
    for (const char c : spec.zone) mixer.Add(static_cast<unsigned char>(c));
  } else if (!IsBucket(spec.algorithm)) {
    mixer.Add(static_cast<std::uint64_t>(spec.period.count()));
    mixer.Add(spec.strict ? static_cast<std::uint64_t>(spec.sub_windows) : 0);
  }
  return mixer.Salt();
}

// By what the limit says alone, so that every process comes to the same.
std::uint32_t FamilyOf(std::span<const Limit> limits) noexcept {
  SaltMixer mixer;
  for (const Limit& limit : limits) {
    const LimitSpec& spec = limit.spec();
    mixer.Add(SaltOf(spec, 0)).Add(static_cast<std::uint64_t>(spec.count));
    mixer.Add(static_cast<std::uint64_t>(spec.period.count()));
    mixer.Add(static_cast<std::uint64_t>(limit.capacity()));
  }
  return static_cast<std::uint32_t>(mixer.Salt());
}

}  // namespace

Result<Limit> Limit::Make(const LimitSpec& spec) {
  Limit limit;
  if (std::optional<std::string> problem = FindProblem(spec)) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, *std::move(problem)});
  }
  limit.spec_ = spec;
  limit.state_salt_ = SaltOf(spec, limit.generation_);
  if (spec.kind != LimitKind::kCounted) {
    limit.capacity_ = spec.kind == LimitKind::kDeny ? 0 : kMaxCount;
    return limit;
  }
  if (spec.align == Align::kCalendar) {
    auto calendar = Calendar::Make(spec.calendar, spec.zone, spec.week_start);
    if (!calendar) return std::unexpected(std::move(calendar.error()));
    limit.calendar_ = *std::move(calendar);
  }
  limit.max_wait_ = ToTicks(spec.max_wait).count();
  if (IsBucket(spec.algorithm)) {
    limit.WorkOutBucket();
  } else {
    limit.WorkOutWindow();
  }
  limit.family_ = FamilyOf({&limit, 1});
  return limit;
}

Result<Limit> Limit::ForSharedStore() const {
  const auto refuse = [](std::string message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
  };
  Limit copy = *this;
  if (kind() != LimitKind::kCounted) return copy;
  const bool keeps_events =
      algorithm() == Algorithm::kSlidingLog || algorithm() == Algorithm::kConcurrency;
  if (keeps_events && capacity_ > kMaxSharedLogEntries) {
    return refuse("a shared store keeps at most " + std::to_string(kMaxSharedLogEntries) +
                  " entries of a log or leases; write a lower limit, or another algorithm");
  }
  if (spec_.strict) {
    copy.SetSubWindow(DivideRoundingUp(sub_window_, kTicksPerNanosecond) * kTicksPerNanosecond);
  }
  if (!IsBucket(algorithm())) return copy;
  // By what it says: its interval was rounded up.
  __extension__ using Wide = __int128;
  constexpr Wide kSecond = Duration(std::chrono::seconds(1)).count();
  if (Wide{spec_.count} * kSecond > Wide{kMaxSharedBucketRate} * spec_.period.count()) {
    return refuse("a shared store counts at most " + std::to_string(kMaxSharedBucketRate) +
                  " a second; write a lower rate");
  }
  copy.SetEmissionInterval(DivideRoundingUp(emission_interval_, kTicksPerNanosecond) *
                           kTicksPerNanosecond);
  // Others that share its keys may leave more behind than it would itself.
  copy.SetFurthest(std::max(furthest_, copy.FurthestByItself()));
  return copy;
}

void Limit::WorkOutBucket() {
  // Rounded up, so that nothing is ever above the stated rate.
  SetEmissionInterval(DivideRoundingUp(ToTicks(spec_.period).count(), spec_.count));
}

void Limit::SetEmissionInterval(std::int64_t interval) noexcept {
  emission_interval_ = interval;
  emission_reciprocal_ = ~std::uint64_t{0} / static_cast<std::uint64_t>(emission_interval_);
  capacity_ = BurstOf(spec_);
  burst_tolerance_ = capacity_ * emission_interval_;
  is_plain_bucket_ = !spec_.queue && !spec_.overdraft;
  refill_time_ = ToDuration(Ticks(burst_tolerance_));
  time_to_fresh_ = ToDuration(Ticks(FurthestByItself()));
  SetFurthest(FurthestByItself());
}

void Limit::SetSubWindow(std::int64_t length) noexcept {
  sub_window_ = length;
  time_to_fresh_ = ToDuration(Ticks((spec_.sub_windows + 1) * length));
}

void Limit::SetFurthest(std::int64_t furthest) noexcept { furthest_ = furthest; }

// Only of buckets: other limits that differ in more than their count keep their state apart.
void Limit::ShareKeys(std::span<Limit> limits) noexcept {
  std::int64_t furthest = 0;
  for (const Limit& limit : limits) {
    if (limit.is_bucket()) furthest = std::max(furthest, limit.FurthestByItself());
  }
  const std::uint32_t family = FamilyOf(limits);
  for (Limit& limit : limits) {
    if (limit.is_bucket()) limit.SetFurthest(furthest);
    limit.family_ = family;
  }
}

Limit Limit::SharingKeysWithAny() const {
  Limit copy = *this;
  if (is_bucket()) copy.SetFurthest(kFurthest);
  return copy;
}

void Limit::WorkOutWindow() {
  capacity_ = spec_.count;
  if (spec_.algorithm == Algorithm::kConcurrency) {
    time_to_fresh_ = spec_.lease;
    return;
  }
  if (calendar_ != nullptr) {
    refill_time_ = NominalWindow(spec_.calendar);
    time_to_fresh_ = refill_time_ + kSetBack;
    return;
  }
  refill_time_ = spec_.period;
  window_ = ToTicks(spec_.period).count();
  time_to_fresh_ = spec_.period;
  if (spec_.strict) {
    SetSubWindow(DivideRoundingUp(window_, spec_.sub_windows));
  } else if (spec_.algorithm == Algorithm::kSlidingWindow) {
    time_to_fresh_ = 2 * spec_.period;
  }
}

Limit Limit::Replacing(const Limit& before, Now now) const {
  return spec_ == before.spec_ ? before : ReplacingAmongOthers(before, now);
}

Limit Limit::ReplacingAmongOthers(const Limit& before, Now now) const {
  Limit next = *this;
  next.predecessor_.reset();
  const bool goes_on = kind() == LimitKind::kCounted && SaltOf(spec_, 0) == SaltOf(before.spec_, 0);
  if (goes_on && algorithm() == Algorithm::kConcurrency) {
    // A lease is a lease under any number of places: nothing needs to be carried over.
    next.generation_ = before.generation_;
    next.state_salt_ = before.state_salt_;
    return next;
  }
  next.generation_ = before.generation_ + 1;
  next.state_salt_ = SaltOf(spec_, next.generation_);
  if (goes_on) {
    next.predecessor_ =
        std::make_shared<const Limit>(before.Remembering(kMostPredecessors - 1, now.steady));
    // A wall clock that is set back by less than a window makes a calendar window last longer.
    const bool by_wall = before.calendar_ != nullptr;
    next.predecessor_until_ = LaterBy(before.time_to_fresh_ * (by_wall ? 2 : 1), now.steady);
    // A key that `before` has not seen may still have state of one further back.
    if (next.predecessor_->predecessor_ != nullptr) {
      next.predecessor_until_ = std::max(next.predecessor_until_, before.predecessor_until_);
    }
  }
  return next;
}

Limit Limit::InPlaceOf(const Limit& other) const {
  Limit copy = *this;
  copy.generation_ = other.generation_;
  copy.state_salt_ = SaltOf(spec_, other.generation_);
  copy.predecessor_until_ = other.predecessor_until_;
  copy.predecessor_.reset();
  if (other.predecessor_ != nullptr) {
    copy.predecessor_ = std::make_shared<const Limit>(InPlaceOf(*other.predecessor_));
  }
  return copy;
}

Result<Limit> Limit::WithPast(const Past& past) const {
  const auto refuse = [](const char* message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, message});
  };
  Limit copy = *this;
  copy.generation_ = past.generation;
  copy.state_salt_ = SaltOf(spec_, past.generation);
  if (is_bucket()) {
    if (past.furthest < FurthestByItself() || past.furthest > kFurthest) {
      return refuse("a bucket cannot be that far ahead");
    }
    copy.SetFurthest(past.furthest);
  }
  if (past.predecessor == nullptr) return copy;
  const bool goes_on = kind() == LimitKind::kCounted && algorithm() != Algorithm::kConcurrency &&
                       SaltOf(spec_, 0) == SaltOf(past.predecessor->spec_, 0);
  if (!goes_on) return refuse("a limit cannot go on with what another kind of limit counted");
  // With the same generation both would have the same keys in the store, which locks both at once.
  if (past.generation != past.predecessor->generation() + 1) {
    return refuse("a limit must be one generation younger than its predecessor");
  }
  int line = 0;
  for (const Limit* limit = past.predecessor.get(); limit != nullptr;
       limit = limit->predecessor()) {
    if (++line > kMostPredecessors) return refuse("a limit has too many predecessors");
  }
  copy.predecessor_ = past.predecessor;
  copy.predecessor_until_ = past.predecessor_until;
  return copy;
}

Limit Limit::Remembering(int predecessors, SteadyTime now) const {
  Limit copy = *this;
  if (predecessor_ == nullptr || predecessors == 0 || now >= predecessor_until_) {
    copy.predecessor_.reset();
  } else {
    copy.predecessor_ =
        std::make_shared<const Limit>(predecessor_->Remembering(predecessors - 1, now));
  }
  return copy;
}

}  // namespace weir
