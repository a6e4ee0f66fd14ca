#include "lab/fleet/fleet_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "lab/seconds.h"
#include "limit/limit_words.h"
#include "policy/policy_words.h"

namespace weir::lab {
namespace {

using Json = nlohmann::ordered_json;

double Number(std::uint64_t count) { return static_cast<double>(count); }

std::string Hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Plural(std::int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string StoreText(const Record& record) {
  if (!record.is_shared()) return "memory, each node by itself";
  std::string text(NameOf(record.layout));
  if (record.servers > 1) text += " of " + std::to_string(record.servers);
  return text + ", timeout " + TextOf(record.timeout);
}

constexpr std::array<Source, 5> kSources = {Source::kMemory, Source::kStore, Source::kFallback,
                                            Source::kOpen, Source::kClosed};

Table InvariantTable(const Verdict& verdict) {
  Table table{.title = "Invariants",
              .columns = {{.label = "", .is_text = true},
                          {.label = "what must hold", .is_text = true},
                          {.label = "checked"},
                          {.label = "verdict", .is_text = true}}};
  for (const Finding& it : verdict.findings) {
    Cell word = it.broken > 0 ? Cell("BROKEN " + std::to_string(it.broken) + " times", Tone::kBad)
                : it.checked > 0 ? Cell(std::string("held"), Tone::kGood)
                                 : Cell(std::string("nothing to check"), Tone::kQuiet);
    table.rows.push_back(
        {std::string(it.name), std::string(it.says), Number(it.checked), std::move(word)});
  }
  return table;
}

void AddBreaches(const Outcome& outcome, Report& report) {
  std::string text;
  for (const Finding& finding : outcome.verdict.findings) {
    for (const std::string& example : finding.examples) {
      text += std::string(finding.name) + " " + example + "\n";
    }
    if (finding.broken > finding.examples.size()) {
      text += std::string(finding.name) + " and " +
              std::to_string(finding.broken - finding.examples.size()) + " more\n";
    }
  }
  for (const std::string& unmet : outcome.unmet) text += "expected " + unmet + "\n";
  if (text.empty()) return;
  report.sections.emplace_back(Listing{.title = "What was broken", .text = text, .language = ""});
}

// Tallies of several, one row each. Who never decided anything has no column.
class TallyTable {
 public:
  TallyTable(std::string title, std::string first, const Tally& all) {
    table_.title = std::move(title);
    table_.columns = {{.label = std::move(first), .is_text = true},
                      {.label = "requests"},
                      {.label = "admitted"},
                      {.label = "denied"}};
    for (const Source source : kSources) {
      if (all.By(source) == 0) continue;
      sources_.push_back(source);
      table_.columns.push_back({.label = "by " + std::string(NameOf(source))});
    }
  }
  std::vector<Cell>& Add(const std::string& name, const Tally& tally) {
    std::vector<Cell>& cells = table_.rows.emplace_back();
    cells = {Cell(name), Number(tally.requests), Number(tally.admitted), Number(tally.denied)};
    for (const Source source : sources_) cells.emplace_back(Number(tally.By(source)));
    return cells;
  }
  Table& table() { return table_; }

 private:
  Table table_;
  std::vector<Source> sources_;
};

Table RuleTable(const Record& record, const Measures& measures) {
  Table table{.title = "Rules",
              .columns = {{.label = "rule", .is_text = true},
                          {.label = "limit", .is_text = true},
                          {.label = "algorithm", .is_text = true},
                          {.label = "keys"},
                          {.label = "allowed"},
                          {.label = "denied"},
                          {.label = "shadow denied"}}};
  for (std::size_t i = 0; i < record.rules.size(); ++i) {
    const std::string& name = record.rules[i];
    std::string limit;
    std::string algorithm;
    for (const LimitNote& note : record.limits) {
      if (note.rule != name || limit.contains(note.limit.ToString())) continue;
      limit += (limit.empty() ? "" : ", then ") + note.limit.ToString();
      if (note.limit.kind() == LimitKind::kCounted) algorithm = NameOf(note.limit.algorithm());
      if (note.limit.spec().queue) algorithm += ", queue";
      if (note.limit.spec().strict) algorithm += ", strict";
    }
    const auto keys = std::ranges::count(record.tracks, name, &Track::rule);
    const Measures::RuleTally& tally = measures.by_rule[i];
    table.rows.push_back({Cell(name), Cell(limit), Cell(algorithm), static_cast<double>(keys),
                          Number(tally.allowed), Number(tally.denied),
                          Number(tally.shadow_denied)});
  }
  return table;
}

Table NodeTable(const Record& record, const Measures& measures) {
  TallyTable nodes("Nodes", "node", measures.all);
  if (record.is_shared()) {
    nodes.table().columns.push_back({.label = "degraded", .unit = Unit::kSeconds});
  }
  for (std::size_t i = 0; i < measures.by_node.size(); ++i) {
    std::vector<Cell>& cells = nodes.Add("node " + std::to_string(i + 1), measures.by_node[i]);
    if (record.is_shared()) cells.emplace_back(SecondsIn(record.node_notes[i].degraded));
  }
  return std::move(nodes.table());
}

Table ClientTable(const Scenario& scenario, const Measures& measures) {
  TallyTable clients("Clients", "clients", measures.all);
  for (std::size_t i = 0; i < scenario.clients.size(); ++i) {
    clients.Add(scenario.clients[i].name, measures.by_client_group[i]);
  }
  return std::move(clients.table());
}

std::string WhomText(const FaultNote& fault) {
  if (fault.node) return "node " + std::to_string(*fault.node + 1);
  if (fault.server) return "server " + std::to_string(*fault.server + 1);
  return fault.reloads ? "all nodes" : "all servers";
}

Table FaultTable(const Record& record) {
  Table table{.title = "Faults",
              .columns = {{.label = "what", .is_text = true},
                          {.label = "whom", .is_text = true},
                          {.label = "from", .unit = Unit::kSeconds},
                          {.label = "to", .unit = Unit::kSeconds}}};
  for (const FaultNote& fault : record.faults) {
    table.rows.push_back(
        {Cell(fault.name), Cell(WhomText(fault)), SecondsIn(fault.begins), SecondsIn(fault.ends)});
  }
  return table;
}

Json ToJson(const Verdict& verdict) {
  Json list = Json::array();
  for (const Finding& it : verdict.findings) {
    list.push_back({{"name", it.name},
                    {"says", it.says},
                    {"checked", it.checked},
                    {"broken", it.broken},
                    {"examples", it.examples}});
  }
  return list;
}

Json ToJson(const Tally& tally) {
  Json json = {
      {"requests", tally.requests}, {"admitted", tally.admitted}, {"denied", tally.denied}};
  for (const Source source : kSources) {
    json["by_" + std::string(NameOf(source))] = tally.By(source);
  }
  return json;
}

Json ToJson(const Panels& panels) {
  Json list = Json::array();
  for (const Plot& plot : panels.plots) {
    Json series = Json::object();
    for (const Series& it : plot.series) series[it.name] = it.values;
    Json lines = Json::array();
    for (const Plot::Line& it : plot.lines) lines.push_back({{"label", it.label}, {"y", it.y}});
    list.push_back({{"title", plot.title}, {"x", plot.x}, {"series", series}, {"lines", lines}});
  }
  return list;
}

}  // namespace

Report FleetReport(const Scenario& scenario, const Outcome& outcome, const ReportContext& context) {
  const Record& record = outcome.record;
  const Measures& measures = outcome.measures;
  const double requests = std::max(1.0, Number(measures.all.requests));
  Report report{.title = scenario.name, .subtitle = scenario.description};
  const bool is_clean = outcome.is_clean();
  report.facts = {
      {"verdict", is_clean ? "all invariants held" : "BROKEN", is_clean ? Tone::kGood : Tone::kBad},
      {"seed", std::to_string(record.seed)},
      {"store", StoreText(record)},
      {"nodes", std::to_string(record.nodes)},
      {"requests", WriteValue(Number(measures.all.requests), Unit::kCount)},
      {"admitted", WriteValue(Number(measures.all.admitted) / requests, Unit::kPercent)},
      {"denied", WriteValue(Number(measures.all.denied) / requests, Unit::kPercent)},
      {"simulated", WriteValue(SecondsIn(record.ended), Unit::kSeconds)},
      {"run", Hex(record.fingerprint)},
      {"build", context.build}};
  if (record.is_shared()) {
    report.facts.push_back({"degraded", WriteValue(SecondsIn(measures.degraded), Unit::kSeconds)});
    report.facts.push_back(
        {"slowest answer", WriteValue(SecondsIn(measures.most_latency), Unit::kSeconds)});
  }
  if (measures.all.By(Source::kOpen) > 0) {
    report.warnings.push_back(
        Plural(static_cast<std::int64_t>(measures.all.By(Source::kOpen)), "request") +
        " decided by open: let through without a limit, as the policy says");
  }
  if (measures.lost + measures.unreached > 0) {
    report.warnings.push_back(
        Plural(static_cast<std::int64_t>(measures.lost + measures.unreached), "request") +
        " got no decision, because the node was down");
  }
  AddBreaches(outcome, report);
  report.sections.emplace_back(InvariantTable(outcome.verdict));
  Panels picture = FleetPicture(scenario, outcome);
  picture.title = "What happened";
  picture.note.clear();
  report.sections.emplace_back(std::move(picture));
  report.sections.emplace_back(RuleTable(record, measures));
  report.sections.emplace_back(NodeTable(record, measures));
  report.sections.emplace_back(ClientTable(scenario, measures));
  if (!record.faults.empty()) report.sections.emplace_back(FaultTable(record));
  report.sections.emplace_back(
      Listing{.title = "The same again", .text = context.command, .language = "sh"});
  return report;
}

Report CampaignReport(const Scenario& scenario, const CampaignResult& result,
                      std::uint64_t first_seed, const std::string& build) {
  const bool is_clean = result.broken.empty();
  Report report{.title = scenario.name, .subtitle = scenario.description};
  report.facts = {
      {"verdict",
       is_clean ? "all invariants held"
                : "BROKEN under " + Plural(static_cast<std::int64_t>(result.broken.size()), "seed"),
       is_clean ? Tone::kGood : Tone::kBad},
      {"seeds", std::to_string(first_seed) + " to " + std::to_string(first_seed + result.runs - 1)},
      {"clean", std::to_string(result.clean) + " of " + std::to_string(result.runs)},
      {"requests", WriteValue(Number(result.requests), Unit::kCount)},
      {"simulated", WriteValue(SecondsIn(result.simulated), Unit::kSeconds)},
      {"build", build}};
  report.sections.emplace_back(InvariantTable(result.verdict));
  return report;
}

namespace {

Json ToJson(const Scenario& scenario, const Outcome& outcome, const ReportContext& context) {
  const Record& record = outcome.record;
  const Measures& measures = outcome.measures;
  Json json = {{"scenario", scenario.name},
               {"file", scenario.file},
               {"seed", record.seed},
               {"build", context.build},
               {"command", context.command},
               {"fingerprint", Hex(record.fingerprint)},
               {"clean", outcome.is_clean()},
               {"layout", NameOf(record.layout)},
               {"nodes", record.nodes},
               {"servers", record.servers},
               {"simulated_seconds", SecondsIn(record.ended)},
               {"invariants", ToJson(outcome.verdict)},
               {"unmet_expectations", outcome.unmet},
               {"all", ToJson(measures.all)},
               {"lost", measures.lost},
               {"unreached", measures.unreached},
               {"degraded_seconds", SecondsIn(measures.degraded)},
               {"latency_seconds",
                {{"median", SecondsIn(measures.median_latency)},
                 {"p99", SecondsIn(measures.p99_latency)},
                 {"most", SecondsIn(measures.most_latency)}}}};
  Json rules = Json::array();
  for (std::size_t i = 0; i < record.rules.size(); ++i) {
    rules.push_back({{"rule", record.rules[i]},
                     {"allowed", measures.by_rule[i].allowed},
                     {"denied", measures.by_rule[i].denied},
                     {"shadow_denied", measures.by_rule[i].shadow_denied}});
  }
  json["rules"] = std::move(rules);
  json["by_node"] = Json::array();
  for (std::size_t i = 0; i < measures.by_node.size(); ++i) {
    Json node = ToJson(measures.by_node[i]);
    node["degraded_seconds"] = SecondsIn(record.node_notes[i].degraded);
    json["by_node"].push_back(std::move(node));
  }
  json["by_clients"] = Json::object();
  for (std::size_t i = 0; i < scenario.clients.size(); ++i) {
    json["by_clients"][scenario.clients[i].name] = ToJson(measures.by_client_group[i]);
  }
  json["faults"] = Json::array();
  for (const FaultNote& fault : record.faults) {
    json["faults"].push_back({{"what", fault.name},
                              {"whom", WhomText(fault)},
                              {"from_seconds", SecondsIn(fault.begins)},
                              {"to_seconds", SecondsIn(fault.ends)}});
  }
  json["notices"] = record.notices;
  json["plots"] = ToJson(FleetPicture(scenario, outcome));
  return json;
}

Json ToJson(const Scenario& scenario, const CampaignResult& result, std::uint64_t first_seed,
            const std::string& build) {
  Json broken = Json::array();
  for (const BrokenSeed& it : result.broken) {
    broken.push_back({{"seed", it.seed}, {"what", it.what}});
  }
  return {{"scenario", scenario.name},
          {"file", scenario.file},
          {"build", build},
          {"first_seed", first_seed},
          {"seeds", result.runs},
          {"clean", result.clean},
          {"requests", result.requests},
          {"simulated_seconds", SecondsIn(result.simulated)},
          {"invariants", ToJson(result.verdict)},
          {"broken", broken}};
}

}  // namespace

struct JsonReports::List {
  Json all = Json::array();
};

JsonReports::JsonReports() : list_(std::make_unique<List>()) {}

JsonReports::~JsonReports() = default;

void JsonReports::Add(const Scenario& scenario, const Outcome& outcome,
                      const ReportContext& context) {
  list_->all.push_back(ToJson(scenario, outcome, context));
}

void JsonReports::Add(const Scenario& scenario, const CampaignResult& result,
                      std::uint64_t first_seed, const std::string& build) {
  list_->all.push_back(ToJson(scenario, result, first_seed, build));
}

std::string JsonReports::Text() const {
  return list_->all.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::lab
