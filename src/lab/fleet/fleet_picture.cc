// What happened over time, in plots that share their axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/fleet/fleet_report.h"
#include "lab/seconds.h"
#include "limit/limit_words.h"

namespace weir::lab {
namespace {

// Parts of the time in which people asked, all of the same length.
class Bins {
 public:
  explicit Bins(Duration ends) {
    constexpr std::array<std::int64_t, 12> kLengths = {10,    20,    50,    100,    200,    500,
                                                       1'000, 2'000, 5'000, 10'000, 30'000, 60'000};
    constexpr std::int64_t kMost = 150;
    length_ = std::chrono::milliseconds(kLengths.back());
    for (const std::int64_t each : kLengths) {
      if (ends / std::chrono::milliseconds(each) > kMost) continue;
      length_ = std::chrono::milliseconds(each);
      break;
    }
    count_ =
        static_cast<std::size_t>(std::max<std::int64_t>(1, (ends - Duration(1)) / length_ + 1));
  }
  std::size_t count() const { return count_; }
  double seconds() const { return SecondsIn(length_); }
  std::size_t Of(Duration at) const {
    return std::min(count_ - 1, static_cast<std::size_t>(std::max(at, Duration(0)) / length_));
  }
  Duration BeginOf(std::size_t bin) const { return length_ * static_cast<std::int64_t>(bin); }
  std::vector<double> Axis() const {
    std::vector<double> axis;
    axis.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      axis.push_back(seconds() * static_cast<double>(i));
    }
    return axis;
  }
  std::vector<double> Zeros() const { return std::vector<double>(count_, 0.0); }

 private:
  Duration length_{};
  std::size_t count_ = 0;
};

class Painter {
 public:
  Painter(const Scenario& scenario, const Outcome& outcome)
      : scenario_(scenario),
        outcome_(outcome),
        record_(outcome.record),
        bins_(outcome.record.asked_until) {}

  Panels Paint() const {
    Panels panels{.title = scenario_.name, .note = scenario_.description};
    panels.plots.push_back(Requests());
    if (record_.is_shared()) panels.plots.push_back(Sources());
    if (auto plot = BusiestKey()) panels.plots.push_back(*std::move(plot));
    if (record_.is_shared()) panels.plots.push_back(Latency());
    for (Plot& plot : panels.plots) {
      plot.x = bins_.Axis();
      plot.x_axis = {.label = "time", .unit = Unit::kSeconds};
      plot.bands = Bands();
    }
    return panels;
  }

 private:
  std::vector<Plot::Band> Bands() const {
    std::vector<Plot::Band> bands;
    for (const FaultNote& fault : record_.faults) {
      std::string label = fault.name;
      if (fault.node) label += ", node " + std::to_string(*fault.node + 1);
      if (fault.server && record_.servers > 1) {
        label += ", server " + std::to_string(*fault.server + 1);
      }
      bands.push_back({.from = SecondsIn(fault.begins),
                       .to = SecondsIn(std::max(fault.ends, fault.begins)),
                       .label = std::move(label),
                       .tone = fault.is_harmless ? Tone::kQuiet : Tone::kWarning});
    }
    return bands;
  }

  Plot Requests() const {
    std::vector<double> offered = bins_.Zeros();
    std::vector<double> admitted = bins_.Zeros();
    std::vector<double> denied = bins_.Zeros();
    const double each = 1 / bins_.seconds();
    for (const Asked& asked : record_.asked) {
      const std::size_t bin = bins_.Of(asked.at);
      offered[bin] += each;
      if (asked.answers > 0) (asked.allowed ? admitted : denied)[bin] += each;
    }
    return {.title = "Requests",
            .y_axis = {.label = "requests", .unit = Unit::kRate},
            .series = {{.name = "offered", .values = offered, .tone = Tone::kQuiet},
                       {.name = "admitted",
                        .values = admitted,
                        .style = Series::Style::kArea,
                        .tone = Tone::kGood},
                       {.name = "denied", .values = denied, .tone = Tone::kBad}}};
  }

  Plot Sources() const {
    struct Kind {
      Source source;
      const char* name;
      Tone tone;
    };
    constexpr std::array<Kind, 4> kKinds = {{{Source::kStore, "the store", Tone::kGood},
                                             {Source::kFallback, "static share", Tone::kWarning},
                                             {Source::kOpen, "open", Tone::kBad},
                                             {Source::kClosed, "closed", Tone::kPlain}}};
    Plot plot{.title = "Who decided", .y_axis = {.label = "decisions", .unit = Unit::kRate}};
    for (const Kind& kind : kKinds) {
      if (outcome_.measures.all.By(kind.source) == 0) continue;
      std::vector<double> values = bins_.Zeros();
      for (const Asked& asked : record_.asked) {
        if (asked.answers == 0 || asked.source != kind.source) continue;
        values[bins_.Of(asked.answered)] += 1 / bins_.seconds();
      }
      plot.series.push_back({.name = kind.name, .values = std::move(values), .tone = kind.tone});
    }
    return plot;
  }

  // The rule and key that used its limit most, of those with a rate.
  std::optional<int> BusiestTrack() const {
    std::vector<double> parts(record_.tracks.size());
    for (const Asked& asked : record_.asked) {
      if (asked.answers == 0 || !asked.allowed) continue;
      for (const Use& use : asked.uses) {
        const Limit& limit = record_.limits[static_cast<std::size_t>(use.limit)].limit;
        const bool has_rate = limit.kind() == LimitKind::kCounted &&
                              limit.algorithm() != Algorithm::kConcurrency &&
                              limit.spec().period <= record_.asked_until;
        if (!has_rate || use.is_shadow) continue;
        parts[static_cast<std::size_t>(use.track)] += static_cast<double>(use.cost) *
                                                      SecondsIn(limit.spec().period) /
                                                      static_cast<double>(PromisedIn(limit));
      }
    }
    const auto most = std::ranges::max_element(parts);
    if (most == parts.end() || *most <= 0) return std::nullopt;
    return static_cast<int>(most - parts.begin());
  }

  std::optional<Plot> BusiestKey() const {
    const std::optional<int> track = BusiestTrack();
    if (!track) return std::nullopt;
    std::vector<std::pair<Duration, std::int64_t>> admitted;
    std::vector<int> limits;  // In the order in which they were in force.
    for (const Asked& asked : record_.asked) {
      for (const Use& use : asked.uses) {
        if (use.track != *track) continue;
        if (std::ranges::find(limits, use.limit) == limits.end()) limits.push_back(use.limit);
        // Who queues goes on when the delay is over.
        if (asked.answers > 0 && asked.allowed) {
          admitted.emplace_back(asked.answered + use.delay, use.cost);
        }
      }
    }
    std::ranges::sort(admitted);
    const Duration window =
        record_.limits[static_cast<std::size_t>(limits.front())].limit.spec().period;
    const std::vector<double> most = MostWithin(window, admitted);
    const Track& name = record_.tracks[static_cast<std::size_t>(*track)];
    return Plot{.title = "The busiest key: " + name.rule + ", " + name.key,
                .note = "let through in the last " + TextOf(window) + ", by all nodes together",
                .y_axis = {.label = "in " + TextOf(window), .unit = Unit::kCount},
                .series = {{.name = "let through", .values = most, .style = Series::Style::kSteps}},
                .lines = PromisesOf(limits)};
  }

  // Of each bin the most that had been let through within a window when some moment of it came.
  std::vector<double> MostWithin(
      Duration window, const std::vector<std::pair<Duration, std::int64_t>>& admitted) const {
    std::vector<double> most = bins_.Zeros();
    std::int64_t sum = 0;
    std::size_t first = 0;
    std::size_t next = 0;
    const auto look = [&](std::size_t bin, Duration at) {
      for (; first < next && admitted[first].first <= at - window; ++first) {
        sum -= admitted[first].second;
      }
      most[bin] = std::max(most[bin], static_cast<double>(sum));
    };
    for (std::size_t bin = 0; bin < bins_.count(); ++bin) {
      // Where nobody is let through, what was before counts still.
      look(bin, bins_.BeginOf(bin));
      for (; next < admitted.size() && admitted[next].first < bins_.BeginOf(bin + 1);) {
        sum += admitted[next].second;
        const Duration at = admitted[next++].first;
        look(bin, at);
      }
    }
    return most;
  }

  std::vector<Plot::Line> PromisesOf(const std::vector<int>& limits) const {
    std::vector<Plot::Line> lines;
    for (const int number : limits) {
      const Limit& limit = record_.limits[static_cast<std::size_t>(number)].limit;
      const auto promised = static_cast<double>(PromisedIn(limit));
      lines.push_back(
          {.y = promised, .label = "promised by " + limit.ToString(), .tone = Tone::kBad});
      // In memory nobody knows of the others.
      if (record_.is_shared() || record_.nodes == 1) continue;
      lines.back().label += ", one node";
      lines.push_back({.y = promised * record_.nodes,
                       .label = std::to_string(record_.nodes) + " nodes",
                       .tone = Tone::kBad});
    }
    return lines;
  }

  // The most in any window of its period.
  static std::int64_t PromisedIn(const Limit& limit) {
    const LimitSpec& spec = limit.spec();
    switch (spec.algorithm) {
      case Algorithm::kTokenBucket:
      case Algorithm::kLeakyBucket:
        return (spec.queue ? 1 : limit.capacity()) + spec.count;
      case Algorithm::kFixedWindow:
        return 2 * spec.count;
      case Algorithm::kSlidingWindow:
        return spec.strict ? spec.count : 2 * spec.count;
      default:
        return spec.count;
    }
  }

  Plot Latency() const {
    std::vector<double> worst(bins_.count(), std::numeric_limits<double>::quiet_NaN());
    for (const Asked& asked : record_.asked) {
      if (asked.answers == 0) continue;
      double& value = worst[bins_.Of(asked.answered)];
      const double took = SecondsIn(asked.answered - asked.at);
      value = std::isnan(value) ? took : std::max(value, took);
    }
    return {
        .title = "The slowest answer",
        .y_axis = {.label = "took", .unit = Unit::kSeconds},
        .series = {{.name = "slowest", .values = worst}},
        .lines = {{.y = SecondsIn(record_.timeout), .label = "timeout", .tone = Tone::kWarning}}};
  }

  const Scenario& scenario_;
  const Outcome& outcome_;
  const Record& record_;
  const Bins bins_;
};

}  // namespace

Panels FleetPicture(const Scenario& scenario, const Outcome& outcome) {
  return Painter(scenario, outcome).Paint();
}

}  // namespace weir::lab
