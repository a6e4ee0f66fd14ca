// What we ship as scenarios: one for each store and each fault, shown in the documents.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/fleet/scenario_reader.h"
#include "sim/deployment.h"

namespace weir::lab {
namespace {

using std::filesystem::path;
using testing::HasSubstr;

const path kRoot = WEIR_SOURCE_DIR;

std::vector<path> Files() {
  std::vector<path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "examples/scenarios")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Scenario Load(const path& file) {
  ScenarioReport report = LoadScenario(file.string());
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  return report.scenario.value_or(Scenario{});
}

TEST(ShippedScenarios, HaveEveryStoreAndEveryFaultByName) {
  std::set<StoreLayout> layouts;
  std::set<std::string> faults;
  for (const path& file : Files()) {
    const Scenario scenario = Load(file);
    layouts.insert(scenario.store.layout);
    for (const FaultSpec& fault : scenario.faults) faults.insert(fault.what);
  }
  for (const StoreLayout layout :
       {StoreLayout::kMemory, StoreLayout::kRedis, StoreLayout::kShards, StoreLayout::kCluster,
        StoreLayout::kSentinel, StoreLayout::kAny}) {
    EXPECT_TRUE(layouts.contains(layout)) << NameOf(layout);
  }
  for (const sim::FaultTraits& traits : sim::AllFaults()) {
    EXPECT_TRUE(faults.contains(std::string(traits.name))) << traits.name;
  }
  for (const NodeFault fault : {NodeFault::kPause, NodeFault::kRestart, NodeFault::kClockBack,
                                NodeFault::kClockAhead, NodeFault::kReload}) {
    EXPECT_TRUE(faults.contains(std::string(NameOf(fault)))) << NameOf(fault);
  }
}

TEST(ShippedScenarios, AreDescribedAndShown) {
  std::ifstream document(kRoot / "docs/simulating.md");
  std::stringstream text;
  text << document.rdbuf();
  for (const path& file : Files()) {
    const std::string name = file.stem().string();
    EXPECT_FALSE(Load(file).description.empty()) << name;
    EXPECT_TRUE(exists(kRoot / "docs/img" / ("simulate-" + name + ".svg"))) << name;
    EXPECT_THAT(text.str(), HasSubstr("(../examples/scenarios/" + name + ".yaml)"));
    EXPECT_THAT(text.str(), HasSubstr("(img/simulate-" + name + ".svg)"));
  }
}

}  // namespace
}  // namespace weir::lab
