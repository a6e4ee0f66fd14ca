#include "lab/fleet/fleet.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/fleet/campaign.h"
#include "lab/fleet/fleet_report.h"
#include "lab/fleet/scenarios_under_test.h"

namespace weir::lab {
namespace {

using testing::HasSubstr;

// One user who asks for twice the limit, and whatever else is said.
Scenario EagerUserWith(const std::string& more) {
  return ScenarioOf(
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
        ScenarioOf(std::string("policy: any\nduration: 4s\nstore: { layout: ") + layout +
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

// Each time it is told of another master, a node used to connect anew to one that it still knew.
TEST_F(FleetTest, KeepsToItsConnectionsWhenTwoServersTakeTurns) {
  const Scenario scenario = ScenarioOf(
      "duration: 9s\nstore: { layout: sentinel }\n"
      "policy: { rules: [{ name: r, key: user, limit: 10/s burst 10 }] }\n"
      "clients: [{ name: eager, rate: 60/s, arrivals: steady, user: eager }]\n"
      "faults:\n"
      "  - { at: 3s, for: 300ms, what: failover }\n"
      "  - { at: 3700ms, for: 300ms, what: failover }\n"
      "  - { at: 4400ms, for: 300ms, what: failover }\n"
      "  - { at: 5100ms, for: 300ms, what: failover }\n"
      "  - { at: 5800ms, for: 300ms, what: failover }\n");
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    EXPECT_TRUE(Run(scenario, seed).is_clean()) << "seed " << seed;
  }
}

TEST_F(FleetTest, SharesALimitThroughTheStore) {
  const Outcome outcome = Run(EagerUserWith("nodes: { count: 4 }\n"));
  EXPECT_NEAR(static_cast<double>(outcome.measures.all.admitted), 70, 2);
  EXPECT_EQ(outcome.measures.all.By(Source::kStore), outcome.measures.all.requests);
}

TEST_F(FleetTest, LimitsEveryNodeByItselfInMemory) {
  const Outcome outcome = Run(EagerUserWith("nodes: { count: 4 }\nstore: { layout: memory }\n"));
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
    const Outcome outcome = Run(ScenarioOf(
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
  const Outcome outcome = Run(EagerUserWith(
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
  const Outcome two = Run(EagerUserWith("nodes: { count: 2 }\n" + faults));
  EXPECT_EQ(two.measures.unreached, 0U);
  for (const Asked& asked : two.record.asked) {
    const bool is_down = asked.at > std::chrono::seconds(2) && asked.at < std::chrono::seconds(3);
    EXPECT_TRUE(!is_down || asked.node == 1);
  }
  const Outcome one = Run(EagerUserWith("nodes: { count: 1 }\n" + faults));
  EXPECT_NEAR(static_cast<double>(one.measures.unreached), 20, 2);
}

TEST_F(FleetTest, AnswersWhenANodeThatStoodStillGoesOn) {
  const Outcome outcome =
      Run(EagerUserWith("nodes: { count: 1 }\nfaults: [{ at: 2s, for: 1s, what: node pause }]\n"));
  const auto late = std::ranges::count_if(
      outcome.record.asked, [](const Asked& asked) { return asked.at == std::chrono::seconds(3); });
  EXPECT_NEAR(static_cast<double>(late), 20, 1);
}

TEST_F(FleetTest, HasOneReplicaForOneFailoverAtATime) {
  // No scenario may say so, but whoever plans faults by hand might.
  Scenario scenario = EagerUserWith(
      "store: { layout: cluster }\nfaults:\n  - { at: 1s, what: failover, server: 1 }\n"
      "  - { at: 4s, what: failover, server: 2 }\n");
  for (FaultSpec& fault : scenario.faults) {
    fault.at = Between<Duration>::Only(std::chrono::seconds(2));
  }
  for (std::uint64_t seed = 1; seed <= 5; ++seed) Run(scenario, seed);
}

TEST_F(FleetTest, StrikesWhoeverIsMasterWhenAFaultBegins) {
  const Outcome outcome = Run(EagerUserWith(
      "store: { layout: sentinel }\nfaults:\n  - { at: 500ms, for: 500ms, what: failover }\n"
      "  - { at: 2s, for: 1s, what: read only }\n  - { at: 4s, for: 1s, what: restart empty }\n"));
  std::map<int, int> failed;  // By second.
  for (const Asked& asked : outcome.record.asked) {
    const bool is_failed = asked.source != Source::kStore;
    failed[static_cast<int>(std::chrono::floor<std::chrono::seconds>(asked.at).count())] +=
        is_failed ? 1 : 0;
  }
  EXPECT_GE(failed[2], 18);
  EXPECT_GE(failed[4], 18);
}

TEST_F(FleetTest, SendsNothingWhereTheFirstRequestIsAgesAway) {
  for (const char* const arrivals : {"steady", "poisson"}) {
    const Outcome outcome = Run(ScenarioOf(
        std::string("duration: 1s\nstore: { layout: memory }\npolicy: { rules: [{ name: r, key: "
                    "user, limit: 10/s }] }\nclients: [{ rate: 0.000000001/day, arrivals: ") +
        arrivals + " }]\n"));
    EXPECT_EQ(outcome.measures.all.requests, 0U);
  }
}

TEST_F(FleetTest, WaitsForTheLastAnswerHoweverLongTheTimeout) {
  const Outcome outcome = Run(
      EagerUserWith("store: { timeout: 5s }\nfaults: [{ at: 5s, for: 1s, what: replies lost }]\n"));
  EXPECT_GT(outcome.measures.all.By(Source::kFallback), 10U);
}

TEST_F(FleetTest, RemembersAsManyKeysAsThePolicyHasMemoryFor) {
  const auto scenario = [](const std::string& memory) {
    return ScenarioOf("duration: 5s\nstore: { layout: memory }\nnodes: { count: 1 }\npolicy:\n" +
                      memory +
                      "  rules: [{ name: r, key: user, limit: 2/h, algorithm: sliding_log },"
                      " { name: s, key: user, limit: 5/h, algorithm: sliding_window, strict: true,"
                      " sub_windows: 60 }]\nclients: [{ count: 9000, rate: 1/s }]\n");
  };
  Run(scenario("  memory: { cap: 256MiB }\n"));
  Run(scenario(""));
  // Where it has less, the same is forgotten in each run.
  const Scenario small = scenario("  memory: { cap: 2MiB }\n");
  const Record first = RunSeed(small, 1, lua_).record;
  EXPECT_EQ(first.fingerprint, RunSeed(small, 1, lua_).record.fingerprint);
}

TEST_F(FleetTest, KnowsThatARuleRefusesWhoeverLacksItsKey) {
  for (const char* const mode : {"static", "open"}) {
    const Outcome outcome = Run(ScenarioOf(
        std::string("duration: 9s\npolicy: { on_store_failure: ") + mode +
        ", rules: [{ name: r, key: user, limit: 20/s, unidentified: deny }, { name: s, key: org, "
        "limit: 9/s, unidentified: deny }, { name: all, key: global, limit: 50/s }] }\n"
        "clients: [{ name: known, rate: 10/s, user: ann, org: x }, { name: nobody, rate: 10/s, ip: "
        "10.1.2.3 }]\nfaults: [{ at: 2s, for: 2s, what: pause }]\n"));
    EXPECT_GT(outcome.measures.all.admitted, 50U);
    EXPECT_GT(outcome.measures.all.denied, 50U);
  }
}

TEST_F(FleetTest, ChargesNothingToWhoAsksForNothing) {
  for (const char* const layout : {"memory", "redis"}) {
    Run(ScenarioOf(
        std::string("duration: 5s\nnodes: { count: 1 }\nstore: { layout: ") + layout +
        " }\npolicy: { rules: [{ name: r, key: user, limit: 5/h, cost: 2 }] }\nclients: [{ name: "
        "a, rate: 2/s, user: u1 }, { name: q, rate: 2/s, user: u1, cost: 0 }]\n"));
  }
}

TEST_F(FleetTest, TakesABanForNoCharge) {
  for (const char* const layout : {"memory", "redis", "cluster"}) {
    const Outcome outcome = Run(ScenarioOf(
        std::string("duration: 10s\nstore: { layout: ") + layout +
        " }\npolicy: { rules: [{ name: r, key: user, limit: 20/s burst 40, block: { after: 10 "
        "denials in 1min, for: 3s } }] }\nclients: [{ rate: 90/s, arrivals: steady }]\n"));
    const auto bans = std::ranges::count_if(
        outcome.record.asked, [](const Asked& asked) { return asked.reason == Reason::kBanned; });
    EXPECT_GT(bans, 50);
  }
}

TEST_F(FleetTest, ForgivesANodeThatTurnsPeopleAwayForLackOfRoom) {
  const Scenario scenario = ScenarioOf(
      "duration: 8s\nstore: { max_in_flight: 1 }\nnodes: { count: 2 }\npolicy: { rules: [{ name: "
      "r, "
      "key: user, limit: 100/s }] }\n"
      "clients: [{ rate: 60/s, arrivals: bursts, burst: 30 }]\n");
  for (std::uint64_t seed = 1; seed <= 3; ++seed) Run(scenario, seed);
}

TEST_F(FleetTest, DrawsWhatStillCountsWhereNobodyIsLetThrough) {
  const Scenario scenario = ScenarioOf(
      "duration: 20s\nstore: { layout: memory }\nnodes: { count: 1 }\npolicy: { rules: [{ name: w, "
      "key: user, limit: 10/10s, algorithm: fixed_window }] }\n"
      "clients: [{ rate: 20/s, arrivals: steady }]\n");
  const Outcome outcome = Run(scenario);
  const std::vector<double> drawn = FleetPicture(scenario, outcome).plots[1].series[0].values;
  // The ten of the beginning count for ten seconds.
  const auto second = drawn.size() / 20;
  for (std::size_t i = second; i < 9 * second; ++i) EXPECT_EQ(drawn[i], 10) << i;
}

TEST_F(FleetTest, DrawsWhoQueuesWhenTheyGoOn) {
  const Scenario scenario = ScenarioOf(
      "duration: 20s\nstore: { layout: memory }\nnodes: { count: 1 }\npolicy: { rules: [{ name: q, "
      "key: user, limit: 1/s burst 10, algorithm: leaky_bucket, queue: true }] }\n"
      "clients: [{ rate: 20/s, arrivals: steady }]\n");
  const Outcome outcome = Run(scenario);
  const Plot busiest = FleetPicture(scenario, outcome).plots[1];
  for (const double drawn : busiest.series[0].values) EXPECT_LE(drawn, busiest.lines[0].y);
}

TEST_F(FleetTest, SaysWhatIsNotAsExpected) {
  const Outcome outcome =
      Run(EagerUserWith("expect: { denied: at most 1%, requests: at least 1k }\n"));
  ASSERT_EQ(outcome.unmet.size(), 2U);
  EXPECT_THAT(outcome.unmet[0], HasSubstr("denied: at most 1% is expected, and it was 4"));
  EXPECT_FALSE(outcome.is_clean());
}

TEST_F(FleetTest, ShowsTheSameForTheSameRun) {
  const Scenario scenario = EagerUserWith("faults: [{ at: 1s, for: 1s, what: pause }]\n");
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
