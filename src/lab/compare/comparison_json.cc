// A comparison for scripts.
#include <cmath>

#include <nlohmann/json.hpp>

#include "lab/compare/comparison.h"
#include "lab/seconds.h"

namespace weir::lab {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const Stretch& stretch) {
  return {
      {"cost", stretch.cost}, {"from_s", SecondsIn(stretch.from)}, {"to_s", SecondsIn(stretch.to)}};
}

Json JsonOf(const Rival& rival) {
  const Trial& trial = rival.trial;
  const LimitSpec& spec = rival.contender.limit.spec();
  Json json = {{"name", rival.contender.name}, {"algorithm", NameOf(spec.algorithm)}};
  if (spec.queue) json["queue"] = true;
  if (spec.strict) json["strict"] = true;
  json["admitted"] = trial.admitted;
  json["denied"] = trial.denied;
  json["never_fits"] = trial.never_fits;
  json["admitted_cost"] = trial.admitted_cost;
  json["worst_window"] = JsonOf(trial.worst_window);
  json["worst_window"]["of_limit"] = trial.factor;
  json["promise"] = {{"in_window", trial.promise.in_window},
                     {"is", trial.promise.in_words},
                     {"kept", trial.is_kept}};
  json["worst_burst"] = JsonOf(trial.worst_burst.stretch);
  json["worst_burst"]["above_rate"] = trial.worst_burst.above_rate;
  json["error"] = nullptr;
  if (trial.error) {
    json["error"] = {{"typical", trial.error->typical},
                     {"worst", trial.error->worst()},
                     {"too_low", trial.error->too_low},
                     {"too_high", trial.error->too_high}};
  }
  json["otherwise_than_exact"] = nullptr;
  if (trial.otherwise) {
    json["otherwise_than_exact"] = {{"allowed", trial.otherwise->allowed},
                                    {"denied", trial.otherwise->denied}};
  }
  json["lock_out_s"] = SecondsIn(trial.lock_out);
  json["mean_delay_s"] = SecondsIn(trial.mean_delay);
  json["max_delay_s"] = SecondsIn(trial.max_delay);
  json["bytes_per_key"] = std::round(rival.bytes_per_key * 10) / 10;
  return json;
}

}  // namespace

std::string JsonOf(const Comparison& comparison) {
  const Traffic& traffic = comparison.traffic;
  const Limit& limit = comparison.limit;
  Json json = {{"limit",
                {{"text", limit.ToString()},
                 {"count", limit.spec().count},
                 {"period_s", SecondsIn(limit.spec().period)},
                 {"burst", limit.capacity()}}}};
  json["traffic"] = {{"name", traffic.name},
                     {"description", traffic.description},
                     {"start_s", SecondsIn(traffic.start.time_since_epoch())},
                     {"length_s", SecondsIn(traffic.length)},
                     {"requests", comparison.requests},
                     {"cost", comparison.cost},
                     {"warnings", traffic.warnings}};
  json["algorithms"] = Json::array();
  for (const Rival& rival : comparison.rivals) json["algorithms"].push_back(JsonOf(rival));
  json["left_out"] = Json::array();
  for (const LeftOut& one : comparison.left_out) {
    json["left_out"].push_back({{"name", one.name}, {"why", one.why}});
  }
  // Names of files may be any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir::lab
