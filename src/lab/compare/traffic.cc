#include "lab/compare/traffic.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lab/report.h"
#include "limit/limit_words.h"
#include "sim/random.h"

namespace weir::lab {
namespace {

// Volleys come in every fourth period, so that whoever forgets has forgotten the one before.
constexpr std::int64_t kPeriodsPerVolley = 4;
constexpr double kNight = 0.1;  // Of the busiest hour.
// Defaults are made shorter rather than having more requests than this, as long as there are
constexpr double kPlenty = 2'000'000;
constexpr std::int64_t kFewestPeriods = kPeriodsPerVolley;

constexpr double kFarTooMany = 1e15;  // Cut long before.

struct Habit {
  double load = 1;
  std::int64_t periods = 0;
  double share = 1;  // Of load times count, how much comes in a period on average.
};

Habit HabitOf(Shape shape) {
  switch (shape) {
    case Shape::kSteady:
      return {.load = 1.5, .periods = 10};
    case Shape::kPoisson:
      return {.load = 1, .periods = 60};
    case Shape::kBurst:
      return {.load = 2, .periods = 12, .share = 2.0 / kPeriodsPerVolley};
    case Shape::kBoundary:
    case Shape::kLateWindow:
      return {.load = 1, .periods = 12, .share = 2.0 / kPeriodsPerVolley};
    case Shape::kDiurnal:
      return {.load = 1.5, .periods = 240, .share = (1 + kNight) / 2};
  }
  return {};
}

class Maker {
 public:
  Maker(const TrafficOptions& options, double load, Duration length)
      : options_(options), load_(load), length_(length), random_(options.seed) {}

  void Make() {
    switch (options_.shape) {
      case Shape::kSteady:
        Evenly(Duration(0), length_, load_ * Periods(length_));
        break;
      case Shape::kPoisson:
        ByChance([](double) { return 1.0; });
        break;
      case Shape::kBurst:
      case Shape::kBoundary:
      case Shape::kLateWindow:
        Volleys();
        break;
      case Shape::kDiurnal:
        ByChance([](double of_day) {
          return kNight + (1 - kNight) * (1 - std::cos(2 * std::numbers::pi * of_day)) / 2;
        });
        break;
    }
  }

  bool is_cut() const { return is_cut_; }
  std::vector<Arrival>& arrivals() { return arrivals_; }

 private:
  double Periods(Duration length) const {
    return static_cast<double>(length.count()) / static_cast<double>(options_.period.count());
  }

  void Add(Duration at) {
    if (at >= length_) return;
    if (std::ssize(arrivals_) == kMostArrivals) {
      is_cut_ = true;
    } else {
      arrivals_.push_back({.at = at});
    }
  }

  // So many times the limit's count, the first at `from` and the last before `from + length`.
  void Evenly(Duration from, Duration length, double times) {
    const auto number = static_cast<std::int64_t>(
        std::clamp(std::round(times * static_cast<double>(options_.count)), 1.0, kFarTooMany));
    for (std::int64_t i = 0; i < number && !is_cut_; ++i) {
      __extension__ using Wide = __int128;
      Add(from + Duration(static_cast<std::int64_t>(Wide{length.count()} * i / number)));
    }
  }

  // A Poisson process; `part` of its rate at that part of the traffic's length.
  template <typename Part>
  void ByChance(Part part) {
    const double mean_gap = static_cast<double>(options_.period.count()) /
                            (static_cast<double>(options_.count) * load_);
    const auto chance = [&] {  // Above 0, at most 1.
      return (static_cast<double>(random_.Next() >> 11) + 1) / static_cast<double>(1ULL << 53);
    };
    const auto length = static_cast<double>(length_.count());
    // Gaps are rounded one by one, so that what adds up is whole.
    for (Duration at{0}; !is_cut_;) {
      const double gap = -std::log(chance()) * mean_gap;
      if (gap >= length) return;
      at += Duration(std::llround(gap));
      if (at >= length_) return;
      if (chance() <= part(static_cast<double>(at.count()) / length)) Add(at);
    }
  }

  void Volleys() {
    const Duration period = options_.period;
    for (Duration cycle{0}; cycle < length_ && !is_cut_; cycle += kPeriodsPerVolley * period) {
      switch (options_.shape) {
        case Shape::kBurst:
          Evenly(cycle + period / 2, Duration(0), load_);
          Evenly(cycle + period / 2, period, load_);
          break;
        case Shape::kBoundary:
          Evenly(cycle + 2 * period - period / 100, period / 100, load_);
          Evenly(cycle + 2 * period, period / 100, load_);
          break;
        default:
          LateWindow(cycle + 2 * period);
      }
    }
  }

  // The k-th of the second volley comes when the weight of the first has just sunk low enough, and
  // the last of them less than a period after the first of the first volley.
  void LateWindow(Duration end) {
    const auto period = static_cast<double>(options_.period.count());
    const double interval =
        std::min(period, period / (static_cast<double>(options_.count) * load_));
    const Duration late = std::max(Duration(1), Duration(std::llround(interval / 2)));
    Evenly(end - late, late, load_);
    Evenly(end + Duration(std::llround(interval / 4)), options_.period, load_);
  }

  const TrafficOptions& options_;
  const double load_;
  const Duration length_;
  sim::Random random_;
  std::vector<Arrival> arrivals_;
  bool is_cut_ = false;
};

std::string Describe(const TrafficOptions& options, double load) {
  const std::string much =
      load == 1 ? "the limit" : WriteValue(load, Unit::kCount) + " times the limit";
  switch (options.shape) {
    case Shape::kSteady:
      return much + ", evenly";
    case Shape::kPoisson:
      return much + " on average, each request by chance";
    case Shape::kBurst:
      return "in every fourth period " + much + " at the same instant, then as much again evenly";
    case Shape::kBoundary:
      return much + " right before every fourth end of a window, and as much right after it";
    case Shape::kLateWindow:
      return much + " at the very end of every fourth window, and as much evenly during the next";
    case Shape::kDiurnal:
      return "a day's curve by chance, " + much + " when it is busiest";
  }
  return "";
}

}  // namespace

Result<Traffic> MakeTraffic(const TrafficOptions& options) {
  const Habit habit = HabitOf(options.shape);
  const double load = options.load > 0 ? options.load : habit.load;
  const double in_period = std::max(1.0, load * habit.share * static_cast<double>(options.count));
  Duration length = options.duration;
  if (length == Duration(0)) {
    const auto fits = static_cast<std::int64_t>(std::min(1e6, kPlenty / in_period));
    const std::int64_t periods = std::clamp(fits, kFewestPeriods, habit.periods);
    length = std::min(periods * options.period, kLongestTraffic);
  }
  const auto refused = [](std::string message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
  };
  if (length > kLongestTraffic) {
    return refused("the traffic would take " + TextOf(length) + "; at most " +
                   TextOf(kLongestTraffic) + " can be shown");
  }
  if (2 * in_period > kMostArrivals) {
    return refused("not even two periods of it can be shown with " + std::to_string(kMostArrivals) +
                   " requests; take a smaller limit, such as a thousandth of it");
  }
  Maker maker(options, load, length);
  maker.Make();
  Traffic traffic{.name = std::string(kShapeNames[static_cast<std::size_t>(options.shape)]),
                  .description = Describe(options, load),
                  .length = length,
                  .arrivals = std::move(maker.arrivals())};
  // 2025, at the beginning of a window.
  const Duration date = std::chrono::sys_days(std::chrono::year(2025) / 1 / 1).time_since_epoch();
  traffic.start = WallTime(date - date % options.period);
  std::ranges::sort(traffic.arrivals, {}, &Arrival::at);
  if (traffic.arrivals.empty()) {
    return refused("no request comes within " + TextOf(length) +
                   "; make the duration longer or the load higher");
  }
  if (maker.is_cut()) {
    traffic.length = traffic.arrivals.back().at + Duration(1);
    traffic.warnings.push_back(
        "There would be more than " + std::to_string(kMostArrivals) +
        " requests: the traffic ends after " +
        TextOf(std::chrono::floor<std::chrono::milliseconds>(traffic.length)) + " rather than " +
        TextOf(length) + ".");
  }
  return traffic;
}

}  // namespace weir::lab
