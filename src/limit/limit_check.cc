#include "limit/limit_check.h"

#include <algorithm>

#include "limit/limit_words.h"

namespace weir {
namespace {

// Products of a count and a period in ns need up to 105 bits.
__extension__ using Wide = __int128;

using Problem = std::optional<std::string>;

std::string NotAllowed(const std::string& field, const std::string& value) {
  return field + ": " + value + " is not allowed; write ";
}

Problem CheckRange(const std::string& field, std::int64_t value, std::int64_t least,
                   std::int64_t most) {
  if (value >= least && value <= most) return std::nullopt;
  return NotAllowed(field, std::to_string(value)) + std::to_string(least) + " to " +
         std::to_string(most);
}

Problem CheckRange(const std::string& field, Duration value, Duration least, Duration most) {
  if (value >= least && value <= most) return std::nullopt;
  return NotAllowed(field, TextOf(value)) + TextOf(least) + " to " + TextOf(most);
}

Problem CheckCount(const LimitSpec& spec) {
  const bool listed =
      spec.algorithm == Algorithm::kSlidingLog || spec.algorithm == Algorithm::kConcurrency;
  Problem problem = CheckRange("count", spec.count, 1, listed ? kMaxLogEntries : kMaxCount);
  if (problem && spec.count == 0) *problem += ", or the limit \"deny\"";
  if (problem && listed) *problem += " (" + std::string(NameOf(spec.algorithm)) + ")";
  return problem;
}

Problem CheckCalendar(const LimitSpec& spec) {
  if (spec.algorithm != Algorithm::kFixedWindow) {
    return "align: calendar windows are counted by fixed_window, not by " +
           std::string(NameOf(spec.algorithm));
  }
  if (spec.calendar == CalendarPeriod::kNone) {
    return "calendar: none is not allowed with align: calendar; write day, week, month or year";
  }
  if (spec.period != Duration(0)) {
    return NotAllowed("period", TextOf(spec.period)) + "0, because align: calendar sets it";
  }
  return std::nullopt;
}

Problem CheckPeriod(const LimitSpec& spec) {
  if (spec.align == Align::kCalendar) return CheckCalendar(spec);
  if (spec.calendar != CalendarPeriod::kNone) {
    return NotAllowed("calendar", std::string(WordFor(spec.calendar, kCalendarUnits))) +
           "none, or align: calendar";
  }
  if (spec.algorithm == Algorithm::kConcurrency) {
    if (spec.period == Duration(0)) return std::nullopt;
    return NotAllowed("period", TextOf(spec.period)) +
           "0, or as text \"20 concurrent\": concurrency counts how many at once";
  }
  return CheckRange("period", spec.period, IsBucket(spec.algorithm) ? Duration(1) : kMinWindow,
                    kMaxPeriod);
}

// Needs a count and a period that are in range.
Problem CheckBurst(const LimitSpec& spec) {
  if (!IsBucket(spec.algorithm)) {
    if (spec.burst == 0) return std::nullopt;
    return "burst: " + std::string(NameOf(spec.algorithm)) +
           " takes none; token_bucket and leaky_bucket do";
  }
  constexpr Wide kSecond = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
  if (Wide{spec.count} * kSecond > Wide{kMaxBucketRate} * spec.period.count()) {
    return NotAllowed("count", std::to_string(spec.count) + " in " + TextOf(spec.period)) +
           "at most " + std::to_string(kMaxBucketRate) + " in 1s";
  }
  // Without the rounding of T, so that a burst of `count` is right for every period.
  const Wide most = Wide{kMaxBurstTime.count()} * spec.count / spec.period.count();
  Problem problem = CheckRange("burst", BurstOf(spec), 1,
                               static_cast<std::int64_t>(std::min<Wide>(most, kMaxCount)));
  if (problem) *problem += ", which takes at most " + TextOf(kMaxBurstTime) + " to fill";
  return problem;
}

Problem CheckOptions(const LimitSpec& spec) {
  const std::string algorithm(NameOf(spec.algorithm));
  if (spec.queue && spec.algorithm != Algorithm::kLeakyBucket) {
    return "queue: " + algorithm + " has none; leaky_bucket does";
  }
  if (spec.strict && spec.algorithm != Algorithm::kSlidingWindow) {
    return "strict: " + algorithm + " does not take it; sliding_window does";
  }
  if (!spec.strict && spec.sub_windows != LimitSpec().sub_windows) {
    return "sub_windows: only a sliding_window with strict: true has them";
  }
  if (spec.overdraft && (spec.queue || spec.algorithm == Algorithm::kConcurrency)) {
    return "overdraft: not with " + (spec.queue ? "queue: true" : algorithm);
  }
  if (Problem problem =
          CheckRange("sub_windows", spec.sub_windows, kMinSubWindows, kMaxSubWindows)) {
    return problem;
  }
  if (spec.algorithm == Algorithm::kConcurrency) {
    return CheckRange("lease", spec.lease, Duration(1), kMaxPeriod);
  }
  return std::nullopt;
}

Problem CheckMaxWait(const LimitSpec& spec) {
  return CheckRange("max_wait", spec.max_wait, Duration(0), kMaxWait);
}

}  // namespace

std::optional<std::string> FindProblem(const LimitSpec& spec) {
  if (spec.kind != LimitKind::kCounted) return CheckMaxWait(spec);
  for (const auto check : {CheckCount, CheckPeriod, CheckBurst, CheckOptions, CheckMaxWait}) {
    if (Problem problem = check(spec)) return problem;
  }
  return std::nullopt;
}

}  // namespace weir
