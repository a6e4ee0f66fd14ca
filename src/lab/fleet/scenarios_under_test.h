// Scenarios from their text, for tests of what runs them.
#pragma once

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lab/fleet/scenario_reader.h"

namespace weir::lab {

// Requires a text that is right: any problem fails the test.
inline Scenario ScenarioOf(const std::string& text) {
  ScenarioReport report = ReadScenario(text, "s.yaml", ".");
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  return std::move(report.scenario).value();
}

}  // namespace weir::lab
