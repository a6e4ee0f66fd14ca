#include "lab/plot_axis.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <span>

namespace weir::lab {
namespace {

constexpr double kDay = 86'400;
constexpr std::array<double, 16> kClockSteps = {1,   2,   5,   10,   15,   30,    60,    120,
                                                300, 600, 900, 1800, 3600, 7'200, 21600, 43'200};

double PowerOfTen(int power) { return std::pow(10.0, power); }

// 1, 2 or 5 times a power of ten, not less than `least`.
double DecimalStep(double least) {
  const double power = PowerOfTen(static_cast<int>(std::floor(std::log10(least))));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

double StepOf(double least, Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return std::exp2(std::max(0.0, std::ceil(std::log2(least))));
    case Unit::kSeconds:
    case Unit::kTime:
      if (least <= 1) return DecimalStep(least);
      for (const double step : kClockSteps) {
        if (step >= least) return step;
      }
      return kDay * std::max(1.0, DecimalStep(least / kDay));
    default:
      return DecimalStep(least);
  }
}

// As many decimals as steps of this size need.
std::string Decimals(double value, double step) {
  int decimals = 0;
  for (; decimals < 9; ++decimals) {
    const double steps = step * PowerOfTen(decimals);
    if (std::abs(steps - std::round(steps)) < 1e-6 * steps) break;
  }
  std::array<char, 400> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, decimals);
  return {buffer.data(), end.ptr};
}

struct Scaled {
  double from;  // The end of the axis that it takes to be used.
  double size;
  const char* name;
};

constexpr std::array<Scaled, 7> kSecondUnits = {{{0, 1e-9, " ns"},
                                                 {1e-6, 1e-6, " µs"},
                                                 {1e-3, 1e-3, " ms"},
                                                 {1, 1, " s"},
                                                 {121, 60, " min"},
                                                 {7'201, 3600, " h"},
                                                 {2 * kDay + 1, kDay, " d"}}};
constexpr std::array<Scaled, 4> kCountUnits = {
    {{0, 1, ""}, {1e6, 1e6, "M"}, {1e9, 1e9, "G"}, {1e12, 1e12, "T"}}};

// All ticks of an axis in the same unit.
std::string InUnits(double value, double step, double end, std::span<const Scaled> units) {
  const Scaled* unit = units.data();
  for (const Scaled& each : units) {
    if (end >= each.from * (1 - 1e-9)) unit = &each;
  }
  return Decimals(value / unit->size, step / unit->size) + unit->name;
}

// "Mar 2" where a day begins, otherwise the time of day.
std::string TimeText(double value, double step) {
  std::string whole = WriteValue(value, Unit::kTime);  // 2026-03-02 12:34:56.789
  if (whole.size() < 19) return whole;
  if (whole.compare(11, 8, "00:00:00") == 0) {
    constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int month = 1;
    int day = 1;
    std::from_chars(whole.data() + 5, whole.data() + 7, month);
    std::from_chars(whole.data() + 8, whole.data() + 10, day);
    return std::string(kMonths[static_cast<std::size_t>(std::clamp(month, 1, 12) - 1)]) + " " +
           std::to_string(day);
  }
  if (step >= 60) return whole.substr(11, 5);
  return whole.substr(11);
}

std::string TickText(double value, double step, double end, Unit unit) {
  if (value == 0 && unit != Unit::kTime) return "0";
  switch (unit) {
    case Unit::kCount:
    case Unit::kRate: {
      const std::string text = step >= 1 && end < 1e6 ? WriteValue(value, Unit::kCount)
                                                      : InUnits(value, step, end, kCountUnits);
      return unit == Unit::kRate ? text + "/s" : text;
    }
    case Unit::kSeconds:
      return InUnits(value, step, end, kSecondUnits);
    case Unit::kTime:
      return TimeText(value, step);
    case Unit::kPercent:
      return Decimals(value * 100, step * 100) + " %";
    case Unit::kFactor:
      return Decimals(value, step) + "×";
    case Unit::kBytes:
      break;
  }
  return WriteValue(value, unit);
}

}  // namespace

PlotAxis::PlotAxis(AxisRange range, const Options& options)
    : low_(range.low), high_(range.high), logarithmic_(options.logarithmic) {
  if (!std::isfinite(low_) || !std::isfinite(high_) || high_ < low_) {
    low_ = logarithmic_ ? 1 : 0;
    high_ = logarithmic_ ? 10 : 1;
  }
  if (logarithmic_) {
    if (!(low_ > 0)) low_ = high_ > 0 ? high_ / 10 : 1;
    if (!(high_ > low_)) high_ = low_ * 10;
    AddLogarithmic(options);
  } else {
    if (high_ == low_) high_ = low_ + (low_ == 0 ? 1 : std::abs(low_));
    AddLinear(options);
  }
}

void PlotAxis::AddLinear(const Options& options) {
  const double step = StepOf((high_ - low_) / std::max(1, options.ticks), options.unit);
  const double first = std::ceil(low_ / step - 1e-9);
  const double last = std::floor(high_ / step + 1e-9);
  const double end = std::max(std::abs(low_), std::abs(high_));
  for (int i = 0; first + i <= last && ticks_.size() < 100; ++i) {
    const double value = (first + i) * step;
    ticks_.push_back({.value = value, .text = TickText(value, step, end, options.unit)});
  }
}

void PlotAxis::AddLogarithmic(const Options& options) {
  const auto first = static_cast<int>(std::floor(std::log10(low_) + 1e-9));
  const auto last = static_cast<int>(std::ceil(std::log10(high_) - 1e-9));
  const int decades = std::max(1, last - first);
  const int every = (decades + options.ticks - 1) / std::max(1, options.ticks);
  const bool between = 3 * decades <= options.ticks;
  for (int power = first; power <= last; power += every) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double value = times * PowerOfTen(power);
      if (times > 1 && !between) break;
      if (value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9)) continue;
      ticks_.push_back({.value = value, .text = WriteValue(value, options.unit)});
    }
  }
}

double PlotAxis::Place(double value) const {
  if (std::isnan(value)) return 0;
  if (!logarithmic_) return (value - low_) / (high_ - low_);
  if (!(value > 0)) return 0;
  return (std::log10(value) - std::log10(low_)) / (std::log10(high_) - std::log10(low_));
}

}  // namespace weir::lab
