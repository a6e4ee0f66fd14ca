#include "lab/replay/replay_report.h"

#include <algorithm>
#include <limits>

#include "lab/replay/spread.h"
#include "lab/seconds.h"

namespace weir::lab {
namespace {

double Number(std::uint64_t count) { return static_cast<double>(count); }
std::string Count(std::uint64_t count) { return WriteValue(Number(count), Unit::kCount); }
double Share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : Number(part) / Number(all);
}
std::string NameOf(const std::vector<RuleOutcome>& rules, std::uint32_t place) {
  return place < rules.size() ? rules[place].name : "";
}

std::vector<Fact> FactsOf(const ReplayResult& result, const ReplayShown& shown) {
  const PolicyOutcome& outcome = result.outcome;
  const auto denied = [](const PolicyOutcome& of) {
    return Count(of.denied) + " (" + WriteValue(of.denied_share(), Unit::kPercent) + ")";
  };
  const auto tone = [](const PolicyOutcome& of) {
    return of.denied > 0 ? Tone::kWarning : Tone::kGood;
  };
  std::vector<Fact> facts = {
      {.label = "requests", .value = Count(outcome.requests)},
      {.label = result.against ? "denied by " + shown.policy : "denied",
       .value = denied(outcome),
       .tone = tone(outcome)},
      {.label = "addresses denied", .value = Count(outcome.addresses_denied)}};
  if (result.against) {
    facts.push_back({.label = "denied by " + shown.against,
                     .value = denied(*result.against),
                     .tone = tone(*result.against)});
    facts.push_back({.label = "newly denied", .value = Count(result.newly_denied.requests)});
    facts.push_back({.label = "newly allowed", .value = Count(result.newly_allowed.requests)});
  }
  if (outcome.requests > 0) {
    facts.push_back(
        {.label = "from", .value = WriteValue(SecondsSinceEpoch(result.first), Unit::kTime)});
    facts.push_back(
        {.label = "to", .value = WriteValue(SecondsSinceEpoch(result.last), Unit::kTime)});
  }
  return facts;
}

Table RulesTable(const PolicyOutcome& outcome, const std::string& title) {
  Table table{
      .title = title,
      .note = "A request that several rules deny counts for each of them.",
      .columns = {
          {.label = "rule", .is_text = true},
          {.label = "allowed", .help = "Requests that it had room for, whatever other rules said"},
          {.label = "denied"},
          {.label = "share", .unit = Unit::kPercent, .help = "Denied of those it decided"},
          {.label = "keys denied"},
          {.label = "first", .unit = Unit::kTime},
          {.label = "last", .unit = Unit::kTime}}};
  for (const RuleOutcome& rule : outcome.rules) {
    if (rule.is_shadow) continue;
    const bool denies = rule.denied > 0;
    table.rows.push_back({rule.name, Number(rule.allowed),
                          Cell(Number(rule.denied), denies ? Tone::kBad : Tone::kPlain),
                          Share(rule.denied, rule.allowed + rule.denied), Number(rule.keys_denied),
                          denies ? Cell(SecondsSinceEpoch(rule.first_denied)) : Cell("-"),
                          denies ? Cell(SecondsSinceEpoch(rule.last_denied)) : Cell("-")});
  }
  if (outcome.deny_list > 0) {
    table.rows.push_back(
        {"(deny list)", 0.0, Cell(Number(outcome.deny_list), Tone::kBad), 1.0, "-", "-", "-"});
  }
  return table;
}

Table ShadowTable(const PolicyOutcome& outcome) {
  Table table{.title = "Rules in shadow mode",
              .note =
                  "This is what they would have done. They stopped nobody but those that "
                  "enforce_percent picks, in the column denied.",
              .columns = {{.label = "rule", .is_text = true},
                          {.label = "let through"},
                          {.label = "would have denied"},
                          {.label = "share", .unit = Unit::kPercent},
                          {.label = "denied",
                           .help = "With enforce_percent: those of the keys it is enforced for"},
                          {.label = "keys denied"}}};
  for (const RuleOutcome& rule : outcome.rules) {
    if (!rule.is_shadow) continue;
    table.rows.push_back(
        {rule.name, Number(rule.allowed), Number(rule.shadow_denied),
         Share(rule.shadow_denied, rule.allowed + rule.shadow_denied + rule.denied),
         Number(rule.denied), Number(rule.keys_denied)});
  }
  return table;
}

Table QueueTable(const PolicyOutcome& outcome) {
  Table table{.title = "Requests that had to wait",
              .columns = {{.label = "rule", .is_text = true},
                          {.label = "delayed"},
                          {.label = "longest", .unit = Unit::kSeconds}}};
  for (const RuleOutcome& rule : outcome.rules) {
    if (rule.delayed == 0) continue;
    table.rows.push_back({rule.name, Number(rule.delayed),
                          std::chrono::duration<double>(rule.longest_delay).count()});
  }
  return table;
}

Table OffendersTable(const std::vector<TalliedKey>& keys, const std::vector<RuleOutcome>& rules,
                     const std::string& title) {
  const auto is_shadow = [&](const TalliedKey& key) {
    return key.rule < rules.size() && rules[key.rule].is_shadow;
  };
  Table table{.title = title,
              .note = std::ranges::any_of(keys, is_shadow)
                          ? "For a rule in shadow mode those count that it would have denied."
                          : "",
              .columns = {{.label = "key", .is_text = true},
                          {.label = "rule", .is_text = true},
                          {.label = "denied"},
                          {.label = "requests"},
                          {.label = "share", .unit = Unit::kPercent}}};
  for (const TalliedKey& key : keys) {
    table.rows.push_back({key.key, NameOf(rules, key.rule) + (is_shadow(key) ? " (shadow)" : ""),
                          Cell(Number(key.denied), is_shadow(key) ? Tone::kWarning : Tone::kBad),
                          Number(key.requests), Share(key.denied, key.requests)});
  }
  return table;
}

Plot PlotOf(const TimeBins& bins, const std::string& title,
            const std::vector<std::pair<std::string, Tone>>& series) {
  Plot plot{.title = title,
            .note = "Counts for each " +
                    WriteValue(std::chrono::duration<double>(bins.width()).count(), Unit::kSeconds),
            .x_axis = {.label = "time", .unit = Unit::kTime},
            .y_axis = {.label = "requests"}};
  for (std::size_t bin = 0; bin < bins.size(); ++bin)
    plot.x.push_back(SecondsSinceEpoch(bins.BeginOf(bin)));
  for (std::size_t i = 0; i < series.size(); ++i) {
    Series one{.name = series[i].first, .style = Series::Style::kSteps, .tone = series[i].second};
    bool some = i == 0;
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
      one.values.push_back(Number(bins.Count(bin, i)));
      some = some || bins.Count(bin, i) > 0;
    }
    if (some) plot.series.push_back(std::move(one));
  }
  return plot;
}

Plot TimePlot(const ReplayResult& result) {
  std::vector<std::pair<std::string, Tone>> series = {{"requests", Tone::kQuiet}};
  for (const RuleOutcome& rule : result.outcome.rules) {
    series.emplace_back("denied by " + rule.name + (rule.is_shadow ? " (shadow)" : ""),
                        rule.is_shadow ? Tone::kWarning : Tone::kBad);
  }
  series.emplace_back("denied by a list", Tone::kBad);
  return PlotOf(result.bins, "Over time", series);
}

void AddChange(const ReplayChange& change, const std::vector<RuleOutcome>& rules,
               const std::string& what, Report& report) {
  Table by_rule{.title = what + ", by rule",
                .columns = {{.label = "rule", .is_text = true}, {.label = "requests"}}};
  for (const ReplayChange::ByRule& each : change.rules) {
    by_rule.rows.push_back({each.rule.empty() ? "(deny list)" : each.rule, Number(each.requests)});
  }
  if (change.requests == 0) {
    report.sections.emplace_back(Paragraph{.title = what, .text = "Nobody."});
    return;
  }
  report.sections.emplace_back(std::move(by_rule));
  Table by_key{.title = what + ", by key",
               .columns = {{.label = "key", .is_text = true},
                           {.label = "rule", .is_text = true},
                           {.label = "requests"}}};
  for (const TalliedKey& key : change.keys) {
    by_key.rows.push_back({key.key, NameOf(rules, key.rule), Number(key.denied)});
  }
  if (!by_key.rows.empty()) report.sections.emplace_back(std::move(by_key));
}

std::string AsTheyAre(std::uint64_t seconds) {
  if (seconds == 0) return "";
  return " Not in " + Count(seconds) + (seconds == 1 ? " second" : " seconds") +
         " with more than " + Count(Spread::kMost) + " requests, which were left as they are.";
}

void AddStoreWarnings(const PolicyOutcome& outcome, const std::string& policy, Report& report) {
  for (const std::string& notice : outcome.notices) {
    std::string text = policy;
    text += ": " + notice;
    report.warnings.push_back(std::move(text));
  }
  if (outcome.forgotten_keys > 0) {
    report.warnings.push_back(Count(outcome.forgotten_keys) +
                              " keys were forgotten before their time, because memory.cap of " +
                              policy + " has no room for them, as in the service.");
  }
}

void AddWarnings(const ReplayResult& result, const ReplayShown& shown, const LogAccount& account,
                 Report& report) {
  if (account.is_cut_short) {
    report.warnings.emplace_back("This report is partial: not all of the log could be read.");
  }
  const auto add = [&](const std::vector<std::string>& texts) {
    report.warnings.insert(report.warnings.end(), texts.begin(), texts.end());
  };
  add(account.warnings);
  add(shown.warnings);
  if (result.outcome.requests == 0) report.warnings.emplace_back("There was not one request.");
  if (result.outcome.requests > 0) add(result.unanswered);
  AddStoreWarnings(result.outcome, shown.policy, report);
  if (result.against) AddStoreWarnings(*result.against, shown.against, report);
}

}  // namespace

Report ReportOf(const ReplayResult& result, const ReplayShown& shown) {
  Report report{.title = "Replay of " + shown.policy};
  if (!shown.against.empty()) report.title += " against " + shown.against;
  const LogAccount account = AccountOf(result.counts, shown.horizon);
  AddWarnings(result, shown, account, report);
  report.facts = FactsOf(result, shown);
  report.sections = account.sections;
  if (account.whole_seconds && result.outcome.requests > 0) {
    report.sections.emplace_back(Paragraph{
        .title = "Times",
        .text =
            shown.spread
                ? "The log has whole seconds; requests of the same second were spread evenly "
                  "over it." +
                      AsTheyAre(result.seconds_as_they_are)
                : std::string(
                      "The log has whole seconds: requests of the same second are taken to have "
                      "come at once, so bursts look sharper than they were. --spread spreads "
                      "them evenly.")});
  }
  if (result.outcome.requests == 0) return report;
  const auto has_shadows = [](const PolicyOutcome& outcome) {
    return std::ranges::any_of(outcome.rules, &RuleOutcome::is_shadow);
  };
  const auto add_rules = [&](const PolicyOutcome& outcome, const std::string& title) {
    report.sections.emplace_back(RulesTable(outcome, title));
    if (has_shadows(outcome)) report.sections.emplace_back(ShadowTable(outcome));
    Table queues = QueueTable(outcome);
    if (!queues.rows.empty()) report.sections.emplace_back(std::move(queues));
  };
  add_rules(result.outcome, result.against ? "Rules of " + shown.policy : "Rules");
  if (result.against) add_rules(*result.against, "Rules of " + shown.against);
  report.sections.emplace_back(TimePlot(result));
  if (!result.outcome.offenders.empty()) {
    report.sections.emplace_back(
        OffendersTable(result.outcome.offenders, result.outcome.rules, "Denied most"));
  }
  if (result.against) {
    AddChange(result.newly_denied, result.against->rules, "Newly denied by " + shown.against,
              report);
    AddChange(result.newly_allowed, result.outcome.rules, "Newly allowed by " + shown.against,
              report);
    if (result.newly_denied.requests + result.newly_allowed.requests > 0) {
      report.sections.emplace_back(
          PlotOf(result.change_bins, "What changes, over time",
                 {{"newly denied", Tone::kBad}, {"newly allowed", Tone::kGood}}));
    }
  }
  return report;
}

}  // namespace weir::lab
