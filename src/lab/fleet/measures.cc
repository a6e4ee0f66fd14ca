#include "lab/fleet/measures.h"

#include <algorithm>

#include "lab/report.h"

namespace weir::lab {
namespace {

Duration Quantile(std::vector<Duration>& times, double part) {
  if (times.empty()) return Duration(0);
  const auto at = static_cast<std::size_t>(part * static_cast<double>(times.size() - 1));
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(at));
  return times[at];
}

std::size_t PlaceOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

void Tally::Add(const Asked& asked) {
  ++requests;
  ++(asked.allowed ? admitted : denied);
  ++by_source[asked.source];
}

std::uint64_t Tally::By(Source source) const {
  const auto found = by_source.find(source);
  return found == by_source.end() ? 0 : found->second;
}

Measures MeasuresOf(const Scenario& scenario, const Record& record) {
  Measures measures;
  measures.unreached = record.unreached;
  measures.by_node.resize(static_cast<std::size_t>(record.nodes));
  measures.by_client_group.resize(scenario.clients.size());
  measures.by_rule.resize(record.rules.size());
  std::vector<std::string> groups;
  groups.reserve(scenario.clients.size());
  for (const ClientSpec& client : scenario.clients) groups.push_back(client.name);
  std::vector<std::size_t> group_of;
  group_of.reserve(record.clients.size());
  for (const ClientNote& client : record.clients) group_of.push_back(PlaceOf(groups, client.group));
  std::vector<std::size_t> rule_of;
  rule_of.reserve(record.tracks.size());
  for (const Track& track : record.tracks) rule_of.push_back(PlaceOf(record.rules, track.rule));
  std::vector<Duration> times;
  for (const Asked& asked : record.asked) {
    if (asked.answers == 0) {
      ++measures.lost;
      continue;
    }
    measures.all.Add(asked);
    measures.by_node[static_cast<std::size_t>(asked.node)].Add(asked);
    measures.by_client_group[group_of[static_cast<std::size_t>(asked.client)]].Add(asked);
    times.push_back(asked.answered - asked.at);
    for (const Use& use : asked.uses) {
      Measures::RuleTally& rule = measures.by_rule[rule_of[static_cast<std::size_t>(use.track)]];
      ++(use.allowed ? rule.allowed : use.is_shadow ? rule.shadow_denied : rule.denied);
    }
  }
  measures.median_latency = Quantile(times, 0.5);
  measures.p99_latency = Quantile(times, 0.99);
  measures.most_latency = Quantile(times, 1);
  for (const NodeNote& node : record.node_notes) {
    measures.degraded = std::max(measures.degraded, node.degraded);
  }
  return measures;
}

double Measures::ValueOf(Measure measure, bool is_share) const {
  const auto part = [&](std::uint64_t count) {
    const auto value = static_cast<double>(count);
    return is_share ? value / static_cast<double>(std::max<std::uint64_t>(all.requests, 1)) : value;
  };
  switch (measure) {
    case Measure::kRequests:
      return part(all.requests);
    case Measure::kAdmitted:
      return part(all.admitted);
    case Measure::kDenied:
      return part(all.denied);
    case Measure::kByStore:
      return part(all.By(Source::kStore));
    case Measure::kByFallback:
      return part(all.By(Source::kFallback));
    case Measure::kByOpen:
      return part(all.By(Source::kOpen));
    case Measure::kByClosed:
      return part(all.By(Source::kClosed));
    case Measure::kDegraded:
      return std::chrono::duration<double>(degraded).count();
    case Measure::kLatency:
      return std::chrono::duration<double>(most_latency).count();
  }
  return 0;
}

std::vector<std::string> UnmetExpectations(const Scenario& scenario, const Measures& measures) {
  std::vector<std::string> unmet;
  for (const Expectation& it : scenario.expect) {
    const double value = measures.ValueOf(it.measure, it.is_share);
    if (it.is_at_most ? value <= it.value : value >= it.value) continue;
    const bool is_time = it.measure == Measure::kDegraded || it.measure == Measure::kLatency;
    const Unit unit = is_time ? Unit::kSeconds : it.is_share ? Unit::kPercent : Unit::kCount;
    unmet.push_back(std::string(NameOf(it.measure)) + ": " + it.text + " is expected, and it was " +
                    WriteValue(value, unit));
  }
  return unmet;
}

}  // namespace weir::lab
