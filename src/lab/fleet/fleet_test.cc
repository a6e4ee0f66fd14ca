#include "lab/fleet/fleet.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/fleet/campaign.h"
#include "lab/fleet/fleet_report.h"
#include "lab/fleet/scenario_reader.h"

namespace weir::lab {
namespace {

using testing::HasSubstr;

Scenario Read(const std::string& text) {
  ScenarioReport report = ReadScenario(text, "s.yaml", ".");
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  return std::move(report.scenario).value();
}

// One user who asks for twice the limit, and whatever else is said.
Scenario With(const std::string& more) {
  return Read(
      "duration: 6s\npolicy: { rules: [{ name: r, key: user, limit: 10/s burst 10 }] }\n"
      "clients: [{ name: eager, rate: 20/s, arrivals: steady, user: eager }]\n" +
      more);
}

class FleetTest : public testing::Test {
 protected:
  Outcome Run(const Scenario& scenario, std::uint64_t seed = 1) {
    Outcome outcome = RunSeed(scenario, seed, lua_);
    for (const Finding& finding : outcome.verdict.findings) {
      for (const std::string& example : finding.examples) ADD_FAILURE() << finding.name << example;
    }
    return outcome;
  }

  sim::LuaEngine lua_;
};

TEST_F(FleetTest, RunsTheSameForTheSameSeedInEveryLayout) {
  for (const char* const layout : {"memory", "redis", "shards", "cluster", "sentinel"}) {
    const Scenario scenario =
        Read(std::string("policy: any\nduration: 4s\nstore: { layout: ") + layout +
             " }\nclients: [{ count: 3, rate: 10/s, hold: 10ms..90ms }]\n"
             "faults: [{ random: 2 }]\n");
    const Record first = Run(scenario, 7).record;
    sim::LuaEngine another;
    const Record again = RunSeed(scenario, 7, another).record;
    EXPECT_EQ(first.fingerprint, again.fingerprint) << layout;
    EXPECT_EQ(first.asked.size(), again.asked.size());
    EXPECT_NE(first.fingerprint, Run(scenario, 8).record.fingerprint) << layout;
  }
}

TEST_F(FleetTest, SharesALimitThroughTheStore) {
  const Outcome outcome = Run(With("nodes: { count: 4 }\n"));
  EXPECT_NEAR(static_cast<double>(outcome.measures.all.admitted), 70, 2);
  EXPECT_EQ(outcome.measures.all.By(Source::kStore), outcome.measures.all.requests);
}

TEST_F(FleetTest, LimitsEveryNodeByItselfInMemory) {
  const Outcome outcome = Run(With("nodes: { count: 4 }\nstore: { layout: memory }\n"));
  EXPECT_EQ(outcome.measures.all.By(Source::kMemory), outcome.measures.all.requests);
  EXPECT_EQ(outcome.measures.all.denied, 0U);
}

TEST_F(FleetTest, DecidesByShareOpenOrClosedWhileTheStoreIsGone) {
  struct Case {
    const char* mode;
    Source source;
  };
  for (const Case& it : {Case{"static", Source::kFallback}, Case{"open", Source::kOpen},
                         Case{"closed", Source::kClosed}}) {
    const Outcome outcome = Run(Read(
        "duration: 9s\npolicy: { rules: [{ name: r, key: user, limit: 10/s, on_store_failure: " +
        std::string(it.mode) +
        " }] }\nclients: [{ rate: 20/s }]\nfaults: [{ at: 2s, for: 2s, what: restart empty }]\n"));
    EXPECT_GT(outcome.measures.all.By(it.source), 30U) << it.mode;
    EXPECT_GT(outcome.measures.degraded, std::chrono::seconds(2));
    EXPECT_EQ(outcome.record.faults.size(), 1U);
    EXPECT_EQ(outcome.record.healed, std::chrono::seconds(4));
  }
}

TEST_F(FleetTest, PutsAnotherPolicyInForceOnEveryNode) {
  const Outcome outcome = Run(With(
      "faults:\n  - at: 3s\n    what: policy reload\n    policy: { rules: [{ name: r, key: user, "
      "limit: 5/s burst 5 }, { name: more, key: user, limit: 100/s }] }\n"));
  EXPECT_THAT(outcome.record.rules, testing::ElementsAre("r", "more"));
  std::uint64_t second = 0;
  for (const Asked& asked : outcome.record.asked) {
    second += asked.version == 1 ? 1U : 0U;
    EXPECT_EQ(asked.uses.size(), asked.version == 1 ? 2U : 1U);
  }
  EXPECT_GT(second, 50U);
  EXPECT_EQ(outcome.record.limits.size(), 3U);
}

TEST_F(FleetTest, SendsClientsElsewhereWhileANodeIsDown) {
  const std::string faults = "faults: [{ at: 2s, for: 1s, what: node restart, node: 1 }]\n";
  const Outcome two = Run(With("nodes: { count: 2 }\n" + faults));
  EXPECT_EQ(two.measures.unreached, 0U);
  for (const Asked& asked : two.record.asked) {
    const bool is_down = asked.at > std::chrono::seconds(2) && asked.at < std::chrono::seconds(3);
    EXPECT_TRUE(!is_down || asked.node == 1);
  }
  const Outcome one = Run(With("nodes: { count: 1 }\n" + faults));
  EXPECT_NEAR(static_cast<double>(one.measures.unreached), 20, 2);
}

TEST_F(FleetTest, AnswersWhenANodeThatStoodStillGoesOn) {
  const Outcome outcome =
      Run(With("nodes: { count: 1 }\nfaults: [{ at: 2s, for: 1s, what: node pause }]\n"));
  const auto late = std::ranges::count_if(
      outcome.record.asked, [](const Asked& asked) { return asked.at == std::chrono::seconds(3); });
  EXPECT_NEAR(static_cast<double>(late), 20, 1);
}

TEST_F(FleetTest, SaysWhatIsNotAsExpected) {
  const Outcome outcome = Run(With("expect: { denied: at most 1%, requests: at least 1k }\n"));
  ASSERT_EQ(outcome.unmet.size(), 2U);
  EXPECT_THAT(outcome.unmet[0], HasSubstr("denied: at most 1% is expected, and it was 4"));
  EXPECT_FALSE(outcome.is_clean());
}

TEST_F(FleetTest, ShowsTheSameForTheSameRun) {
  const Scenario scenario = With("faults: [{ at: 1s, for: 1s, what: pause }]\n");
  const Outcome outcome = Run(scenario);
  const ReportContext context{.command = "weir simulate s.yaml --seed 1", .build = "weir 1"};
  const std::string text = ReportText(FleetReport(scenario, outcome, context));
  EXPECT_THAT(text, HasSubstr("weir simulate s.yaml --seed 1"));
  EXPECT_THAT(text, HasSubstr("every request answered once"));
  EXPECT_EQ(text, ReportText(FleetReport(scenario, Run(scenario), context)));
  const Panels picture = FleetPicture(scenario, outcome);
  ASSERT_EQ(picture.plots.size(), 4U);
  for (const Plot& plot : picture.plots) {
    ASSERT_EQ(plot.bands.size(), 1U);
    EXPECT_EQ(plot.bands[0].label, "pause");
    for (const Series& series : plot.series) EXPECT_EQ(series.values.size(), plot.x.size());
  }
  // Never above what the limit promises in a second.
  const Plot& busiest = picture.plots[2];
  EXPECT_EQ(busiest.lines[0].y, 20);
}

}  // namespace
}  // namespace weir::lab
