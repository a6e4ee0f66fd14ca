#include "lab/calibrate/calibrate_report.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "lab/calibrate/policy_text.h"
#include "lab/log/log_account.h"

namespace weir::lab {
namespace {

constexpr std::size_t kMostShown = 50;  // Of those set apart; JSON has more.

double AsNumber(std::uint64_t number) { return static_cast<double>(number); }

std::string Word(std::size_t period) { return std::string(kAllPeriods[period].word); }
// "an hour"
std::string One(std::size_t period) {
  return (period == kHour ? "an " : "a ") + std::string(kAllPeriods[period].word);
}
std::string Adverb(std::size_t period) { return std::string(kAllPeriods[period].adverb); }

std::string QuantileText(const Calibration& of) {
  return TextOfNumber(100 * of.settings.quantile) + " %";
}

double SecondsOf(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string PercentOf(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "0 %" : WriteValue(AsNumber(part) / AsNumber(whole), Unit::kPercent);
}

// --- How clients behave ---

Table BehaviourTable(const Calibration& of) {
  Table table{
      .title = "How many requests a client makes at most",
      .note =
          "The most that a client made in any second, any minute and so on, wherever that "
          "begins: half of the clients stayed within the number in the column 50 %. " +
          std::string(of.abuser_count == 0
                          ? "Nobody was set apart."
                          : "Without those set apart, except in the last two columns."),
      .columns = {
          {.label = "in any", .is_text = true},
          {.label = "50 %"},
          {.label = "90 %"},
          {.label = "99 %"},
          {.label = "99.9 %"},
          {.label = "most"},
          {.label = "limit",
           .help = TextOfNumber(of.settings.margin) + " times what " + QuantileText(of) +
                   " of the clients stayed within, rounded up by at most 2 %."},
          {.label = "most of all", .help = "With those set apart."},
          {.label = "for all", .help = "What would be proposed if nobody had been set apart."}}};
  for (const Behaviour& row : of.behaviour) {
    const auto limit = static_cast<double>(row.limit);
    const bool other = row.limit_with_everybody != row.limit;
    table.rows.push_back({Word(row.period), AsNumber(row.normal.p50), AsNumber(row.normal.p90),
                          AsNumber(row.normal.p99), AsNumber(row.normal.p999),
                          AsNumber(row.normal.largest), Cell(limit, Tone::kGood),
                          AsNumber(row.largest_of_all),
                          Cell(static_cast<double>(row.limit_with_everybody),
                               other ? Tone::kWarning : Tone::kPlain)});
  }
  return table;
}

Plot PeakPlot(const Calibration& of) {
  Plot plot{.title = "How many clients reach how much",
            .note =
                "The share of all clients, those set apart included, that made at least so many "
                "requests in some second, minute and so on. Marks are the limits.",
            .x_axis = {.label = "requests", .logarithmic = true},
            .y_axis = {.label = "share of clients", .unit = Unit::kPercent, .logarithmic = true},
            .x = of.curve_x};
  for (std::size_t i = 0; i < of.curves.size(); ++i) {
    const PeakCurve& curve = of.curves[i];
    Series series{.name = "in " + One(curve.period), .style = Series::Style::kSteps};
    for (const double share : curve.share) {
      series.values.push_back(share > 0 ? share : std::numeric_limits<double>::quiet_NaN());
    }
    const auto limit = static_cast<double>(of.behaviour[i].limit);
    const auto place = std::ranges::lower_bound(of.curve_x, limit) - of.curve_x.begin();
    const double least = 1 / std::max(1.0, AsNumber(of.clients));
    const double share = place < std::ssize(curve.share)
                             ? std::max(least, curve.share[static_cast<std::size_t>(place)])
                             : least;
    if (limit <= of.curve_x.back()) {
      plot.marks.push_back({.x = limit,
                            .y = share,
                            .label = WriteValue(limit, Unit::kCount) + " " + Adverb(curve.period),
                            .tone = Tone::kGood});
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

Plot TimePlot(const Calibration& of) {
  const RequestCurve& timeline = of.timeline;
  const double step = std::chrono::duration<double>(timeline.step).count();
  Plot plot{.title = "Requests over time",
            .note = "Averages over " + WriteValue(step, Unit::kSeconds) + ".",
            .x_axis = {.label = "time", .unit = Unit::kTime},
            .y_axis = {.label = "requests a second", .unit = Unit::kRate}};
  const auto add = [&](std::string name, const std::vector<double>& counts, Tone tone) {
    Series series{.name = std::move(name), .style = Series::Style::kSteps, .tone = tone};
    for (const double count : counts) series.values.push_back(count / step);
    plot.series.push_back(std::move(series));
  };
  for (std::size_t i = 0; i < timeline.normal.size(); ++i) {
    plot.x.push_back(SecondsOf(timeline.from) + static_cast<double>(i) * step);
  }
  add(of.abuser_count == 0 ? "all clients" : "clients", timeline.normal, Tone::kQuiet);
  if (of.abuser_count > 0) add("set apart", timeline.abusers, Tone::kWarning);
  add("would have been denied", timeline.denied, Tone::kBad);
  return plot;
}

// --- Who was set apart ---

std::string WhyApart(const Abuser& abuser) {
  return WriteValue(abuser.times, Unit::kFactor) + "/" +
         std::string(kAllPeriods[abuser.why].in_limits);
}

// "03-02 10:15 to 03-04 23:57"
std::string Seen(const Abuser& abuser) {
  const std::string first = TextOfTime(abuser.first).substr(5, 11);
  const std::string last = TextOfTime(abuser.last).substr(5, 11);
  return first + " to " + (first.substr(0, 5) == last.substr(0, 5) ? last.substr(6) : last);
}

Table AbuserTable(const Calibration& of) {
  Table table{
      .title = "Set apart: clients far above all others",
      .note =
          "Limits are not learnt from them. A client is set apart if there is a gap between it "
          "and the others that a smooth distribution, however wide, would hardly have. If they "
          "are customers of yours, give them limits of their own (tiers or overrides); what it "
          "would take to give everybody theirs is in the column \"for all\" above.",
      .columns = {{.label = "client", .is_text = true},
                  {.label = "requests"},
                  {.label = "share", .unit = Unit::kPercent, .help = "Of all requests."},
                  {.label = "denied", .help = "By any of the proposed rules."}}};
  for (const Behaviour& row : of.behaviour) {
    table.columns.push_back({.label = "/" + std::string(kAllPeriods[row.period].in_limits),
                             .help = "The most in any " + Word(row.period) + "."});
  }
  table.columns.push_back({.label = "why",
                           .is_text = true,
                           .help = "So many times the most of anybody who was not set apart."});
  table.columns.push_back({.label = "seen (UTC)", .is_text = true});
  for (std::size_t i = 0; i < of.abusers.size() && i < kMostShown; ++i) {
    const Abuser& abuser = of.abusers[i];
    std::vector<Cell> row = {
        abuser.name, AsNumber(abuser.requests), abuser.share,
        Cell(AsNumber(abuser.denied), abuser.denied > 0 ? Tone::kBad : Tone::kWarning)};
    for (const Behaviour& period : of.behaviour) row.emplace_back(abuser.peaks[period.period]);
    row.emplace_back(WhyApart(abuser));
    row.emplace_back(Seen(abuser));
    table.rows.push_back(std::move(row));
  }
  if (of.abuser_count > table.rows.size()) {
    table.note += " Here are the " + std::to_string(table.rows.size()) +
                  " with the most requests of " + Grouped(of.abuser_count) + ".";
  }
  return table;
}

// --- What is proposed ---

Table RuleTable(const Calibration& of) {
  const bool apart = of.abuser_count > 0;
  Table table{
      .title = "Proposed rules, and what they would have denied",
      .note = "Decided by the engine itself, at the times in the log, each rule for itself.",
      .columns = {{.label = "rule", .is_text = true},
                  {.label = "limit", .is_text = true},
                  {.label = "requests"},
                  {.label = "share", .unit = Unit::kPercent},
                  {.label = "clients"}}};
  if (apart) {
    table.columns.push_back({.label = "set apart: requests"});
    table.columns.push_back({.label = "share", .unit = Unit::kPercent, .help = "Of all theirs."});
    table.columns.push_back({.label = "clients"});
  }
  const auto add = [&](std::string name, std::string limit, const Denials& denials) {
    const auto part = [](std::uint64_t a, std::uint64_t b) {
      return b == 0 ? 0.0 : AsNumber(a) / AsNumber(b);
    };
    const Tone tone = denials.normal_requests == 0 ? Tone::kGood : Tone::kWarning;
    std::vector<Cell> row = {std::move(name), std::move(limit),
                             Cell(AsNumber(denials.normal_requests), tone),
                             part(denials.normal_requests, of.requests - of.abuser_requests),
                             AsNumber(denials.normal_clients)};
    if (apart) {
      row.emplace_back(AsNumber(denials.abuser_requests));
      row.emplace_back(part(denials.abuser_requests, of.abuser_requests));
      row.emplace_back(AsNumber(denials.abusers));
    }
    table.rows.push_back(std::move(row));
  };
  for (const ProposedRule& rule : of.rules) add(rule.name, rule.limit(), rule.denials);
  if (of.rules.size() > 1) add("any of them", "", of.denials);
  return table;
}

Paragraph Reasons(const Calibration& of) {
  std::string text;
  for (const ProposedRule& rule : of.rules) text += rule.name + " is " + rule.why + ". ";
  for (const Behaviour& row : of.behaviour) {
    if (!row.in_policy.empty()) continue;
    text += "There is none for the " + Word(row.period) + ": " + row.why_not + ". ";
  }
  if (!of.chosen_part.empty()) {
    text += "The rules name the " + Counted(of.chosen_values.size(), "value") + " of " +
            of.chosen_part + " that are asked for most, which is " +
            PercentOf(of.chosen_requests, of.requests) +
            " of the requests, because a client that can make up others would be counted anew for "
            "each; have a rule by ip alone beside them. ";
  }
  text.pop_back();
  return {.title = "Why these rules", .text = text};
}

}  // namespace

std::vector<std::string> WarningsOf(const Calibration& of) {
  std::vector<std::string> warnings = AccountOf(of.logs, of.settings.horizon).warnings;
  if (of.changed_meanwhile) {
    warnings.emplace_back(
        "The log was changed while it was read, so what would have been denied is of another log "
        "than the limits are.");
  }
  if (of.without_key > 0) {
    warnings.push_back(Counted(of.without_key, "request") + " without " + of.key +
                       " count for nothing below, and the rules do not apply to them.");
  }
  return warnings;
}

std::vector<std::string> CaveatsOf(const Calibration& of) {
  std::vector<std::string> caveats;
  for (const Behaviour& row : of.behaviour) {
    if (row.twice) continue;
    caveats.push_back("The log lasts for less than two " + Word(row.period) + "s: what it says " +
                      Adverb(row.period) + " may be chance.");
  }
  const auto few = std::ranges::find_if(of.behaviour, &Behaviour::is_largest);
  if (few != of.behaviour.end()) {
    const std::uint64_t clients = of.clients - of.abuser_count;
    caveats.push_back(Counted(clients, "client") + (clients == 1 ? " is" : " are") +
                      " too few to tell what " + QuantileText(of) +
                      " of clients stay within: limits are learnt from the most that any of them "
                      "made.");
  }
  const std::uint64_t normal = of.requests - of.abuser_requests;
  if (AsNumber(of.denials.normal_requests) > 0.001 * AsNumber(normal)) {
    caveats.push_back("The rules would have denied " +
                      PercentOf(of.denials.normal_requests, normal) +
                      " of the requests of clients that were not set apart, " +
                      Counted(of.denials.normal_clients, "client") +
                      " in all: these send much more than others. If that is too much, raise "
                      "--margin or --quantile.");
  }
  if (of.clients < kFewestForGap) {
    caveats.push_back("Of fewer than " + std::to_string(kFewestForGap) +
                      " clients it cannot be told who is unlike the others: nobody was set apart.");
  }
  if (of.whole_seconds) {
    caveats.emplace_back(
        "The times in the log are whole seconds: what is said of seconds and bursts is as if all "
        "requests of a second had come at once.");
  }
  if (of.has_costs) {
    caveats.emplace_back(
        "The log states costs; limits are learnt in requests, whatever they cost.");
  }
  return caveats;
}

Report ReportOf(const Calibration& of) {
  Report report{.title = "Limits learnt from access logs",
                .subtitle = "By " + of.key + ", " + TextOfTime(of.first) + " to " +
                            TextOfTime(of.last) + " UTC",
                .warnings = WarningsOf(of)};
  const double span = std::max(1.0, std::chrono::duration<double>(of.last - of.first).count());
  report.facts = {
      {"requests", Grouped(of.requests)},
      {"clients", Grouped(of.clients)},
      {"set apart", Grouped(of.abuser_count), of.abuser_count > 0 ? Tone::kWarning : Tone::kPlain},
      {"log lasts", WriteValue(span, Unit::kSeconds)},
      {"mean", WriteValue(AsNumber(of.requests) / span, Unit::kRate)},
      {"busiest second", Grouped(of.busiest_second)},
      {"would be denied", PercentOf(of.denials.normal_requests, of.requests - of.abuser_requests)},
      {"memory for clients", WriteValue(AsNumber(of.memory_bytes), Unit::kBytes)}};
  std::string caveats;
  for (const std::string& caveat : CaveatsOf(of)) caveats += (caveats.empty() ? "" : " ") + caveat;
  if (!caveats.empty()) {
    report.sections.emplace_back(Paragraph{.title = "Bear in mind", .text = caveats});
  }
  std::ranges::move(AccountOf(of.logs, of.settings.horizon).sections,
                    std::back_inserter(report.sections));
  report.sections.emplace_back(BehaviourTable(of));
  if (!of.periods_not_seen.empty()) {
    report.sections.emplace_back(Paragraph{
        .title = "",
        .text = "The log says nothing about a whole " + Word(of.periods_not_seen.front()) +
                (of.periods_not_seen.size() > 1 ? " or longer" : "") +
                ", because it does not last for that long."});
  }
  report.sections.emplace_back(PeakPlot(of));
  report.sections.emplace_back(TimePlot(of));
  if (of.abuser_count > 0) report.sections.emplace_back(AbuserTable(of));
  report.sections.emplace_back(RuleTable(of));
  report.sections.emplace_back(Reasons(of));
  report.sections.emplace_back(
      Listing{.title = "The policy, ready to run in shadow mode", .text = of.policy});
  return report;
}

}  // namespace weir::lab
