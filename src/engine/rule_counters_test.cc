// threads
#include "engine/rule_counters.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Counts = std::map<std::string, std::uint64_t>;

// By "rule outcome".
Counts Named(const std::vector<RuleCount>& counts) {
  Counts named;
  for (const RuleCount& count : counts) {
    named[std::string(count.rule) + " " + std::string(count.outcome)] += count.count;
  }
  return named;
}
Counts CountsOf(const Engine& engine) { return Named(engine.RuleCounts()); }

TEST(RuleCounters, KnowARuleByItsName) {
  RuleCounters counters;
  const std::uint32_t first = counters.RowOf("first");
  EXPECT_NE(counters.RowOf("second"), first);
  EXPECT_EQ(counters.RowOf("first"), first);
  counters.OfThisThread().Add(first, RuleCounters::Outcome::kDenied);
  counters.OfThisThread().Add(RuleCounters::Unruled::kNoRule);
  EXPECT_THAT(Named(counters.Read()), ElementsAre(Pair(" no_rule", 1), Pair("first denied", 1)));
}

TEST(RuleCounters, CountTogetherWhatComesAfterTheFirstThousandNames) {
  RuleCounters counters;
  std::vector<std::string> names;
  for (int i = 0; i < 1'010; ++i) names.push_back("rule" + std::to_string(i));
  for (const std::string& name : names) {
    counters.OfThisThread().Add(counters.RowOf(name), RuleCounters::Outcome::kAllowed);
  }
  const Counts counts = Named(counters.Read());
  EXPECT_EQ(counts.size(), 1'001U);
  EXPECT_EQ(counts.at("rule999 allowed"), 1U);
  EXPECT_EQ(counts.at("other allowed"), 10U);
}

TEST(RuleCounters, LoseNothingHoweverManyThreadsCount) {
  RuleCounters counters;
  const std::uint32_t row = counters.RowOf("rule");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1'000; ++n) {
          counters.OfThisThread().Add(row, RuleCounters::Outcome::kAllowed);
        }
      });
    }
  }
  EXPECT_EQ(Named(counters.Read()).at("rule allowed"), 100'000U);
}

constexpr std::string_view kCountedPolicy = R"(
allow: { ip: 10.0.0.0/8 }
deny: { ip: 192.0.2.66 }
rules:
  - { name: wide, match: { path: /login }, key: ip, limit: 100/min }
  - { name: narrow, match: { path: /login }, key: ip, limit: 2/min }
  - { name: trial, match: { path: /login }, key: ip, limit: 1/min, mode: shadow }
)";
constexpr Request kLoginAttempt{.ip = "192.0.2.1", .path = "/login"};

TEST(RuleCounts, SayWhatEveryRuleDecided) {
  EngineUnderTest under_test(kCountedPolicy);
  EXPECT_THAT(CountsOf(under_test.engine), IsEmpty());
  for (int i = 0; i < 5; ++i) under_test.Check(kLoginAttempt);
  under_test.Check({.ip = "10.0.0.1"});
  under_test.Check({.ip = "192.0.2.66"});
  under_test.Check({.ip = "192.0.2.1"});
  // A rule that has room allowed the request, whatever the others say.
  EXPECT_THAT(
      CountsOf(under_test.engine),
      ElementsAre(Pair(" allow_list", 1), Pair(" deny_list", 1), Pair(" no_rule", 1),
                  Pair("narrow allowed", 2), Pair("narrow denied", 3), Pair("trial allowed", 1),
                  Pair("trial shadow_denied", 4), Pair("wide allowed", 5)));
}

TEST(RuleCounts, LeaveOutWhatMerelyAsksOrGivesBack) {
  EngineUnderTest under_test(kCountedPolicy);
  under_test.Peek(kLoginAttempt);
  under_test.engine.Refund(kLoginAttempt);
  under_test.engine.Penalize(kLoginAttempt);
  under_test.engine.Reset(kLoginAttempt);
  under_test.Peek({.ip = "10.0.0.1"});
  EXPECT_THAT(CountsOf(under_test.engine), IsEmpty());
}

TEST(RuleCounts, CountBatchesReservationsAndWaits) {
  EngineUnderTest under_test(
      "rules: [ { name: window, key: ip, limit: 2/10s, "
      "algorithm: fixed_window } ]");
  std::array<BatchRequest, 1> batch = {{{.request = kLoginAttempt}}};
  under_test.engine.CheckBatch(batch, under_test.clock.Read());
  under_test.engine.Reserve(kLoginAttempt);
  EXPECT_THAT(CountsOf(under_test.engine), ElementsAre(Pair("window allowed", 2)));
  // However often it tries.
  const WaitId id = under_test.engine.CheckThen(
      kLoginAttempt, {}, seconds(5), [](const Answer&, std::span<const RuleDecision>) {});
  for (int i = 0; i < 3; ++i) under_test.engine.Refund(kLoginAttempt, {.cost = 0});
  EXPECT_TRUE(under_test.engine.CancelWait(id));
  EXPECT_THAT(CountsOf(under_test.engine), ElementsAre(Pair("window allowed", 2)));
}

TEST(RuleCounts, GoOnUnderTheNextPolicy) {
  EngineUnderTest under_test(kCountedPolicy);
  under_test.Check(kLoginAttempt);
  under_test.Apply("rules: [ { name: narrow, key: ip, limit: 2/min } ]");
  under_test.Check(kLoginAttempt);
  EXPECT_THAT(
      CountsOf(under_test.engine),
      ElementsAre(Pair("narrow allowed", 2), Pair("trial allowed", 1), Pair("wide allowed", 1)));
}

}  // namespace
}  // namespace weir
