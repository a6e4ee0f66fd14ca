// threads
#include "lab/fleet/campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/fleet/scenarios_under_test.h"

namespace weir::lab {
namespace {

using testing::HasSubstr;

TEST(Campaign, ComesToTheSameOnAnyNumberOfThreads) {
  const Scenario scenario = ScenarioOf(
      "policy: any\nduration: 3s\nstore: { layout: any }\nclients: [{ count: 3, rate: 10/s }]\n"
      "faults: [{ random: 1 }]\n");
  const CampaignResult one = RunCampaign(scenario, {.seed = 3, .seeds = 8, .threads = 1});
  const CampaignResult three = RunCampaign(scenario, {.seed = 3, .seeds = 8, .threads = 3});
  EXPECT_EQ(one.runs, 8U);
  EXPECT_EQ(one.requests, three.requests);
  EXPECT_EQ(one.events, three.events);
  for (std::size_t i = 0; i < kInvariants; ++i) {
    EXPECT_EQ(one.verdict.findings[i].checked, three.verdict.findings[i].checked) << i;
  }
}

TEST(Campaign, GoesOnAfterASeedThatIsNotCleanAndTellsOfAll) {
  const Scenario scenario = ScenarioOf(
      "policy: any\nduration: 1s\nclients: [{ rate: 10/s }]\nexpect: { requests: at least 1k }\n");
  const CampaignResult all = RunCampaign(scenario, {.seed = 5, .seeds = 6, .threads = 2});
  EXPECT_EQ(all.runs, 6U);
  EXPECT_EQ(all.clean, 0U);
  ASSERT_EQ(all.broken.size(), 6U);
  EXPECT_EQ(all.broken.front().seed, 5U);
  EXPECT_EQ(all.broken.back().seed, 10U);
  EXPECT_THAT(all.broken[0].what[0], HasSubstr("requests: at least 1k is expected"));
  // Unless it is told to.
  const CampaignResult first =
      RunCampaign(scenario, {.seeds = 6, .threads = 1, .stops_at_first = true});
  EXPECT_EQ(first.runs, 1U);
}

}  // namespace
}  // namespace weir::lab
