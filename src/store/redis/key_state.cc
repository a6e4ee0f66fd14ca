#include "store/redis/key_state.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "algorithm/fixed_window.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/sliding_window.h"
#include "algorithm/strict_window.h"

namespace weir::redis {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written that way");

constexpr std::int64_t kYear = std::int64_t{366} * 86'400 * kNanosecondsPerSecond;
// Steps count ticks, for which there is less room than for nanoseconds: seen from so long ago,
// everything that can matter fits.
constexpr std::int64_t kBefore = 3 * kYear;

Instant InstantOf(const Moment& moment) noexcept {
  const WallTime origin = kEpoch + Duration(moment.now - kBefore);
  return {.now = ToTicks(Duration(kBefore)), .wall = moment.wall, .origin = origin};
}
Ticks TicksOf(std::int64_t at, const Moment& moment) noexcept {
  const std::int64_t ahead = std::clamp(at - moment.now, -kBefore, 10 * kYear);
  return ToTicks(Duration(kBefore + ahead));
}
std::int64_t NanosecondsOf(Ticks ticks, const Moment& moment) noexcept {
  return moment.now - kBefore + ticks.count() / kTicksPerNanosecond;
}

template <typename T>
T ReadAt(std::string_view bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

// The same as the script's own check.
bool IsCount(double number) noexcept {
  return number >= 0 && number <= 4e15 &&
         number == static_cast<double>(static_cast<std::int64_t>(number));
}

std::int64_t InProportion(std::int64_t count, std::int64_t before, std::int64_t after) noexcept {
  if (count >= 2 * before) return 2 * after;
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(count) * static_cast<Wide>(after);
  const auto divisor = static_cast<Wide>(before);
  const auto scaled = static_cast<std::int64_t>((product + divisor - 1) / divisor);
  return std::min(scaled, 2 * after);
}

}  // namespace

// What each kind of state is to the steps: Load makes theirs of ours, Save ours of theirs.

struct BucketSteps {
  using State = BucketState;
  static State Load(const KeyState& key, const Limit&, const Moment& moment) noexcept {
    return {.theoretical_arrival = key.present_ ? TicksOf(key.at_, moment) : Ticks(0)};
  }
  static void Save(KeyState& key, const State& state, const Limit&, const Moment& moment) {
    key.present_ = state.theoretical_arrival != Ticks(0);
    key.at_ = NanosecondsOf(state.theoretical_arrival, moment);
  }
  static Step<State> Do(const Limit& limit, const State& state, const StepRequest& request,
                        const Instant& at) noexcept {
    return limit.spec().queue ? StepLeakyQueue(limit, state, request, at.now)
                              : StepTokenBucket(limit, state, request, at.now);
  }
  static bool Same(const State& a, const State& b) noexcept {
    return a.theoretical_arrival == b.theoretical_arrival;
  }
  static Ticks ReceiptIn(std::int64_t receipt, const Moment& moment) noexcept {
    return TicksOf(receipt, moment);
  }
  static std::int64_t ReceiptOut(Ticks receipt, const Moment& moment) noexcept {
    return receipt == Ticks(0) ? 0 : NanosecondsOf(receipt, moment);
  }
};

struct FixedSteps {
  using State = FixedWindowState;

  bool calendar;

  // The calendar's are as they are, in nanoseconds since 1970.
  std::int64_t EndIn(std::int64_t at, const Moment& moment) const noexcept {
    if (calendar) return (kEpoch + Duration(at)).time_since_epoch().count();
    return TicksOf(at, moment).count();
  }
  std::int64_t EndOut(std::int64_t end, const Moment& moment) const noexcept {
    if (calendar) return (WallTime(Duration(end)) - kEpoch).count();
    return NanosecondsOf(Ticks(end), moment);
  }
  State Load(const KeyState& key, const Limit&, const Moment& moment) const noexcept {
    if (!key.present_) return {};
    return {.end = EndIn(key.at_, moment), .count = key.counts_[0]};
  }
  void Save(KeyState& key, const State& state, const Limit&, const Moment& moment) const {
    key.present_ = state.end != 0;
    key.at_ = EndOut(state.end, moment);
    key.counts_.assign(1, state.count);
  }
  Step<State> Do(const Limit& limit, const State& state, const StepRequest& request,
                 const Instant& at) const noexcept {
    return StepFixedWindow(limit, state, request, at);
  }
  static bool Same(const State& a, const State& b) noexcept {
    return a.end == b.end && a.count == b.count;
  }
  Ticks ReceiptIn(std::int64_t receipt, const Moment& moment) const noexcept {
    return Ticks(EndIn(receipt, moment));
  }
  std::int64_t ReceiptOut(Ticks receipt, const Moment& moment) const noexcept {
    return EndOut(receipt.count(), moment);
  }
};

struct SlidingSteps {
  using State = SlidingWindowState;
  static State Load(const KeyState& key, const Limit&, const Moment& moment) noexcept {
    if (!key.present_) return {};
    return {.end = TicksOf(key.at_, moment), .previous = key.counts_[1], .current = key.counts_[0]};
  }
  static void Save(KeyState& key, const State& state, const Limit&, const Moment& moment) {
    key.present_ = state.end != Ticks(0);
    key.at_ = NanosecondsOf(state.end, moment);
    key.counts_.assign({state.current, state.previous});
  }
  static Step<State> Do(const Limit& limit, const State& state, const StepRequest& request,
                        const Instant& at) noexcept {
    return StepSlidingWindow(limit, state, request, at);
  }
  static bool Same(const State& a, const State& b) noexcept {
    return a.end == b.end && a.current == b.current && a.previous == b.previous;
  }
  static Ticks ReceiptIn(std::int64_t receipt, const Moment& moment) noexcept {
    return TicksOf(receipt, moment);
  }
  static std::int64_t ReceiptOut(Ticks receipt, const Moment& moment) noexcept {
    return NanosecondsOf(receipt, moment);
  }
};

struct StrictSteps {
  using State = StrictWindowState;
  static State Load(const KeyState& key, const Limit&, const Moment& moment) noexcept {
    State state;
    if (!key.present_) return state;
    state.end = TicksOf(key.at_, moment);
    std::ranges::copy(key.counts_, state.counts.begin());
    return state;
  }
  static void Save(KeyState& key, const State& state, const Limit& limit, const Moment& moment) {
    key.present_ = state.end != Ticks(0);
    key.at_ = NanosecondsOf(state.end, moment);
    key.counts_.assign(state.counts.begin(), state.counts.begin() + static_cast<std::ptrdiff_t>(
                                                                        CountedSubWindows(limit)));
  }
  static Step<State> Do(const Limit& limit, const State& state, const StepRequest& request,
                        const Instant& at) noexcept {
    return StepStrictWindow(limit, state, request, at);
  }
  static bool Same(const State& a, const State& b) noexcept {
    return a.end == b.end && a.counts == b.counts;
  }
  static Ticks ReceiptIn(std::int64_t receipt, const Moment& moment) noexcept {
    return TicksOf(receipt, moment);
  }
  static std::int64_t ReceiptOut(Ticks receipt, const Moment& moment) noexcept {
    return NanosecondsOf(receipt, moment);
  }
};

void KeyState::Read(StateKind kind, std::string_view value) {
  present_ = kind == StateKind::kBucket ? ReadBucket(value) : ReadWindow(kind, value);
}

bool KeyState::ReadBucket(std::string_view value) noexcept {
  if (value.size() < 10) return false;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, at_);
  return read.ec == std::errc() && read.ptr == end && at_ >= 0;
}

bool KeyState::ReadWindow(StateKind kind, std::string_view value) {
  const bool strict = kind == StateKind::kStrictWindow;
  const bool sliding = kind == StateKind::kSlidingWindow;
  const std::size_t counted =
      strict ? (std::max<std::size_t>(value.size(), 28) - 28) / 8 : (sliding ? 2 : 1);
  if (value.size() != 28 + 8 * counted || counted == 0 || counted > kMaxSubWindows + 1)
    return false;
  at_ = std::int64_t{ReadAt<std::uint32_t>(value, 0)} * kNanosecondsPerSecond +
        ReadAt<std::uint32_t>(value, 4);
  // Counts come before what the window is, but for strict ones, of which there may be many.
  const std::size_t shape = strict ? 8 : 8 + 8 * counted;
  const std::size_t first = strict ? 28 : 8;
  window_[0] = ReadAt<std::uint32_t>(value, shape);
  window_[1] = ReadAt<std::uint32_t>(value, shape + 4);
  const auto limit = ReadAt<double>(value, shape + 8);
  if (!IsCount(limit) || limit < 1) return false;
  limit_ = static_cast<std::int64_t>(limit);
  family_ = ReadAt<std::uint32_t>(value, shape + 16);
  counts_.clear();
  for (std::size_t i = 0; i < counted; ++i) {
    const auto count = ReadAt<double>(value, first + 8 * i);
    if (!IsCount(count)) return false;
    counts_.push_back(static_cast<std::int64_t>(count));
  }
  if (sliding) std::swap(counts_[0], counts_[1]);
  return true;
}

template <typename Steps>
SharedStep KeyState::DoWith(const Steps& steps, const Limit& limit, const StepRequest& request,
                            const Moment& moment, Effect effect) {
  const Instant at = InstantOf(moment);
  StepRequest in_ticks = request;
  in_ticks.receipt = steps.ReceiptIn(request.receipt.count(), moment);
  const auto state = steps.Load(*this, limit, moment);
  const auto step = steps.Do(limit, state, in_ticks, at);
  const auto next =
      effect == Effect::kApply ? step.next : steps.Do(limit, state, AskedOnly(in_ticks), at).next;
  // Not read again from what it was made into, which leaves out what cannot matter now.
  if (!steps.Same(state, next)) steps.Save(*this, next, limit, moment);
  return {.decision = step.decision,
          .charged = step.charged,
          .receipt = steps.ReceiptOut(step.receipt, moment)};
}

SharedStep KeyState::Do(const Limit& limit, const StepRequest& request, const Moment& moment,
                        Effect effect) {
  const StateKind kind = KindOf(limit);
  if (kind == StateKind::kBucket) return DoWith(BucketSteps{}, limit, request, moment, effect);

  KeyState seen = *this;
  const bool strict = kind == StateKind::kStrictWindow;
  const std::int64_t window = (strict ? limit.sub_window() : limit.window()) / kTicksPerNanosecond;
  const bool calendar = kind == StateKind::kCalendarWindow;
  const std::uint32_t shape[2] = {
      calendar ? ShapeOf(limit) : static_cast<std::uint32_t>(window / kNanosecondsPerSecond),
      calendar ? UINT32_MAX : static_cast<std::uint32_t>(window % kNanosecondsPerSecond)};
  const std::size_t counted = strict                              ? CountedSubWindows(limit)
                              : kind == StateKind::kSlidingWindow ? 2
                                                                  : 1;
  if (seen.window_[0] != shape[0] || seen.window_[1] != shape[1] ||
      seen.counts_.size() != counted) {
    seen.present_ = false;  // Another window starts anew.
  } else if (seen.present_ && seen.family_ != limit.family()) {
    // The policy has changed. Of sub-windows the running total is rounded.
    std::int64_t before = 0;
    std::int64_t after = 0;
    for (std::int64_t& count : seen.counts_) {
      before = strict ? before + count : count;
      const std::int64_t total = InProportion(before, seen.limit_, limit.capacity());
      count = strict ? total - after : total;
      after = total;
    }
  }
  const bool was_present = seen.present_;
  const std::int64_t end_before = seen.at_;
  const std::vector<std::int64_t> counts_before = seen.counts_;
  SharedStep step;
  if (strict) {
    step = seen.DoWith(StrictSteps{}, limit, request, moment, effect);
  } else if (kind == StateKind::kSlidingWindow) {
    step = seen.DoWith(SlidingSteps{}, limit, request, moment, effect);
  } else {
    step = seen.DoWith(FixedSteps{.calendar = calendar}, limit, request, moment, effect);
  }
  const bool changed =
      seen.present_ != was_present || seen.at_ != end_before || seen.counts_ != counts_before ||
      (effect == Effect::kApply && seen.present_ && step.decision.allowed && Changes(request));
  if (changed) {
    *this = seen;
    window_[0] = shape[0];
    window_[1] = shape[1];
    limit_ = limit.capacity();
    family_ = limit.family();
  }
  return step;
}

bool LogSight::Read(std::string_view value) noexcept {
  if (value.size() != 5 * sizeof(double)) return false;
  std::int64_t* const fields[] = {&used, &last, &used_after, &last_after, &fits_with};
  std::size_t at = 0;
  for (std::int64_t* field : fields) {
    const auto number = ReadAt<double>(value, at);
    at += sizeof(number);
    if (!(number >= -1 && number <= 4e15)) return false;
    *field = static_cast<std::int64_t>(number);
  }
  // Microseconds.
  for (std::int64_t* date : {&last, &last_after, &fits_with}) {
    if (*date >= 0) *date *= 1000;
  }
  return true;
}

SharedStep DescribeLog(const Limit& limit, const StepRequest& request, const Moment& moment,
                       const LogSight& sight, Effect effect) noexcept {
  const bool leases = limit.algorithm() == Algorithm::kConcurrency;
  const std::int64_t lifetime =
      leases ? limit.spec().lease.count() : limit.window() / kTicksPerNanosecond;
  const bool applied = effect == Effect::kApply;
  const CountedVerdict verdict = JudgeCount(limit, sight.used, request);
  const std::int64_t used = applied ? sight.used_after : sight.used;
  const std::int64_t last = applied ? sight.last_after : sight.last;
  SharedStep step;
  step.decision = DescribeCount(limit, used, request, verdict);
  if (last >= 0) step.decision.reset_after = Duration(last + lifetime - moment.now);
  if (!verdict.allowed && !verdict.never_fits) {
    step.decision.retry_after = Duration(sight.fits_with + lifetime - moment.now);
  }
  if (applied && Takes(request)) step.charged = sight.used_after - sight.used;
  step.receipt = std::max(last, moment.now);
  return step;
}

}  // namespace weir::redis
