// What is shown of a run, and of many.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "lab/fleet/campaign.h"
#include "lab/fleet/scenario.h"
#include "lab/report.h"

namespace weir::lab {

struct ReportContext {
  std::string command;  // That shows the same again.
  std::string build;    // weir 1.2.3
};

Report FleetReport(const Scenario& scenario, const Outcome& outcome, const ReportContext& context);
// What happened over time, one plot below the other.
Panels FleetPicture(const Scenario& scenario, const Outcome& outcome);
Report CampaignReport(const Scenario& scenario, const CampaignResult& result,
                      std::uint64_t first_seed, const std::string& build);

nlohmann::ordered_json ToJson(const Scenario& scenario, const Outcome& outcome,
                              const ReportContext& context);
nlohmann::ordered_json ToJson(const Scenario& scenario, const CampaignResult& result,
                              std::uint64_t first_seed, const std::string& build);

}  // namespace weir::lab
