#include <nlohmann/json.hpp>

#include "lab/calibrate/calibrate_report.h"
#include "lab/calibrate/policy_text.h"
#include "lab/log/log_account.h"

namespace weir::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string Iso(WallTime time) {
  std::string text = TextOfTime(time) + "Z";
  text[10] = 'T';
  return text;
}

std::string NameOf(std::size_t period) { return std::string(kAllPeriods[period].in_json); }

Json ToJson(const LogCounts& log) {
  Json examples = Json::array();
  for (const LogCounts::Example& example : log.examples) {
    examples.push_back({{"line", example.line}, {"why", example.why}, {"text", example.text}});
  }
  return {{"file", log.file},         {"format", log.format}, {"lines", log.lines},
          {"requests", log.requests}, {"blank", log.blank},   {"unparsed", log.unparsed},
          {"too_long", log.too_long}, {"late", log.late},     {"cut_short", log.cut_short},
          {"examples", examples}};
}

Json ToJson(const Behaviour& of) {
  return {{"period", NameOf(of.period)},
          {"p50", of.normal.p50},
          {"p90", of.normal.p90},
          {"p99", of.normal.p99},
          {"p99.9", of.normal.p999},
          {"max", of.normal.largest},
          {"at_quantile", of.at_quantile},
          {"quantile_is_max", of.is_largest},
          {"seen_twice", of.twice},
          {"limit", of.limit},
          {"max_of_all", of.largest_of_all},
          {"limit_for_all", of.limit_with_everybody},
          {"rule", of.in_policy},
          {"why_no_rule", of.why_not}};
}

Json ToJson(const Denials& of) {
  return {{"requests", of.normal_requests},
          {"clients", of.normal_clients},
          {"requests_set_apart", of.abuser_requests},
          {"clients_set_apart", of.abusers}};
}

Json ToJson(const ProposedRule& of) {
  return {{"name", of.name},
          {"limit", of.limit()},
          {"algorithm", of.fixed_window ? "fixed_window" : "token_bucket"},
          {"period", NameOf(of.period)},
          {"count", of.count},
          {"burst", of.burst == 0 ? of.count : of.burst},
          {"peak_at_quantile", of.peak_at_quantile},
          {"burst_at_quantile", of.burst_at_quantile},
          {"why", of.why},
          {"would_have_denied", ToJson(of.denials)}};
}

Json ToJson(const Abuser& of, const Calibration& calibration) {
  Json peaks = Json::object();
  for (const Behaviour& row : calibration.behaviour) {
    peaks[NameOf(row.period)] = of.peaks[row.period];
  }
  return {{"client", of.name},
          {"requests", of.requests},
          {"share", of.share},
          {"denied", of.denied},
          {"peaks", peaks},
          {"first", Iso(of.first)},
          {"last", Iso(of.last)},
          {"file", calibration.logs[of.first_file].file},
          {"line", of.first_line},
          {"why", {{"period", NameOf(of.why)}, {"times_the_most_of_others", of.times}}}};
}

template <typename Things>
Json ListOf(const Things& things) {
  Json list = Json::array();
  for (const auto& thing : things) list.push_back(ToJson(thing));
  return list;
}

}  // namespace

std::string JsonOf(const Calibration& of) {
  Json abusers = Json::array();
  for (const Abuser& abuser : of.abusers) abusers.push_back(ToJson(abuser, of));
  Json curves = Json::object();
  for (const PeakCurve& curve : of.curves) curves[NameOf(curve.period)] = curve.share;
  const Json json = {
      {"key", of.key},
      {"quantile", 100 * of.settings.quantile},
      {"margin", of.settings.margin},
      {"partial", of.is_partial()},
      {"warnings", WarningsOf(of)},
      {"caveats", CaveatsOf(of)},
      {"logs", ListOf(of.logs)},
      {"requests", of.requests},
      {"without_key", of.without_key},
      {"left_out", AccountOf(of.logs, of.settings.horizon).left_out},
      {"first", Iso(of.first)},
      {"last", Iso(of.last)},
      {"busiest_second", of.busiest_second},
      {"clients", of.clients},
      {"behaviour", ListOf(of.behaviour)},
      {"set_apart",
       {{"clients", of.abuser_count}, {"requests", of.abuser_requests}, {"named", abusers}}},
      {"rules", ListOf(of.rules)},
      {"would_have_denied", ToJson(of.denials)},
      {"distribution", {{"at_least", of.curve_x}, {"share_of_clients", curves}}},
      {"timeline",
       {{"from", Iso(of.timeline.from)},
        {"step_seconds", std::chrono::duration<double>(of.timeline.step).count()},
        {"requests", of.timeline.normal},
        {"set_apart", of.timeline.abusers},
        {"denied", of.timeline.denied}}},
      {"memory_bytes", of.memory_bytes},
      {"policy", of.policy}};
  // Names of files may be any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir::lab
