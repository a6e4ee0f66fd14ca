// What is shown of a run, and of many.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

// The reports of several runs or campaigns as one JSON list, for programs. Not thread-safe.
class JsonReports {
 public:
  JsonReports();
  JsonReports(const JsonReports&) = delete;
  JsonReports& operator=(const JsonReports&) = delete;
  ~JsonReports();

  void Add(const Scenario& scenario, const Outcome& outcome, const ReportContext& context);
  void Add(const Scenario& scenario, const CampaignResult& result, std::uint64_t first_seed,
           const std::string& build);

  // Returns the list, indented. Bytes that are not UTF-8 are replaced.
  std::string Text() const;

 private:
  struct List;
  const std::unique_ptr<List> list_;  // Hides the JSON library from callers.
};

}  // namespace weir::lab
