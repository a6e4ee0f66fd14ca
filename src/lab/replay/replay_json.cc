#include <nlohmann/json.hpp>

#include "lab/replay/replay_report.h"
#include "lab/seconds.h"

namespace weir::lab {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const std::vector<TalliedKey>& keys, const std::vector<RuleOutcome>& rules,
            bool with_requests) {
  Json list = Json::array();
  for (const TalliedKey& key : keys) {
    Json one = {{"key", key.key},
                {"rule", key.rule < rules.size() ? rules[key.rule].name : ""},
                {with_requests ? "denied" : "requests", key.denied}};
    if (with_requests) one["requests"] = key.requests;
    // Then it is those whom it would have denied.
    if (with_requests) one["shadow"] = key.rule < rules.size() && rules[key.rule].is_shadow;
    list.push_back(std::move(one));
  }
  return list;
}

Json JsonOf(const PolicyOutcome& outcome) {
  Json rules = Json::array();
  for (const RuleOutcome& rule : outcome.rules) {
    const bool denies = rule.denied + rule.shadow_denied > 0;
    rules.push_back(
        {{"rule", rule.name},
         {"shadow", rule.is_shadow},
         {"allowed", rule.allowed},
         {"denied", rule.denied},
         {"shadow_denied", rule.shadow_denied},
         {"keys_denied", rule.keys_denied},
         {"first_denied", denies ? Json(SecondsSinceEpoch(rule.first_denied)) : Json()},
         {"last_denied", denies ? Json(SecondsSinceEpoch(rule.last_denied)) : Json()},
         {"delayed", rule.delayed},
         {"longest_delay_ms", RoundUpTo<std::chrono::milliseconds>(rule.longest_delay)}});
  }
  return {{"requests", outcome.requests},
          {"denied", outcome.denied},
          {"denied_share", outcome.denied_share()},
          {"addresses_denied", outcome.addresses_denied},
          {"no_rule", outcome.no_rule},
          {"allow_list", outcome.allow_list},
          {"deny_list", outcome.deny_list},
          {"keys", outcome.keys},
          {"forgotten_keys", outcome.forgotten_keys},
          {"rules", std::move(rules)},
          {"top", JsonOf(outcome.offenders, outcome.rules, true)}};
}

Json JsonOf(const ReplayChange& change, const std::vector<RuleOutcome>& rules) {
  Json by_rule = Json::array();
  for (const ReplayChange::ByRule& each : change.rules) {
    by_rule.push_back(
        {{"rule", each.rule.empty() ? Json() : Json(each.rule)}, {"requests", each.requests}});
  }
  return {{"requests", change.requests},
          {"rules", std::move(by_rule)},
          {"top", JsonOf(change.keys, rules, false)}};
}

Json JsonOf(const LogCounts& of) {
  Json examples = Json::array();
  for (const LogCounts::Example& example : of.examples) {
    examples.push_back({{"line", example.line}, {"why", example.why}, {"text", example.text}});
  }
  return {{"file", of.file},
          {"format", of.format},
          {"lines", of.lines},
          {"requests", of.requests},
          {"blank", of.blank},
          {"unparsed", of.unparsed},
          {"too_long", of.too_long},
          {"late", of.late},
          {"cut_short", of.cut_short.empty() ? Json() : Json(of.cut_short)},
          {"whole_seconds", of.whole_seconds},
          {"examples", std::move(examples)}};
}

Json TimesOf(const TimeBins& bins, const std::vector<std::string>& names) {
  Json times = Json::array();
  Json series = Json::object();
  for (std::size_t bin = 0; bin < bins.size(); ++bin)
    times.push_back(SecondsSinceEpoch(bins.BeginOf(bin)));
  for (std::size_t i = 0; i < names.size(); ++i) {
    Json values = Json::array();
    for (std::size_t bin = 0; bin < bins.size(); ++bin) values.push_back(bins.Count(bin, i));
    series[names[i]] = std::move(values);
  }
  return {{"width", std::chrono::duration<double>(bins.width()).count()},
          {"begins", std::move(times)},
          {"counts", std::move(series)}};
}

}  // namespace

std::string JsonOf(const ReplayResult& result, const ReplayShown& shown) {
  const LogAccount account = AccountOf(result.counts, shown.horizon);
  Json warnings = Json::array();
  for (const std::string& text : ReportOf(result, shown).warnings) warnings.push_back(text);
  Json logs = Json::array();
  for (const LogCounts& of : result.counts) logs.push_back(JsonOf(of));
  std::vector<std::string> series = {"requests"};
  for (const RuleOutcome& rule : result.outcome.rules) series.push_back("denied:" + rule.name);
  series.emplace_back("denied:");
  Json json = {{"policy", shown.policy},
               {"partial", account.is_cut_short},
               {"warnings", std::move(warnings)},
               {"lines", account.lines},
               {"left_out", account.left_out},
               {"left_out_share", account.left_out_share},
               {"first", SecondsSinceEpoch(result.first)},
               {"last", SecondsSinceEpoch(result.last)},
               {"spread", shown.spread}};
  json.update(JsonOf(result.outcome));
  json["over_time"] = TimesOf(result.bins, series);
  if (result.against) {
    Json against = {{"policy", shown.against}};
    against.update(JsonOf(*result.against));
    against["newly_denied"] = JsonOf(result.newly_denied, result.against->rules);
    against["newly_allowed"] = JsonOf(result.newly_allowed, result.outcome.rules);
    against["over_time"] = TimesOf(result.change_bins, {"newly_denied", "newly_allowed"});
    json["against"] = std::move(against);
  }
  json["logs"] = std::move(logs);
  // Names of files may be any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir::lab
