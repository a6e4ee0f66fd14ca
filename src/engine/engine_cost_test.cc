// What a request costs, and whose limit it is: costs, tiers and overrides.
#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Cost : public testing::Test {
 protected:
  // What a request costs that has this in the header.
  std::int64_t CostOf(std::string_view stated, bool trusted = true) {
    const std::array<NamedValue, 1> headers = {{{"X-Cost", stated}}};
    return under_test_.Check({.user = "ann", .headers = headers, .trusted = trusted}).cost;
  }
  void Use(std::string_view cost) {
    under_test_.Apply(
        "rules:\n  - { name: r, key: user, limit: 1M/day, cost: " + std::string(cost) + " }\n");
  }
  EngineUnderTest under_test_{"rules:\n  - { name: r, key: user, limit: 1M/day }\n"};
};

TEST_F(Cost, IsWhatTheCallerSaysUnlessTheRuleHasItsOwn) {
  EXPECT_EQ(under_test_.Check({.user = "ann"}, 7).cost, 7);
  EXPECT_EQ(under_test_.Remaining("r", {.user = "ann"}), 999'993);
  Use("3");
  EXPECT_EQ(under_test_.Check({.user = "ann"}, 7).cost, 3);
}

TEST_F(Cost, ComesFromAHeaderOfThoseWhoAreTrusted) {
  Use("{ header: x-cost, default: 2, min: 1, max: 50 }");
  EXPECT_EQ(CostOf("9"), 9);
  EXPECT_EQ(CostOf("9", false), 2);
  EXPECT_EQ(under_test_.Check({.user = "ann"}).cost, 2);
}

TEST_F(Cost, ComesFromAnybodyWhereThePolicyBelievesEverybody) {
  Use("{ header: x-cost, from: anyone, default: 2, max: 50 }");
  EXPECT_EQ(CostOf("9", false), 9);
}

TEST_F(Cost, IsBroughtIntoItsBounds) {
  Use("{ header: x-cost, default: 5, min: 4, max: 50 }");
  EXPECT_EQ(CostOf("4"), 4);
  EXPECT_EQ(CostOf("3"), 4);
  EXPECT_EQ(CostOf("-1"), 4);
  EXPECT_EQ(CostOf("51"), 50);
  EXPECT_EQ(CostOf("999999999999999999999999999"), 50);
}

TEST(CostStatedTwice, IsTheDearest) {
  EngineUnderTest under_test(
      "rules:\n  - { name: r, key: user, limit: 100/min, cost: { header: x-cost, max: 50 } }\n");
  // A client's own, and the one that a proxy added.
  const std::array<NamedValue, 2> headers = {{{"X-Cost", "1"}, {"x-cost", " 30 "}}};
  EXPECT_EQ(under_test.Check({.user = "ann", .headers = headers}).remaining, 70);
}

TEST(CostOfNothing, IsAQuestionUnderRulesWithACostOfTheirOwn) {
  EngineUnderTest under_test("rules:\n  - { name: r, key: user, limit: 10/min, cost: 5 }\n");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(under_test.Check({.user = "ann"}, 0).allowed);
  EXPECT_EQ(under_test.Check({.user = "ann"}).remaining, 5);
}

TEST_F(Cost, IsTheDefaultForJunk) {
  Use("{ header: x-cost, default: 5, min: 1, max: 50 }");
  for (const char* junk : {"", "abc", "7x", "7 8", "+7", "0x10", "1e3", "7.0", "--7"}) {
    EXPECT_EQ(CostOf(junk), 5) << junk;
  }
}

TEST_F(Cost, ComesFromTheQueryACookieOrADescriptorToo) {
  const std::array<NamedValue, 1> seven = {{{"c", "7"}}};
  Use("{ query: c }");
  EXPECT_EQ(under_test_.Check({.user = "ann", .query = seven}).cost, 7);
  Use("{ cookie: c }");
  EXPECT_EQ(under_test_.Check({.user = "ann", .cookies = seven}).cost, 7);
  Use("{ descriptor: c }");
  EXPECT_EQ(under_test_.Check({.user = "ann", .descriptors = seven}).cost, 7);
}

constexpr std::string_view kTiers = R"(
identity: { tier: { header: x-tier, default: free } }
tiers:
  free: { requests: 2/min }
  pro: { requests: 5/min }
  internal: { requests: unlimited }
rules:
  - { name: r, key: user, limit: { tier: requests } }
)";

TEST(Tier, DecidesTheLimitAndTheDefaultIsForThoseWhoHaveNone) {
  EngineUnderTest under_test(kTiers);
  EXPECT_EQ(under_test.Exhaust({.user = "a", .tier = "free"}), 2);
  EXPECT_EQ(under_test.Exhaust({.user = "b"}), 2);
  EXPECT_EQ(under_test.Exhaust({.user = "c", .tier = "pro"}), 5);
  EXPECT_EQ(under_test.Exhaust({.user = "d", .tier = "internal"}), 1'000);
  EXPECT_TRUE(under_test.notices().empty());
}

TEST(Tier, IsTheDefaultInMatchesAndKeysTooForThoseWhoHaveNoneThatExists) {
  EngineUnderTest under_test(R"(
identity: { tier: { default: free } }
tiers: { free: { calls: 100/min }, pro: { calls: 1k/min } }
rules:
  - { name: calls, key: user, limit: { tier: calls } }
  - { name: free-only, match: { tier: free }, key: tier, limit: 2/min }
)");
  EXPECT_TRUE(under_test.Allows({.user = "ann"}));
  EXPECT_TRUE(under_test.Allows({.user = "bob", .tier = "made-up"}));
  EXPECT_EQ(under_test.Check({.user = "eve", .tier = "free"}).rule, "free-only");
  EXPECT_TRUE(under_test.Allows({.user = "eve", .tier = "pro"}));
}

TEST(Tier, KeepsWhatAKeyHasUsedWhenTheKeyGetsAnother) {
  EngineUnderTest under_test(kTiers);
  EXPECT_EQ(under_test.Exhaust({.user = "a", .tier = "free"}), 2);
  EXPECT_LT(under_test.Exhaust({.user = "a", .tier = "pro"}), 5);
}

TEST(Tier, ThatIsNotKnownIsSaidOnceForEachName) {
  EngineUnderTest under_test(kTiers);
  for (int i = 0; i < 3; ++i) under_test.Check({.user = "a", .tier = "gold"});
  under_test.Check({.user = "a", .tier = "silver"});
  under_test.Check({.user = "a", .tier = "gold"});
  EXPECT_THAT(under_test.notices(), ElementsAre(HasSubstr("\"gold\""), HasSubstr("\"silver\"")));
  EXPECT_EQ(under_test.Exhaust({.user = "b", .tier = "gold"}), 2);
}

TEST(Tier, ThatIsMadeUpFillsNoLogAndHidesNothingElse) {
  std::string yaml(kTiers);
  for (int i = 0; i < 65; ++i) {
    yaml += "  - { name: x" + std::to_string(i) +
            ", match: { path: /crowded }, key: user, limit: 1/min }\n";
  }
  EngineUnderTest under_test(yaml);
  for (int i = 0; i < 1'000; ++i) {
    const std::string tier = "tier" + std::to_string(i);
    under_test.Check({.user = "a", .tier = tier, .path = "/"});
  }
  const std::size_t told = under_test.notices().size();
  EXPECT_GE(told, 10U);
  EXPECT_LE(told, 100U);
  under_test.Check({.user = "a", .path = "/crowded"});
  EXPECT_EQ(under_test.notices().size(), told + 1);
}

TEST(Override, GivesCertainKeysAnotherLimit) {
  EngineUnderTest under_test(R"(
rules:
  - { name: r, key: user, limit: 2/min, overrides: { acme: 5/min, "b&c=d": unlimited, evil: deny } }
)");
  EXPECT_EQ(under_test.Exhaust({.user = "ann"}), 2);
  EXPECT_EQ(under_test.Exhaust({.user = "acme"}), 5);
  EXPECT_EQ(under_test.Exhaust({.user = "b&c=d"}), 1'000);
  EXPECT_EQ(under_test.Check({.user = "evil"}).reason, Reason::kDenyList);
}

TEST(Override, GoesBeforeATier) {
  EngineUnderTest under_test(R"(
identity: { tier: { header: x-tier, default: free } }
tiers: { free: { requests: 2/min }, pro: { requests: 5/min } }
rules:
  - { name: r, key: user, limit: { tier: requests }, overrides: { acme: 9/min } }
)");
  EXPECT_EQ(under_test.Exhaust({.user = "acme", .tier = "pro"}), 9);
  EXPECT_EQ(under_test.Exhaust({.user = "other", .tier = "pro"}), 5);
}

TEST(Tier, TakesBackNothingOfWhatAnotherCounted) {
  EngineUnderTest under_test(R"(
identity: { tier: { default: free } }
tiers:
  free: { t: 10/min burst 2 }
  gold: { t: 100/h }
rules:
  - { name: r, key: user, limit: { tier: t } }
)");
  ASSERT_EQ(under_test.Check({.user = "ann", .tier = "gold"}, 50).remaining, 50);
  // Half an hour's worth is far above what the smaller limit can have led to.
  const Decision denied = under_test.Check({.user = "ann", .tier = "free"});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, std::chrono::minutes(30) - std::chrono::seconds(6));
  under_test.Peek({.user = "ann", .tier = "free"});
  EXPECT_EQ(under_test.Check({.user = "ann", .tier = "gold"}).remaining, 49);
}

}  // namespace
}  // namespace weir
