#include "lab/fleet/scenario_reader.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kWhole = R"(name: A test
description: what it is about
duration: 12s
store: { layout: shards, servers: 2, latency: 1ms..2ms, timeout: 20ms..50ms, connections: 2,
         max_in_flight: 8, clock_offset: 5s }
nodes: { count: 2..4, fleet_size: 0, clock_offset: 1min, clock_drift: 100ppm }
policy:
  on_store_failure: closed
  rules:
    - { name: r, key: user, limit: 10/s }
clients:
  - { name: a, count: 3, rate: 2.5/s, arrivals: bursts, burst: 4..8, user: 'u{n}', path: /x, cost: 2,
      node: sticky, from: 1s, until: 10s, hold: 5ms, headers: { x-team: blue } }
  - { name: b, rate: 30/min }
faults:
  - { at: 2s, for: 500ms, what: restart empty, server: 2 }
  - { at: 4s, what: node pause, node: 1 }
  - at: 5s
    what: policy reload
    policy: { rules: [{ name: r, key: user, limit: 5/s }] }
  - { at: 6s, for: 1s, what: clock back, by: 10s }
expect:
  denied: at most 2.5%
  degraded: at most 3s
  admitted: at least 1k
)";

ScenarioReport ReportOn(std::string_view text) { return ReadScenario(text, "s.yaml", "."); }

TEST(ScenarioReader, ReadsAllThatMayBeSaid) {
  const ScenarioReport report = ReportOn(kWhole);
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  ASSERT_TRUE(report.scenario);
  const Scenario& scenario = *report.scenario;
  EXPECT_EQ(scenario.name, "A test");
  EXPECT_EQ(scenario.duration.least, seconds(12));
  EXPECT_EQ(scenario.store.layout, StoreLayout::kShards);
  EXPECT_EQ(scenario.store.servers->most, 2);
  EXPECT_EQ(scenario.store.timeout.least, milliseconds(20));
  EXPECT_EQ(scenario.store.timeout.most, milliseconds(50));
  EXPECT_EQ(scenario.nodes.count.most, 4);
  EXPECT_EQ(scenario.nodes.fleet_size, 0);
  EXPECT_EQ(scenario.nodes.clock_drift_ppm, 100);
  ASSERT_EQ(scenario.clients.size(), 2U);
  EXPECT_DOUBLE_EQ(scenario.clients[0].rate.least, 2.5);
  EXPECT_DOUBLE_EQ(scenario.clients[1].rate.least, 0.5);
  EXPECT_TRUE(scenario.clients[0].is_sticky);
  EXPECT_EQ(scenario.clients[0].attributes.at("user"), "u{n}");
  ASSERT_EQ(scenario.faults.size(), 4U);
  EXPECT_EQ(scenario.faults[0].server, 1);
  EXPECT_EQ(scenario.faults[0].server_fault, sim::FaultKind::kRestartEmpty);
  EXPECT_EQ(scenario.faults[1].node_fault, NodeFault::kPause);
  EXPECT_EQ(scenario.faults[2].policy->rules.front().limit, "5/s");
  EXPECT_EQ(scenario.faults[3].by->least, seconds(10));
  ASSERT_EQ(scenario.expect.size(), 3U);
  EXPECT_DOUBLE_EQ(scenario.expect[0].value, 0.025);
  EXPECT_TRUE(scenario.expect[0].is_share);
  EXPECT_DOUBLE_EQ(scenario.expect[1].value, 3);
  EXPECT_DOUBLE_EQ(scenario.expect[2].value, 1000);
}

TEST(ScenarioReader, TakesRandomFaultsByThemselvesOrBesideAReload) {
  const ScenarioReport report = ReportOn(
      std::string("policy: any\nclients: [{ rate: 1/s }]\nfaults:\n  - { random: 1..3 }\n") +
      "  - { at: 1s, what: policy reload }\n");
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  ASSERT_TRUE(report.scenario);
  EXPECT_EQ(report.scenario->faults[0].random->most, 3);
}

TEST(ScenarioReader, TakesFaultsThatAreOverAtOnceInQuickSuccession) {
  const ScenarioReport report = ReportOn(
      std::string("policy: any\nclients: [{ rate: 1/s }]\nfaults:\n  - { at: 1s, what: flush }\n") +
      "  - { at: 1500ms, what: flush }\n  - { at: 1600ms, what: pause }\n");
  for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
  EXPECT_TRUE(report.scenario);
}

TEST(ScenarioReader, KnowsEveryFaultByItsName) {
  for (const sim::FaultTraits& traits : sim::AllFaults()) {
    const ScenarioReport report = ReportOn(
        "policy: any\nstore: { layout: cluster }\nclients: [{ rate: 1/s }]\nfaults:\n  - { at: 1s, "
        "what: " +
        std::string(traits.name) + " }\n");
    ASSERT_TRUE(report.scenario) << traits.name << ": " << report.problems.front().ToString();
    EXPECT_EQ(report.scenario->faults[0].server_fault, traits.kind);
  }
}

struct Wrong {
  const char* name;
  std::string text;
  const char* place;  // How its problem begins, code included,
  const char* says;   // and what is in it.
};

void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongScenario : public testing::TestWithParam<Wrong> {};

TEST_P(WrongScenario, IsRefusedWithPlaceAndReason) {
  const ScenarioReport report = ReportOn(GetParam().text);
  EXPECT_FALSE(report.scenario);
  ASSERT_EQ(report.problems.size(), 1U) << testing::PrintToString(report.problems.size());
  const std::string problem = report.problems.front().ToString();
  EXPECT_THAT(problem, StartsWith(GetParam().place));
  EXPECT_THAT(problem, HasSubstr(GetParam().says));
}

// What stands around a line that is looked at.
std::string AnyPolicyWith(const std::string& lines) {
  return "policy: any\nclients: [{ rate: 1/s }]\n" + lines + "\n";
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongScenario,
    testing::Values(
        Wrong{"NotYaml", "a: [1, 2\nb", "s.yaml:", "E001"},
        Wrong{"Nothing", "# only a comment\n", "s.yaml:1:1: E002", ""},
        Wrong{"AList", "- a\n", "s.yaml:1:1: E011", "expected a map"},
        Wrong{"UnknownKey", AnyPolicyWith("durration: 3s"), "s.yaml:3:1: E010",
              "did you mean duration?"},
        Wrong{"UnknownKeyWithin", AnyPolicyWith("store: { latenzy: 3ms }"), "s.yaml:3:10: E010",
              "did you mean latency?"},
        Wrong{"UnknownLayout", AnyPolicyWith("store: { layout: etcd }"), "s.yaml:3:18: E016",
              "sentinel"},
        Wrong{"UnknownFault", AnyPolicyWith("faults:\n  - { at: 1s, what: restart emty }"),
              "s.yaml:4:21: E016", "did you mean restart empty?"},
        Wrong{"NoSuchFault", AnyPolicyWith("faults:\n  - { at: 1s, what: earthquake over there }"),
              "s.yaml:4:21: E016", "policy reload"},
        Wrong{"ZeroNodes", AnyPolicyWith("nodes: { count: 0 }"), "s.yaml:3:17: E012", "1 to 100"},
        Wrong{"BadRange", AnyPolicyWith("nodes: { count: 4..2 }"), "s.yaml:3:17: E125",
              "smaller first"},
        Wrong{"BadLength", AnyPolicyWith("duration: 3 fortnights"), "s.yaml:3:11: E012", "1s..5s"},
        Wrong{"BadRate", "policy: any\nclients: [{ rate: often }]\n", "s.yaml:2:19: E012", "50/s"},
        Wrong{"BadDrift", AnyPolicyWith("nodes: { clock_drift: 3 }"), "s.yaml:3:23: E012", "ppm"},
        Wrong{"NoSuchServer", AnyPolicyWith("faults:\n  - { at: 1s, what: pause, server: 2 }"),
              "s.yaml:4:5: E125", "no server 2, only 1"},
        Wrong{"NoSuchNode", AnyPolicyWith("faults:\n  - { at: 1s, what: node pause, node: 9 }"),
              "s.yaml:4:5: E125", "no node 9, only 3"},
        Wrong{"FaultWithoutServers",
              AnyPolicyWith("store: { layout: memory }\nfaults:\n  - { at: 1s, what: pause }"),
              "s.yaml:5:5: E125", "with layout memory there are none"},
        Wrong{"FaultOfClusters", AnyPolicyWith("faults:\n  - { at: 1s, what: slots move }"),
              "s.yaml:4:5: E125", "layout: cluster"},
        Wrong{"FaultOfReplicas", AnyPolicyWith("faults:\n  - { at: 1s, what: failover }"),
              "s.yaml:4:5: E125", "needs a replica"},
        Wrong{"FaultTooLate", AnyPolicyWith("faults:\n  - { at: 10s, what: pause }"),
              "s.yaml:4:5: E125", "when all is over"},
        Wrong{"FaultsThatOverlap",
              AnyPolicyWith(
                  "faults:\n  - { at: 1s, for: 2s, what: pause }\n  - { at: 2s, what: reset }"),
              "s.yaml:5:5: E125", "may overlap with \"pause\" at 1s"},
        Wrong{"FaultWithinOne",
              AnyPolicyWith(
                  "faults:\n  - { at: 1s, for: 2s, what: pause }\n  - { at: 2s, what: flush }"),
              "s.yaml:5:5: E125", "or give each a server"},
        Wrong{"FailoversThatOverlap",
              AnyPolicyWith("store: { layout: cluster }\nfaults:\n"
                            "  - { at: 4s, what: failover, server: 1 }\n"
                            "  - { at: 4s, what: failover, server: 2 }"),
              "s.yaml:6:5: E125", "before the other begins"},
        Wrong{
            "FaultsOfAllAndOne",
            AnyPolicyWith("store: { layout: cluster }\nfaults:\n  - { at: 4s, what: slots move }\n"
                          "  - { at: 4s, what: failover, server: 2 }"),
            "s.yaml:6:5: E125", "before the other begins"},
        Wrong{"OneServerOfAll",
              AnyPolicyWith("store: { layout: cluster }\nfaults:\n"
                            "  - { at: 4s, what: cluster down, server: 1 }"),
              "s.yaml:5:5: E125", "the whole cluster; leave out server"},
        Wrong{"RandomBesideOthers",
              AnyPolicyWith("faults:\n  - { random: 3 }\n  - { at: 1s, what: pause }"),
              "s.yaml:4:5: E125", "write random: once"},
        Wrong{"RestartsThatOverlap",
              AnyPolicyWith("faults:\n  - { at: 1s, what: node restart, node: 1 }\n"
                            "  - { at: 1500ms, for: 2s, what: node restart, node: 1 }"),
              "s.yaml:5:5: E125", "may overlap with \"node restart\" at 1s"},
        Wrong{"ByWithoutASize", AnyPolicyWith("faults:\n  - { at: 1s, what: pause, by: 3s }"),
              "s.yaml:4:5: E125", "\"pause\" has no size"},
        Wrong{"ByOfANode", AnyPolicyWith("faults:\n  - { at: 1s, what: node pause, by: 3s }"),
              "s.yaml:4:5: E125", "\"node pause\" has no size"},
        Wrong{"ForOfAMoment", AnyPolicyWith("faults:\n  - { at: 1s, for: 2s, what: flush }"),
              "s.yaml:4:5: E125", "\"flush\" is over at once"},
        Wrong{"RandomAtSomeTime", AnyPolicyWith("faults:\n  - { random: 3, at: 2s }"),
              "s.yaml:4:5: E125", "leave out all else"},
        Wrong{"ServersOfOne", AnyPolicyWith("store: { layout: sentinel, servers: 3 }"),
              "s.yaml:1:1: E125", "no meaning with layout sentinel"},
        Wrong{"AlwaysTooSlow", AnyPolicyWith("store: { latency: 1ms..9ms, timeout: 20ms }"),
              "s.yaml:1:1: E125", "a quarter of the timeout"},
        Wrong{"TooSlowToConnect", AnyPolicyWith("store: { latency: 2s, timeout: 10s }"),
              "s.yaml:1:1: E125", "write at most 40ms"},
        Wrong{"ClientsThatNeverCome", "policy: any\nclients: [{ rate: 1/s, from: 10s }]\n",
              "s.yaml:1:1: E125", "would begin at 10s"},
        Wrong{"MoreThanAll", AnyPolicyWith("expect: { denied: at least 200% }"),
              "s.yaml:3:19: E012", "up to 100%"},
        Wrong{"FaultOfNothing", AnyPolicyWith("faults:\n  - { at: 1s }"), "s.yaml:4:5: E018",
              "what happens?"},
        Wrong{"RandomAndMore", AnyPolicyWith("faults:\n  - { random: 3, server: 1 }"),
              "s.yaml:4:5: E125", "drawn from the seed"},
        Wrong{"ReloadOfNothing",
              "policy: { rules: [{ name: r, key: user, limit: 1/s }] }\nclients: [{ rate: 1/s }]\n"
              "faults:\n  - { at: 1s, what: policy reload }\n",
              "s.yaml:4:5: E125", "needs the policy"},
        Wrong{"NoPolicy", "clients: [{ rate: 1/s }]\n", "s.yaml:1:1: E018", "there is no policy"},
        Wrong{"NoClients", "policy: any\n", "s.yaml:1:1: E018", "nobody asks"},
        Wrong{"TwoPolicies", AnyPolicyWith("policy_file: weir.yaml"), "s.yaml:3:14: E125",
              "keep policy or"},
        Wrong{"PolicyWithErrors",
              "clients: [{ rate: 1/s }]\npolicy:\n  rules:\n    - { name: r, key: user, limit: "
              "5/fn }\n",
              "s.yaml:4:", "E101"},
        Wrong{"PolicyWithUnknownKey",
              "clients: [{ rate: 1/s }]\npolicy:\n  rules:\n    - { name: r, key: user, limit: "
              "5/s, alogrithm: x }\n",
              "s.yaml:4:41: E010", "did you mean algorithm?"},
        Wrong{
            "PolicyWithStore",
            "clients: [{ rate: 1/s }]\npolicy:\n  store: memory\n  rules: [{ name: r, limit: 5/s, "
            "key: user }]\n",
            "s.yaml:3:3: E010", "the scenario says"},
        Wrong{"UnknownMeasure", AnyPolicyWith("expect: { refused: at most 1% }"),
              "s.yaml:3:11: E010", "allowed are"},
        Wrong{"BadExpectation", AnyPolicyWith("expect: { denied: few }"), "s.yaml:3:19: E012",
              "at most or at least"},
        Wrong{"TooMuch", "policy: any\nclients: [{ count: 10000, rate: 100/s }]\n",
              "s.yaml:1:1: E125", "more than 2M requests"},
        Wrong{
            "TooMuchAtOnce",
            "policy: any\nclients: [{ count: 1000, rate: 1/h, arrivals: bursts, burst: 10000 }]\n",
            "s.yaml:1:1: E125", "more than 2M requests"},
        Wrong{"SameNames", "policy: any\nclients: [{ rate: 1/s }, { rate: 2/s }]\n",
              "s.yaml:1:1: E125", "a name of its own"}),
    [](const auto& instance) { return std::string(instance.param.name); });

class ScenarioFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "weirXXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    Write("big.csv", "user,limit\nu1,100/s\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  // What nodes make of the policy: they know no folder.
  void ExpectMade(const std::string& scenario) {
    Write("s.yaml", scenario);
    const ScenarioReport report = LoadScenario(folder_ + "/s.yaml");
    for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
    ASSERT_TRUE(report.scenario);
    const FaultSpec* const fault =
        report.scenario->faults.empty() ? nullptr : &report.scenario->faults.front();
    EXPECT_TRUE(Policy::Make(fault != nullptr ? *fault->policy : *report.scenario->policy).policy);
  }

  std::string folder_;
};

constexpr char kRules[] = "{ rules: [{ name: r, key: user, limit: 1/s, overrides: big.csv }] }";

TEST_F(ScenarioFiles, AreFoundBesideTheScenario) {
  ExpectMade(std::string("clients: [{ rate: 1/s }]\npolicy: ") + kRules + "\n");
}

TEST_F(ScenarioFiles, AreFoundBesideTheScenarioOnReload) {
  ExpectMade(std::string("clients: [{ rate: 1/s }]\npolicy: any\nfaults:\n"
                         "  - { at: 1s, what: policy reload, policy: ") +
             kRules + " }\n");
}

TEST_F(ScenarioFiles, AreFoundBesideThePolicyFile) {
  Write("p.yaml", kRules);
  // Also where the folder is not the one that the program stands in.
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(folder_).parent_path());
  const std::string whole = folder_;
  folder_ = std::filesystem::path(folder_).filename().string();
  ExpectMade("clients: [{ rate: 1/s }]\npolicy_file: p.yaml\n");
  folder_ = whole;
  std::filesystem::current_path(before);
}

TEST(ScenarioReader, SaysThatAFileIsNotThere) {
  const ScenarioReport report = LoadScenario("/no/such/scenario.yaml");
  EXPECT_FALSE(report.scenario);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_THAT(report.problems[0].ToString(), HasSubstr("/no/such/scenario.yaml"));
}

TEST(ScenarioReader, TellsOfEachFaultThatOverlapsOnce) {
  std::string faults = "faults:\n";
  for (int i = 0; i < 50; ++i) faults += "  - { at: 1s, what: pause }\n";
  EXPECT_EQ(ReportOn(AnyPolicyWith(faults)).problems.size(), 49U);
}

TEST(ScenarioReader, TakesNoEndlessListOfFaults) {
  std::string faults = "faults:\n";
  for (int i = 0; i <= kMostFaults; ++i) faults += "  - { at: 1s, what: pause }\n";
  const ScenarioReport report = ReportOn(AnyPolicyWith(faults));
  EXPECT_FALSE(report.scenario);
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_THAT(report.problems[0].ToString(), HasSubstr("more than 1000 faults"));
}

TEST(ScenarioReader, TellsAllProblemsAtOnce) {
  const ScenarioReport report =
      ReportOn("durtion: 1s\nstore: { layout: x }\nnodes: { count: zero }\n");
  EXPECT_GE(report.problems.size(), 3U);
}

}  // namespace
}  // namespace weir::lab
