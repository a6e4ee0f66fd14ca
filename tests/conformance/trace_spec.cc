#include "trace_spec.h"

#include <algorithm>

#include "oracle.h"

namespace weir::conformance {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t RandomCount(std::int64_t most, Random& random) {
  switch (random.Weighted({50, 30, 20})) {
    case 0:
      return random.Between(1, std::min<std::int64_t>(most, 12));
    case 1:
      return random.Between(1, std::min<std::int64_t>(most, 300));
    default:
      return random.AnySize(1, most);
  }
}

Duration RandomPeriod(Duration least, Random& random) {
  const Duration nice = random.OneOf<Duration>({1s, 1min, 1h, 24h, 168h, 24h * 365});
  if (random.Chance(40)) return nice;
  return Duration(random.AnySize(least.count(), kMaxPeriod.count()));
}

void RandomBucket(const TraceOptions& options, Random& random, LimitSpec& spec) {
  const std::int64_t fastest = kSecond / options.most_per_second;  // ns per unit
  spec.period = RandomPeriod(Duration(fastest), random);
  const std::int64_t most = std::min(kMaxCount, spec.period.count() / fastest);
  spec.count = random.Chance(5) ? most : RandomCount(most, random);
  const auto most_burst = static_cast<std::int64_t>(
      std::min(Wide(kMaxCount), Wide(kMaxBurstTime.count()) * spec.count / spec.period.count()));
  if (random.Chance(60)) spec.burst = RandomCount(most_burst, random);
  if (random.Chance(3)) spec.burst = most_burst;
  if (random.Chance(40)) spec.max_wait = Duration(random.AnySize(1, kMaxWait.count()));
  if (random.Chance(5)) spec.max_wait = Duration(0);
}

}  // namespace

LimitSpec RandomSpec(Family family, const TraceOptions& options, Random& random) {
  LimitSpec spec;
  switch (family) {
    case Family::kTokenBucket:
      RandomBucket(options, random, spec);
      break;
    case Family::kLeakyMeter:
    case Family::kLeakyQueue:
      spec.algorithm = Algorithm::kLeakyBucket;
      spec.queue = family == Family::kLeakyQueue;
      RandomBucket(options, random, spec);
      break;
    case Family::kFixedCalendar:
      spec.algorithm = Algorithm::kFixedWindow;
      spec.align = Align::kCalendar;
      spec.calendar = random.OneOf({CalendarPeriod::kDay, CalendarPeriod::kWeek,
                                    CalendarPeriod::kMonth, CalendarPeriod::kYear});
      // Among them: a midnight that is missing (Beirut, Cairo, Santiago), one that comes twice
      // (Havana), the ends of the world's day, and odd offsets.
      spec.zone = random.OneOf<const char*>(
          {"UTC", "Europe/Berlin", "America/New_York", "Asia/Beirut", "Africa/Cairo",
           "America/Santiago", "America/Havana", "Pacific/Kiritimati", "Pacific/Pago_Pago",
           "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham"});
      spec.week_start = std::chrono::weekday(static_cast<unsigned>(random.Between(0, 6)));
      spec.count = RandomCount(kMaxCount, random);
      break;
    case Family::kFixedEpoch:
    case Family::kSlidingEstimate:
    case Family::kSlidingStrict:
      spec.algorithm =
          family == Family::kFixedEpoch ? Algorithm::kFixedWindow : Algorithm::kSlidingWindow;
      spec.period = RandomPeriod(kMinWindow, random);
      spec.count = RandomCount(kMaxCount, random);
      if (family != Family::kSlidingStrict) break;
      spec.strict = true;
      if (random.Chance(60)) {
        spec.sub_windows = static_cast<int>(random.Between(kMinSubWindows, kMaxSubWindows));
      }
      break;
    case Family::kSlidingLog:
      spec.algorithm = Algorithm::kSlidingLog;
      spec.period = RandomPeriod(kMinWindow, random);
      spec.count = RandomCount(options.most_log_entries, random);
      break;
    case Family::kConcurrency:
      spec.algorithm = Algorithm::kConcurrency;
      spec.lease = RandomPeriod(Duration(1), random);
      spec.count = RandomCount(options.most_log_entries, random);
      break;
  }
  const bool may_owe = !spec.queue && family != Family::kConcurrency && !options.plain;
  spec.overdraft = may_owe && random.Chance(15);
  return spec;
}

std::string Describe(const LimitSpec& spec) {
  std::string text(weir::NameOf(spec.algorithm));
  text += " count=" + std::to_string(spec.count) +
          " period=" + std::to_string(spec.period.count()) + "ns";
  if (spec.burst != 0) text += " burst=" + std::to_string(spec.burst);
  if (spec.queue) text += " queue";
  if (spec.overdraft) text += " overdraft";
  if (spec.strict) text += " strict sub_windows=" + std::to_string(spec.sub_windows);
  if (spec.align == Align::kCalendar) {
    text += " calendar=" + std::to_string(static_cast<int>(spec.calendar)) + " zone=" + spec.zone +
            " week_start=" + std::to_string(spec.week_start.c_encoding());
  }
  if (spec.algorithm == Algorithm::kConcurrency) {
    text += " lease=" + std::to_string(spec.lease.count()) + "ns";
  }
  return text + " max_wait=" + std::to_string(spec.max_wait.count()) + "ns";
}

}  // namespace weir::conformance
