// Reports as the lab makes them, small enough to be read, for the tests of whatever shows them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lab/report.h"

namespace weir::lab {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a sender of requests may put into a key.
inline std::string HostileText() {
  return "</script><script>alert(1)</script><!--\x1b[31m\xe2\x80\xae\xff\"'&<img src=x onerror=x>";
}

inline std::vector<double> Range(std::size_t count, double from, double step) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from + step * static_cast<double>(i);
  return values;
}

// Noise that is the same everywhere.
class Noise {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1U << 24);
  }

 private:
  std::uint64_t state_ = 88172645463325252U;
};

// Several algorithms on the same arrivals: a table with small bars, a plot, and panels.
inline Report CompareReport() {
  Report report{.title = "100 per second, by seven algorithms",
                .subtitle = "burst of 100, boundary traffic, 20 s, seed 1",
                .facts = {{"requests", "5,000"},
                          {"limit", "100/s"},
                          {"worst", "2× in 1 s", Tone::kBad},
                          {"strict", "never above", Tone::kGood}}};
  const std::vector<std::pair<std::string, double>> algorithms = {
      {"token-bucket", 1.99},   {"leaky-bucket", 1.0},  {"leaky-queue", 1.0}, {"fixed-window", 2.0},
      {"sliding-window", 1.42}, {"strict-window", 1.0}, {"sliding-log", 1.0}};
  Noise noise;
  Table table{
      .title = "What each admitted",
      .note = "The worst count is that of any window of one second, wherever it begins.",
      .columns = {
          {.label = "algorithm", .is_text = true},
          {.label = "admitted", .help = "Requests that were let through."},
          {.label = "denied", .unit = Unit::kPercent},
          {.label = "worst", .unit = Unit::kFactor, .help = "The most in any window, in limits."},
          {.label = "lock-out",
           .unit = Unit::kSeconds,
           .help = "The longest time without an admission while there were "
                   "requests."},
          {.label = "bytes", .unit = Unit::kBytes},
          {.label = "admitted over time"}}};
  Panels panels{.title = "The count of the last second, against the limit",
                .note = "Each algorithm's worst moment is marked."};
  Plot plot{.title = "Arrivals and admissions",
            .x_axis = {.label = "time", .unit = Unit::kSeconds},
            .y_axis = {.label = "requests in 0.1 s"},
            .x = Range(200, 0, 0.1)};
  Series arrivals{.name = "arrivals", .style = Series::Style::kArea, .tone = Tone::kQuiet};
  for (const double x : plot.x) {
    arrivals.values.push_back(std::fmod(x, 2) > 1.6 ? 40 + 20 * noise.Next() : 8 * noise.Next());
  }
  plot.series.push_back(arrivals);
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    const auto& [name, worst] = algorithms[a];
    Series admitted{.name = name, .style = Series::Style::kSteps};
    Plot panel{.title = name,
               .x_axis = {.label = "time", .unit = Unit::kSeconds},
               .y_axis = {.label = "in the last second"},
               .x = plot.x,
               .lines = {{100, "limit", Tone::kBad}}};
    Series count{.name = "admitted", .style = Series::Style::kSteps};
    std::size_t peak = 0;
    for (std::size_t i = 0; i < plot.x.size(); ++i) {
      const double phase = std::fmod(plot.x[i] + 0.03 * static_cast<double>(a), 2);
      admitted.values.push_back(std::min(arrivals.values[i], 10 + worst * 8 * noise.Next()));
      count.values.push_back(std::round(
          100 * worst * std::max(0.08, std::sin(phase * 3.14159 / 2) - 0.1 * noise.Next()) / 1));
      if (count.values[i] > count.values[peak]) peak = i;
    }
    panel.marks = {{panel.x[peak], count.values[peak],
                    WriteValue(count.values[peak], Unit::kCount) + " in 1 s",
                    worst > 1.1 ? Tone::kBad : Tone::kGood}};
    panel.series = {count};
    table.rows.push_back({name,
                          2000.0 - 13 * static_cast<double>(a),
                          0.6 + 0.01 * worst,
                          {worst, worst > 1.1 ? Tone::kBad : Tone::kGood},
                          0.9 * worst,
                          16.0 + 8 * static_cast<double>(a),
                          Cell(count.values)});
    panels.plots.push_back(std::move(panel));
    if (a < 3 || a == 5) plot.series.push_back(std::move(admitted));
  }
  plot.lines = {{10, "100/s", Tone::kBad}};
  plot.bands = {{1.6, 2.4, "worst window", Tone::kWarning}};
  report.sections = {table, plot, panels,
                     Paragraph{"How to read this",
                               "Every algorithm met the same arrivals at the same virtual times. A "
                               "fixed window may admit twice its limit across a boundary."},
                     Listing{"To have it", "rules:\n  - name: api\n    limit: 100/s\n"}};
  return report;
}

// Keys from a log and an outage: dates, a logarithmic axis, bars, gaps, and hostile text.
inline Report ReplayReport() {
  const double midnight = 1'772'323'200;  // 2026-03-01
  Plot plot{.title = "Requests over time",
            .note = "In steps of five minutes.",
            .x_axis = {.label = "time", .unit = Unit::kTime},
            .y_axis = {.label = "requests", .unit = Unit::kCount},
            .x = Range(288, midnight, 300)};
  Series all{.name = "all", .style = Series::Style::kBars, .tone = Tone::kQuiet};
  Series denied{.name = "denied", .style = Series::Style::kBars, .tone = Tone::kBad};
  Noise noise;
  for (std::size_t i = 0; i < plot.x.size(); ++i) {
    const double day = std::sin(3.14159 * static_cast<double>(i) / 288);
    all.values.push_back(std::round(4000 * day * (0.8 + 0.4 * noise.Next())));
    denied.values.push_back(i > 180 && i < 210 ? std::round(900 * noise.Next()) : 0);
  }
  all.values[20] = std::numeric_limits<double>::quiet_NaN();
  plot.series = {all, denied};
  plot.bands = {{midnight + 181 * 300, midnight + 210 * 300, "store down", Tone::kBad}};
  plot.marks = {{plot.x[190], 900, "198.51.100.7 begins", Tone::kBad}};
  Plot quantiles{.title = "How many clients need how much",
                 .x_axis = {.label = "requests in a minute", .logarithmic = true},
                 .y_axis = {.label = "clients", .logarithmic = true},
                 .x = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000},
                 .series = {{.name = "clients",
                             .values = {8000, 6100, 4400, 2500, 900, 310, 90, 22, 6, 2, 1, 3},
                             .style = Series::Style::kBars}},
                 .lines = {{10, "one in a thousand", Tone::kQuiet}}};
  Table offenders{.title = "Denied most",
                  .columns = {{.label = "key", .is_text = true},
                              {.label = "requests"},
                              {.label = "denied", .unit = Unit::kPercent},
                              {.label = "first denied", .unit = Unit::kTime},
                              {.label = "over time"}}};
  const std::vector<std::string> keys = {"198.51.100.7", HostileText(), "مرحبا \u202e evil",
                                         "👩‍👩‍👧‍👦 日本語",
                                         std::string(10'000, 'k')};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::vector<double> spark(40);
    for (double& value : spark) value = noise.Next();
    offenders.rows.push_back({{keys[i], i == 0 ? Tone::kBad : Tone::kPlain},
                              90'000.0 / static_cast<double>(i + 1),
                              0.5 / static_cast<double>(i + 1),
                              midnight + 3601.25 * static_cast<double>(i),
                              Cell(spark)});
  }
  offenders.rows.push_back({"nobody", Cell(std::numeric_limits<double>::quiet_NaN()), 0.0});
  return {.title = "Yesterday against tomorrow's policy",
          .subtitle = "access.log.gz, 1,234,567 lines, policy weir.yaml",
          .warnings = {"12 lines could not be read, and are in none of these numbers: 10 have no "
                       "time, 2 are longer than a megabyte.",
                       "The log ends in the middle of a gzip block: " + HostileText()},
          .facts = {{"requests", "1,234,567"},
                    {"denied", "1.2 %", Tone::kWarning},
                    {"clients denied", "17", Tone::kBad},
                    {HostileText(), HostileText(), Tone::kGood}},
          .sections = {plot, offenders, quantiles,
                       Listing{HostileText(), "# " + HostileText() + "\nkey:\tvalue\n", "yaml"},
                       Paragraph{HostileText(), HostileText()}}};
}

// As large as reports become: thousands of values, faults one after the other.
inline Report SimulateReport() {
  constexpr std::size_t kPoints = 2000;
  Plot plot{.title = "Answers while the store came and went",
            .x_axis = {.label = "virtual time", .unit = Unit::kSeconds},
            .y_axis = {.label = "answers", .unit = Unit::kRate},
            .x = Range(kPoints, 0, 0.03)};
  Noise noise;
  const std::vector<std::string> names = {"allowed", "denied", "by the local limit", "open",
                                          "late"};
  for (std::size_t s = 0; s < names.size(); ++s) {
    Series series{.name = names[s],
                  .style = s % 2 == 0 ? Series::Style::kLine : Series::Style::kSteps};
    double level = 100.0 * static_cast<double>(s + 1);
    for (std::size_t i = 0; i < kPoints; ++i) {
      level += 12 * (noise.Next() - 0.5);
      series.values.push_back(std::max(0.0, level));
    }
    plot.series.push_back(std::move(series));
  }
  plot.lines = {{500, "limit 500/s", Tone::kBad}, {750, "what two nodes may add", Tone::kQuiet}};
  plot.bands = {{10, 14, "store stopped", Tone::kBad},
                {22, 23, "clock of node 2 steps back 5 s", Tone::kWarning},
                {40, 52, "network 200 ms slower", Tone::kQuiet}};
  plot.marks = {{59.9, 500, "the end", Tone::kPlain}, {12, 300, "guard takes over", Tone::kGood}};
  Panels nodes{.title = "What each node saw"};
  for (int node = 1; node <= 3; ++node) {
    Plot panel{.title = "node " + std::to_string(node),
               .x_axis = plot.x_axis,
               .y_axis = {.label = "latency", .unit = Unit::kSeconds, .logarithmic = true},
               .x = Range(200, 0, 0.3),
               .series = {{.name = "median", .tone = Tone::kQuiet}, {.name = "worst"}},
               .bands = plot.bands};
    for (std::size_t i = 0; i < panel.x.size(); ++i) {
      panel.series[0].values.push_back(0.0004 + 0.0002 * noise.Next());
      panel.series[1].values.push_back(0.002 * std::pow(60, noise.Next()));
    }
    nodes.plots.push_back(std::move(panel));
  }
  Table invariants{
      .title = "What must hold",
      .columns = {
          {.label = "invariant", .is_text = true}, {.label = "checked"}, {.label = "broken"}}};
  for (int i = 1; i <= 150; ++i) {
    invariants.rows.push_back({"I" + std::to_string(i),
                               1000.0 * i,
                               {i == 3 ? 1.0 : 0.0, i == 3 ? Tone::kBad : Tone::kGood}});
  }
  return {.title = "A fleet of three, a store that fails",
          .subtitle = "examples/scenarios/outage.yaml, seed 7",
          .facts = {{"seed", "7"}, {"virtual time", "1 min"}, {"broken", "I3", Tone::kBad}},
          .sections = {plot, nodes, invariants}};
}

}  // namespace weir::lab
