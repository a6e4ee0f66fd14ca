// A comparison as tables and plots.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "lab/compare/comparison.h"
#include "lab/seconds.h"
#include "limit/limit_words.h"

namespace weir::lab {
namespace {

constexpr std::size_t kSparkWidth = 16;  // A row fits into 100 columns with it.

// "1 s", "24 h": the period, in words.
std::string PeriodOf(const Comparison& comparison) {
  return WriteValue(SecondsIn(comparison.limit.spec().period), Unit::kSeconds);
}

// A time as it is shown: seconds since the start, or since 1970 if times are dates.
double Shown(const Comparison& comparison, Duration at) {
  const Duration date = comparison.traffic.start.time_since_epoch();
  return SecondsIn(comparison.traffic.has_dates ? date + at : at);
}
Unit TimeUnit(const Comparison& comparison) {
  return comparison.traffic.has_dates ? Unit::kTime : Unit::kSeconds;
}

// The sums of so many parts as a spark has bars.
std::vector<double> SparkOf(const std::vector<double>& values) {
  const std::size_t bars = std::min(kSparkWidth, values.size());
  std::vector<double> spark(bars);
  for (std::size_t i = 0; i < values.size(); ++i) spark[i * bars / values.size()] += values[i];
  return spark;
}

constexpr const char* kNothing = "–";

Table WhatPassed(const Comparison& comparison) {
  const std::string period = PeriodOf(comparison);
  const std::int64_t limit = comparison.limit.spec().count;
  Table table{
      .title = "What goes ahead",
      .note = "A leaky_bucket without a queue is a meter: it decides as the token_bucket does.",
      .columns = {
          {.label = "algorithm", .is_text = true, .help = "How the limit is counted."},
          {.label = "admitted", .help = "Requests that were allowed."},
          {.label = "denied", .help = "Requests that were not."},
          {.label = "worst " + period,
           .help = "The most that went ahead in any interval of " + period +
                   ", wherever it begins; a queued request goes ahead when its delay is over."},
          {.label = "of limit", .unit = Unit::kFactor, .help = "That, as a multiple of the limit."},
          {.label = "promise",
           .help = "The most that may go ahead in any interval of " + period +
                   ", whatever comes, and for buckets in intervals of any length: burst + limit "
                   "for a bucket, 1 + limit for a queue, twice "
                   "the limit for a fixed window and for the estimate of a sliding one, the limit "
                   "for the strict window and the log."},
          {.label = "over time", .is_text = true, .help = "What went ahead, from start to end."}}};
  for (const Rival& rival : comparison.rivals) {
    const Trial& trial = rival.trial;
    const Tone tone = trial.worst_window.cost > limit ? Tone::kWarning : Tone::kGood;
    table.rows.push_back({Cell(rival.contender.name), Cell(static_cast<double>(trial.admitted)),
                          Cell(static_cast<double>(trial.denied)),
                          Cell(static_cast<double>(trial.worst_window.cost), tone),
                          Cell(trial.factor, tone),
                          Cell(static_cast<double>(trial.promise.in_window),
                               trial.is_kept ? Tone::kPlain : Tone::kBad),
                          Cell(SparkOf(rival.passed))});
  }
  return table;
}

Table HowExact(const Comparison& comparison) {
  const std::string period = PeriodOf(comparison);
  Table table{
      .title = "How exact it is",
      .columns = {
          {.label = "algorithm", .is_text = true, .help = "How the limit is counted."},
          {.label = "worst burst",
           .help = "The most that went ahead in any interval, of whatever length, beyond what the "
                   "rate brings meanwhile: the burst of a bucket that would have let it through."},
          {.label = "typical error",
           .unit = Unit::kPercent,
           .help = "How far the algorithm's own count is from what really went ahead in the last " +
                   period +
                   ", after each decision, as a part of the limit: the mean. Buckets "
                   "count no window."},
          {.label = "worst error", .unit = Unit::kPercent, .help = "The same: the largest."},
          {.label = "too many",
           .unit = Unit::kPercent,
           .help = "Of all requests: allowed, although the limit's worth went ahead in the last " +
                   period + "."},
          {.label = "too early",
           .unit = Unit::kPercent,
           .help = "Of all requests: denied, although less than the limit went ahead in the last " +
                   period + "."}}};
  const auto requests = static_cast<double>(comparison.requests);
  for (const Rival& rival : comparison.rivals) {
    const Trial& trial = rival.trial;
    const auto part = [&](std::int64_t number) {
      return Cell(static_cast<double>(number) / requests,
                  number > 0 ? Tone::kWarning : Tone::kPlain);
    };
    table.rows.push_back({Cell(rival.contender.name),
                          Cell(static_cast<double>(trial.worst_burst.rounded)),
                          trial.error ? Cell(trial.error->typical) : Cell(kNothing),
                          trial.error ? Cell(trial.error->worst()) : Cell(kNothing),
                          trial.otherwise ? part(trial.otherwise->allowed) : Cell(kNothing),
                          trial.otherwise ? part(trial.otherwise->denied) : Cell(kNothing)});
  }
  return table;
}

Table WhatItCosts(const Comparison& comparison) {
  Table table{
      .title = "When, how long, at what price",
      .columns = {
          {.label = "algorithm", .is_text = true, .help = "How the limit is counted."},
          {.label = "worst " + PeriodOf(comparison) + " at",
           .unit = TimeUnit(comparison),
           .help = "When the interval in which the most went ahead ended."},
          {.label = "lock-out",
           .unit = Unit::kSeconds,
           .help = "The longest time from a denial until a request passed, or would have."},
          {.label = "mean delay",
           .unit = Unit::kSeconds,
           .help = "How long requests that were admitted had to wait, on average."},
          {.label = "max delay", .unit = Unit::kSeconds, .help = "The same: the longest."},
          {.label = "bytes/key",
           .help =
               "What a key takes in memory, measured in a large store; a log when it is full."}}};
  for (const Rival& rival : comparison.rivals) {
    const Trial& trial = rival.trial;
    const bool queues = rival.contender.limit.spec().queue;
    table.rows.push_back(
        {Cell(rival.contender.name), Cell(Shown(comparison, trial.worst_window.to)),
         trial.denied > trial.never_fits ? Cell(SecondsIn(trial.lock_out)) : Cell(kNothing),
         queues ? Cell(SecondsIn(trial.mean_delay)) : Cell(kNothing),
         queues ? Cell(SecondsIn(trial.max_delay)) : Cell(kNothing),
         Cell(std::round(rival.bytes_per_key))});
  }
  return table;
}

Plot EmptyPlot(const Comparison& comparison, std::string title, std::string label) {
  Plot plot{.title = std::move(title)};
  plot.x_axis = {.label = comparison.traffic.has_dates ? "time" : "", .unit = TimeUnit(comparison)};
  plot.y_axis = {.label = std::move(label)};
  for (std::size_t i = 0; i < comparison.timeline.bins; ++i) {
    plot.x.push_back(Shown(comparison, comparison.timeline.bin * static_cast<std::int64_t>(i)));
  }
  return plot;
}

std::string BinLabel(const Comparison& comparison) {
  return "in " + WriteValue(SecondsIn(comparison.timeline.bin), Unit::kSeconds);
}

Plot Arrivals(const Comparison& comparison) {
  Plot plot = EmptyPlot(comparison, "What comes", BinLabel(comparison));
  plot.series.push_back({.name = "came",
                         .values = comparison.came,
                         .style = Series::Style::kBars,
                         .tone = Tone::kQuiet});
  return plot;
}

std::string CountText(std::int64_t count) {
  return WriteValue(static_cast<double>(count), Unit::kCount);
}

std::ptrdiff_t Index(const Comparison& comparison, Duration at) {
  return static_cast<std::ptrdiff_t>(comparison.timeline.BinOf(at));
}

// The most beyond what the rate brings, in the time that it took.
Plot::Mark WorstBurstOf(const Comparison& comparison, const Rival& rival) {
  const Stretch& burst = rival.trial.worst_burst.stretch;
  const Duration took = burst.to - burst.from;
  // Where most of it went ahead.
  const auto begin = rival.passed.begin();
  const auto highest = std::max_element(begin + Index(comparison, burst.from),
                                        begin + Index(comparison, burst.to) + 1);
  return {
      Shown(comparison, comparison.timeline.bin * (highest - begin)), *highest,
      CountText(burst.cost) +
          (took == Duration(0) ? " at once" : " in " + WriteValue(SecondsIn(took), Unit::kSeconds)),
      rival.trial.worst_burst.rounded > comparison.limit.spec().count ? Tone::kBad : Tone::kPlain};
}

Panels Admissions(const Comparison& comparison) {
  Panels panels{.title = "What comes, and what goes ahead",
                .note = "Each point is the sum of " +
                        WriteValue(SecondsIn(comparison.timeline.bin), Unit::kSeconds) +
                        "; the mark is in the worst burst, and says how long it took."};
  for (const Rival& rival : comparison.rivals) {
    Plot plot = EmptyPlot(comparison, rival.contender.name, BinLabel(comparison));
    plot.series.push_back({.name = "came",
                           .values = comparison.came,
                           .style = Series::Style::kArea,
                           .tone = Tone::kQuiet});
    plot.series.push_back(
        {.name = "went ahead", .values = rival.passed, .style = Series::Style::kSteps});
    if (rival.trial.admitted > 0) plot.marks.push_back(WorstBurstOf(comparison, rival));
    panels.plots.push_back(std::move(plot));
  }
  return panels;
}

Plot TrailingPlot(const Comparison& comparison, const Rival& rival) {
  const std::string period = PeriodOf(comparison);
  const std::int64_t limit = comparison.limit.spec().count;
  const Trial& trial = rival.trial;
  Plot plot = EmptyPlot(comparison, rival.contender.name, "in the last " + period);
  plot.series.push_back({.name = "came",
                         .values = comparison.came_trailing,
                         .style = Series::Style::kArea,
                         .tone = Tone::kQuiet});
  plot.series.push_back(
      {.name = "went ahead", .values = rival.trailing, .style = Series::Style::kSteps});
  plot.lines.push_back({static_cast<double>(limit), "limit " + CountText(limit), Tone::kGood});
  if (trial.promise.in_window != limit) {
    plot.lines.push_back({static_cast<double>(trial.promise.in_window),
                          "promise " + CountText(trial.promise.in_window), Tone::kWarning});
  }
  if (trial.admitted == 0) return plot;
  plot.bands.push_back({Shown(comparison, std::max(Duration(0), trial.worst_window.from)),
                        Shown(comparison, trial.worst_window.to), "worst " + period, Tone::kQuiet});
  plot.marks.push_back({Shown(comparison, trial.worst_window.to),
                        static_cast<double>(trial.worst_window.cost),
                        CountText(trial.worst_window.cost) + " in " + period + ": " +
                            WriteValue(trial.factor, Unit::kFactor),
                        trial.worst_window.cost > limit ? Tone::kBad : Tone::kGood});
  return plot;
}

Fact PromisesOf(const Comparison& comparison) {
  std::string broken;
  for (const Rival& rival : comparison.rivals) {
    if (!rival.trial.is_kept) broken += (broken.empty() ? "" : ", ") + rival.contender.name;
  }
  if (broken.empty()) return {"promises", "all kept", Tone::kGood};
  return {"promises", "BROKEN by " + broken, Tone::kBad};
}

Paragraph LeftOutOf(const Comparison& comparison) {
  Paragraph paragraph{.title = "Not compared"};
  for (const LeftOut& one : comparison.left_out) {
    if (!paragraph.text.empty()) paragraph.text += '\n';
    paragraph.text += one.name + ": " + one.why + ".";
  }
  return paragraph;
}

}  // namespace

Panels PictureOf(const Comparison& comparison) {
  const std::string period = PeriodOf(comparison);
  Panels panels{.title = comparison.limit.ToString() + " under " + comparison.traffic.name +
                         " traffic: what went ahead in the last " + period,
                .note = "Each point is the most at any time of its " +
                        WriteValue(SecondsIn(comparison.timeline.bin), Unit::kSeconds) +
                        "; the band is the worst interval of " + period + "."};
  for (const Rival& rival : comparison.rivals) {
    panels.plots.push_back(TrailingPlot(comparison, rival));
  }
  return panels;
}

Report ReportOf(const Comparison& comparison) {
  const Traffic& traffic = comparison.traffic;
  Report report{.title = comparison.limit.ToString() + " by every algorithm",
                .subtitle = traffic.name + ": " + traffic.description,
                .warnings = traffic.warnings};
  report.facts = {
      {"requests", CountText(comparison.requests)},
      {"time", WriteValue(SecondsIn(traffic.length), Unit::kSeconds)},
      {"burst of buckets", CountText(comparison.limit.capacity())},
      PromisesOf(comparison),
  };
  if (comparison.cost != comparison.requests) {
    report.facts.push_back({"cost of all requests", CountText(comparison.cost)});
  }
  report.sections.emplace_back(WhatPassed(comparison));
  report.sections.emplace_back(HowExact(comparison));
  report.sections.emplace_back(WhatItCosts(comparison));
  report.sections.emplace_back(Arrivals(comparison));
  report.sections.emplace_back(Admissions(comparison));
  report.sections.emplace_back(PictureOf(comparison));
  report.sections.emplace_back(LeftOutOf(comparison));
  return report;
}

}  // namespace weir::lab
