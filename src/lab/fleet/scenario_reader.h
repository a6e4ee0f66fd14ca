// A scenario from a file: all problems at once, each with its line, as a policy has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/policy.h>

#include "lab/fleet/scenario.h"

namespace weir::lab {

struct ScenarioReport {
  std::optional<Scenario> scenario{};  // Only if there is no problem.
  std::vector<Problem> problems{};
};

ScenarioReport LoadScenario(const std::string& path);
// Files that it names are looked for in `folder`.
ScenarioReport ReadScenario(std::string_view text, const std::string& file,
                            const std::string& folder);

// The most nodes, clients and requests of one run.
inline constexpr int kMostNodes = 100;
inline constexpr int kMostClients = 10'000;
inline constexpr double kMostRequests = 2'000'000;
inline constexpr int kMostFaults = 1'000;
inline constexpr Duration kLongestRun = std::chrono::hours(1);

}  // namespace weir::lab
