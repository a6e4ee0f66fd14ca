// What becomes of the counts when a policy is replaced.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "limit/limit_words.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Request kUserAnn{.user = "ann"};  // NOLINT: holds no resource

std::string RuleForUsers(std::string_view limit, std::string_view more = "") {
  return "rules:\n  - { name: r, key: user, limit: " + std::string(limit) + std::string(more) +
         " }\n";
}
std::string Window(std::string_view limit, std::string_view overrides = "") {
  std::string more = ", algorithm: fixed_window";
  if (!overrides.empty()) more += ", overrides: { " + std::string(overrides) + " }";
  return RuleForUsers(limit, more);
}

TEST(Apply, CountsVersionsFromOne) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  EXPECT_EQ(under_test.engine.Stats().version, 1U);
  EXPECT_EQ(under_test.Apply(RuleForUsers("20/min")).version, 2U);
  EXPECT_EQ(under_test.engine.Stats().version, 2U);
  EXPECT_EQ(under_test.engine.policy().spec().rules[0].limit, "20/min");
}

TEST(Apply, SaysWhichRulesCameWentAndChanged) {
  EngineUnderTest under_test(R"(
rules:
  - { name: same, key: user, limit: 1/min }
  - { name: larger, key: user, limit: 1/min }
  - { name: another, key: user, limit: 10/min }
  - { name: gone, key: user, limit: 1/min }
  - { name: asleep, key: user, limit: 1/min }
)");
  const PolicyChange change = under_test.Apply(R"(
rules:
  - { name: another, key: user, limit: 10/min, algorithm: fixed_window }
  - { name: asleep, key: user, limit: 1/min, mode: off }
  - { name: fresh, key: user, limit: 1/min }
  - { name: larger, key: user, limit: 2/min }
  - { name: same, key: user, limit: 1/min, message: only the text is new }
)");
  EXPECT_THAT(change.rules_added, ElementsAre("fresh"));
  EXPECT_THAT(change.rules_removed, ElementsAre("asleep", "gone"));
  EXPECT_THAT(change.limits_changed, ElementsAre("larger"));
  EXPECT_THAT(change.started_anew, ElementsAre("another"));
  EXPECT_THAT(under_test.notices(), ElementsAre(HasSubstr("\"another\"")));
}

TEST(Apply, OfTheSamePolicyChangesNothing) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  under_test.Check(kUserAnn, 4);
  const std::size_t entries = under_test.engine.Stats().store.entries;
  for (int i = 0; i < 100; ++i) {
    const PolicyChange change = under_test.Apply(RuleForUsers("10/min"));
    EXPECT_THAT(change.limits_changed, IsEmpty());
    EXPECT_THAT(change.started_anew, IsEmpty());
    EXPECT_EQ(under_test.Remaining("r", kUserAnn), 6);
  }
  // A new generation would have its state in another entry.
  under_test.Check(kUserAnn);
  EXPECT_EQ(under_test.engine.Stats().store.entries, entries);
}

TEST(Apply, LetsABucketKeepItsTimeToFull) {
  EngineUnderTest under_test(RuleForUsers("60/min burst 60"));
  under_test.Check(kUserAnn, 30);  // Thirty seconds to full.
  under_test.Apply(RuleForUsers("60/h burst 60"));
  const Decision now = under_test.Peek(kUserAnn);
  EXPECT_EQ(now.reset_after, seconds(30));
  EXPECT_EQ(now.remaining, 59);
}

TEST(Apply, KeepsABucketInProportionIfItsPeriodStays) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  under_test.Check(kUserAnn, 5);
  under_test.Apply(RuleForUsers("100/min"));
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 50);
  under_test.Apply(RuleForUsers("10/min"));
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 5);
}

TEST(Apply, KeepsWindowsAndLogsInProportionRoundedUp) {
  for (const char* algorithm : {"fixed_window", "sliding_window", "sliding_log"}) {
    const std::string more = std::string(", algorithm: ") + algorithm;
    EngineUnderTest under_test(RuleForUsers("10/h", more));
    under_test.Check(kUserAnn, 5);
    under_test.Apply(RuleForUsers("100/h", more));
    EXPECT_EQ(under_test.Remaining("r", kUserAnn), 50) << algorithm;
    under_test.Apply(RuleForUsers("7/h", more));
    EXPECT_EQ(under_test.Remaining("r", kUserAnn), 3) << algorithm;
  }
}

TEST(Apply, StartsAnewWithAnotherAlgorithmOrWindow) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  for (const char* next : {"10/min, algorithm: sliding_window", "10/h, algorithm: sliding_window",
                           "10/h, algorithm: sliding_log", "10/min"}) {
    under_test.Exhaust(kUserAnn);
    EXPECT_THAT(under_test.Apply(RuleForUsers(next)).started_anew, ElementsAre("r")) << next;
    EXPECT_EQ(under_test.Remaining("r", kUserAnn), 10) << next;
  }
  EXPECT_EQ(under_test.notices().size(), 4U);
}

TEST(Apply, TakesARuleOfAnotherNameForAnotherRule) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  under_test.Exhaust(kUserAnn);
  const PolicyChange change =
      under_test.Apply("rules:\n  - { name: renamed, key: user, limit: 10/min }\n");
  EXPECT_THAT(change.rules_added, ElementsAre("renamed"));
  EXPECT_THAT(change.rules_removed, ElementsAre("r"));
  EXPECT_EQ(under_test.Exhaust(kUserAnn), 10);
}

TEST(Apply, HandsOutNothingWhenARuleGoesAndComesBack) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  under_test.Exhaust(kUserAnn);
  under_test.Apply("rules: []");
  EXPECT_TRUE(under_test.Allows(kUserAnn));
  under_test.Apply(RuleForUsers("10/min"));
  EXPECT_FALSE(under_test.Allows(kUserAnn));
  under_test.clock.Advance(minutes(1));
  EXPECT_EQ(under_test.Exhaust(kUserAnn), 10);
}

TEST(Apply, ManyTimesInARowKeepsWhatWasUsed) {
  EngineUnderTest under_test(Window("10/h"));
  under_test.Check(kUserAnn, 5);
  for (int i = 0; i < 100; ++i) {
    under_test.Apply(Window(i % 2 == 0 ? "1000/h" : "10/h"));
    EXPECT_EQ(under_test.Remaining("r", kUserAnn), i % 2 == 0 ? 500 : 5) << i;
  }
}

// --- Tiers ---

std::string Tiers(std::string_view tiers, std::string_view fallback = "free") {
  return "identity: { tier: { header: x-tier, default: " + std::string(fallback) +
         " } }\ntiers: { " + std::string(tiers) +
         " }\nrules:\n  - { name: r, key: user, limit: { tier: t }, algorithm: fixed_window }\n";
}
constexpr Request kFree{.user = "fred", .tier = "free"};
constexpr Request kPro{.user = "pru", .tier = "pro"};

TEST(ApplyTiers, ChangesOneAndLeavesTheKeysOfTheOthers) {
  EngineUnderTest under_test(Tiers("free: { t: 10/h }, pro: { t: 100/h }"));
  under_test.Check(kFree, 5);
  under_test.Check(kPro, 60);
  under_test.Apply(Tiers("free: { t: 20/h }, pro: { t: 100/h }"));
  EXPECT_EQ(under_test.Remaining("r", kFree), 10);
  EXPECT_EQ(under_test.Remaining("r", kPro), 40);
  under_test.Apply(Tiers("free: { t: 20/h }, pro: { t: 200/h }"));
  EXPECT_EQ(under_test.Remaining("r", kFree), 10);
  EXPECT_EQ(under_test.Remaining("r", kPro), 80);
}

TEST(ApplyTiers, LetsAKeyThatGetsAnotherTierKeepItsCount) {
  EngineUnderTest under_test(Tiers("free: { t: 10/h }, pro: { t: 100/h }"));
  under_test.Check(kFree, 5);
  under_test.Apply(Tiers("free: { t: 10/h }, pro: { t: 200/h }"));
  EXPECT_GE(under_test.Remaining("r", {.user = "fred", .tier = "pro"}), 190);
  EXPECT_LE(under_test.Remaining("r", {.user = "fred", .tier = "pro"}), 195);
}

TEST(ApplyTiers, DoesNotLockOutThoseWhoGetATierThatIsNew) {
  EngineUnderTest under_test(Tiers("free: { t: 10/h }, pro: { t: 100/h }"));
  under_test.Check(kPro, 80);
  under_test.Apply(Tiers("free: { t: 10/h }, pro: { t: 100/h }, gold: { t: 1000/h }"));
  EXPECT_EQ(under_test.Remaining("r", {.user = "pru", .tier = "gold"}), 920);
}

TEST(ApplyTiers, FollowTheirNamesWhenTheDefaultBecomesAnother) {
  EngineUnderTest under_test(Tiers("free: { t: 10/h }, pro: { t: 100/h }"));
  under_test.Check(kFree, 5);
  under_test.Check(kPro, 50);
  under_test.Apply(Tiers("free: { t: 20/h }, pro: { t: 100/h }", "pro"));
  EXPECT_EQ(under_test.Remaining("r", kFree), 10);
  EXPECT_EQ(under_test.Remaining("r", kPro), 50);
}

TEST(ApplyTiers, TakeOverFromALimitForAll) {
  EngineUnderTest under_test(Window("10/h"));
  under_test.Check(kPro, 5);
  under_test.Apply(Tiers("free: { t: 10/h }, pro: { t: 100/h }"));
  EXPECT_EQ(under_test.Remaining("r", kPro), 50);
}

TEST(ApplyTiers, SayThatTheyStartAnewThoughTheDefaultIsUnlimited) {
  const std::string tiers = Tiers("free: { t: unlimited }, pro: { t: 100/h }");
  EngineUnderTest under_test(tiers);
  under_test.Check(kPro, 50);
  std::string log = tiers;
  log.replace(log.find("fixed_window"), 12, "sliding_log");
  EXPECT_THAT(under_test.Apply(log).started_anew, ElementsAre("r"));
  EXPECT_EQ(under_test.Remaining("r", kPro), 100);
}

// --- Overrides ---

constexpr Request kAcme{.user = "acme"};
constexpr Request kBeta{.user = "beta"};

TEST(ApplyOverrides, ThatAreNewLetTheKeyGoOnAsItIs) {
  EngineUnderTest under_test(Window("100/h"));
  under_test.Check(kAcme, 50);
  under_test.Check(kUserAnn, 50);
  EXPECT_THAT(under_test.Apply(Window("100/h", "acme: 1000/h")).limits_changed, ElementsAre("r"));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 950);
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 50);
}

TEST(ApplyOverrides, ThatChangeKeepTheKeyInProportionToWhatItHad) {
  EngineUnderTest under_test(Window("100/h", "acme: 1000/h, beta: 10/h"));
  under_test.Check(kAcme, 500);
  under_test.Check(kBeta, 5);
  under_test.Check(kUserAnn, 50);
  under_test.Apply(Window("100/h", "acme: 2000/h, beta: 20/h"));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 1000);
  EXPECT_EQ(under_test.Remaining("r", kBeta), 10);
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 50);
}

TEST(ApplyOverrides, ThatNoLongerDifferKeepTheirCounts) {
  EngineUnderTest under_test(Window("100/h", "acme: 1000/h, beta: 10/h"));
  under_test.Check(kAcme, 500);
  under_test.Check(kBeta, 5);
  under_test.Apply(Window("100/h", "acme: 2000/h, beta: 2000/h"));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 1500);
  EXPECT_EQ(under_test.Remaining("r", kBeta), 1995);
}

TEST(ApplyOverrides, GoOnThoughTheRuleItselfIsUnlimited) {
  EngineUnderTest under_test(Window("unlimited", "acme: 1000/h"));
  under_test.Check(kAcme, 500);
  const PolicyChange change = under_test.Apply(Window("unlimited", "acme: 2000/h, beta: 10/h"));
  EXPECT_THAT(change.limits_changed, ElementsAre("r"));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 1000);
  EXPECT_EQ(under_test.Remaining("r", kBeta), 10);
}

TEST(ApplyOverrides, LeaveWhatWasUsedWhenTheyGo) {
  EngineUnderTest under_test(Window("100/h", "acme: 1000/h"));
  under_test.Check(kAcme, 60);
  under_test.Check(kUserAnn, 50);
  under_test.Apply(Window("100/h"));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 40);
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 50);
}

TEST(ApplyOverrides, ThatChangeTwiceWhileTheKeyIsAwayKeepItWithinItsLimit) {
  EngineUnderTest under_test(Window("100/h", "acme: 1000/h"));
  under_test.Check(kAcme, 500);
  under_test.Apply(Window("100/h", "acme: 1000/h, beta: 10/h"));
  under_test.Apply(Window("100/h", "acme: 1000/h, beta: 20/h"));
  under_test.Apply(Window("100/h", "acme: 2000/h, beta: 20/h"));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 1000);
}

// --- Reservations ---

TEST(ApplyReservations, TakenBeforeAreSettledUnderTheLimitThatGoesOn) {
  EngineUnderTest under_test(Window("100/h"));
  const Decision taken = under_test.engine.Reserve(kUserAnn, {.cost = 40}).decision;
  under_test.Apply(Window("1000/h"));
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 600);
  ASSERT_TRUE(under_test.engine.Commit(taken.reservation, 10));  // 30 of 100 go back.
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 900);
}

TEST(ApplyReservations, TakenUnderATierOrAnOverrideAreSettledUnderIt) {
  const auto policy = [](std::string_view pro, std::string_view acme) {
    std::string yaml =
        Tiers("free: { t: 10/h }, pro: { t: " + std::string(pro) + " }, zed: { t: 77/h }");
    return yaml.insert(yaml.rfind(" }"), ", overrides: { acme: " + std::string(acme) + " }");
  };
  EngineUnderTest under_test(policy("100/h", "500/h"));
  const Decision pro = under_test.engine.Reserve(kPro, {.cost = 40}).decision;
  const Decision acme = under_test.engine.Reserve(kAcme, {.cost = 100}).decision;
  under_test.Apply(policy("1000/h", "1000/h"));
  EXPECT_EQ(under_test.Remaining("r", kPro), 600);
  EXPECT_EQ(under_test.Remaining("r", kAcme), 800);
  const Result<Decision> settled = under_test.engine.Commit(pro.reservation, 10);
  EXPECT_EQ(settled->limit, 1000);
  EXPECT_EQ(settled->rule, "r");
  EXPECT_EQ(under_test.Remaining("r", kPro), 900);
  ASSERT_TRUE(under_test.engine.Cancel(acme.reservation));
  EXPECT_EQ(under_test.Remaining("r", kAcme), 1000);
}

TEST(ApplyReservations, OfARuleThatIsGoneCanStillBeSettled) {
  EngineUnderTest under_test(Window("100/h"));
  const Decision taken = under_test.engine.Reserve(kUserAnn, {.cost = 40}).decision;
  under_test.Apply("rules: []");
  EXPECT_TRUE(under_test.engine.Commit(taken.reservation, 10));
  under_test.Apply(Window("100/h"));
  EXPECT_EQ(under_test.Remaining("r", kUserAnn), 90);
}

TEST(ApplyReservations, LeasesStayWhenTheNumberOfPlacesChanges) {
  EngineUnderTest under_test(RuleForUsers("2 concurrent lease 1min"));
  const Decision lease = under_test.Check(kUserAnn);
  under_test.Apply(RuleForUsers("3 concurrent lease 1min"));
  EXPECT_EQ(under_test.Exhaust(kUserAnn), 2);
  ASSERT_TRUE(under_test.engine.Release(lease.reservation));
  EXPECT_EQ(under_test.Exhaust(kUserAnn), 1);
}

TEST(Apply, SaysWhichRulesChangedInSomethingOtherThanTheirLimits) {
  EngineUnderTest under_test(RuleForUsers("10/min"));
  const PolicyChange change = under_test.Apply(RuleForUsers("10/min", ", mode: shadow"));
  EXPECT_THAT(change.rules_changed, ElementsAre("r"));
  EXPECT_THAT(change.limits_changed, IsEmpty());
}

TEST(Apply, GoesOnWithARuleThatWasOffForAWhile) {
  for (const std::string& meanwhile :
       {RuleForUsers("20/day", ", mode: off"), std::string("rules: []\n"), RuleForUsers("deny")}) {
    EngineUnderTest under_test(RuleForUsers("10/day"));
    under_test.Apply(RuleForUsers("20/day"));  // Its state is no longer that of a rule that is new.
    EXPECT_EQ(under_test.Exhaust(kUserAnn), 20);
    under_test.Apply(meanwhile);
    under_test.Apply(RuleForUsers("20/day"));
    EXPECT_FALSE(under_test.Allows(kUserAnn)) << meanwhile;
  }
}

TEST(Apply, GoesOnWithARuleThatComesBackWithAnotherLimit) {
  EngineUnderTest under_test(Window("10/day"));
  EXPECT_EQ(under_test.Exhaust(kUserAnn), 10);
  under_test.Apply("rules: []\n");
  under_test.Apply(Window("20/day"));
  EXPECT_FALSE(under_test.Allows(kUserAnn));  // In proportion: all of it is used.
}

TEST(Apply, ChangesTheCapOfAStoreInMemory) {
  const auto with_cap = [](std::string_view cap) {
    return "memory: { cap: " + std::string(cap) + " }\n" + RuleForUsers("2/day");
  };
  EngineUnderTest under_test(with_cap("16MiB"));
  EXPECT_EQ(under_test.Exhaust(kUserAnn), 2);
  const auto fill = [&] {
    for (int i = 0; i < 200'000; ++i) {
      const std::string user = std::to_string(i);
      under_test.Allows({.user = user});
    }
    return under_test.engine.Stats().store;
  };
  const LimiterStats full = fill();
  EXPECT_GT(full.bytes, 3U << 20);
  EXPECT_EQ(full.evicted_live, 0U);
  under_test.Apply(with_cap("2MiB"));
  EXPECT_LE(under_test.engine.Stats().store.bytes, 2U << 20);
  EXPECT_GT(under_test.engine.Stats().store.evicted_live, 0U);
  // Those that are being denied are the last to go.
  EXPECT_FALSE(under_test.Allows(kUserAnn));
  under_test.Apply(with_cap("16MiB"));
  const std::uint64_t gone = under_test.engine.Stats().store.evicted_live;
  EXPECT_EQ(fill().evicted_live, gone);
  EXPECT_FALSE(under_test.Allows(kUserAnn));
}

}  // namespace
}  // namespace weir
