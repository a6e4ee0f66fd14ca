// Whom a rule counts, and for whom it is enforced.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

std::string RuleWith(std::string_view parts) {
  return "rules:\n  - { name: r, limit: 2/min, " + std::string(parts) + " }\n";
}

TEST(Keys, CountThoseTogetherWhoLackAPartOfTheKey) {
  EngineUnderTest under_test(RuleWith("key: user"));
  EXPECT_TRUE(under_test.Allows({.ip = "192.0.2.1"}));
  EXPECT_TRUE(under_test.Allows({.ip = "192.0.2.2"}));
  EXPECT_FALSE(under_test.Allows({.ip = "192.0.2.3"}));
  EXPECT_TRUE(under_test.Allows({.user = "ann"}));
}

TEST(Keys, RefuseThoseWhoLackAPartIfThePolicySaysSo) {
  EngineUnderTest under_test(RuleWith("key: user, unidentified: deny"));
  const Decision denied = under_test.Check({.ip = "192.0.2.1"});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kDenyList);
  EXPECT_EQ(denied.rule, "r");
  EXPECT_EQ(under_test.Exhaust({.user = "ann"}), 2);
}

TEST(Keys, PassOverThoseWhoLackAPartIfThePolicySaysSo) {
  EngineUnderTest under_test(RuleWith("key: user, unidentified: skip"));
  EXPECT_EQ(under_test.Check({.ip = "192.0.2.1"}).reason, Reason::kNoRule);
  EXPECT_EQ(under_test.Exhaust({.user = "ann"}), 2);
}

TEST(Keys, FollowTheWholePolicyWhereTheRuleSaysNothing) {
  EngineUnderTest under_test(R"(
unidentified: deny
rules:
  - { name: strict, match: { path: /a }, key: user, limit: 2/min }
  - { name: loose, match: { path: /b }, key: user, limit: 2/min, unidentified: shared }
)");
  EXPECT_FALSE(under_test.Allows({.path = "/a"}));
  EXPECT_TRUE(under_test.Allows({.path = "/b"}));
}

TEST(Keys, AreMadeOfTheFirstAttributeThatIsThere) {
  EngineUnderTest under_test(RuleWith("key: { first_of: [api_key, user, ip] }"));
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1", .user = "ann", .api_key = "k"}), 2);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1", .user = "ann"}), 2);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1"}), 2);
  EXPECT_FALSE(under_test.Allows({.ip = "192.0.2.99", .api_key = "k"}));
  EXPECT_FALSE(under_test.Allows({.ip = "192.0.2.99", .user = "ann"}));
}

TEST(Keys, DoNotConfuseWhatOneAttributeSaysWithAnother) {
  EngineUnderTest under_test(RuleWith("key: { first_of: [api_key, user] }"));
  EXPECT_EQ(under_test.Exhaust({.user = "x"}), 2);
  EXPECT_TRUE(under_test.Allows({.api_key = "x"}));
  EngineUnderTest both(RuleWith("key: [user, org]"));
  EXPECT_EQ(both.Exhaust({.user = "a", .org = "bc"}), 2);
  EXPECT_TRUE(both.Allows({.user = "ab", .org = "c"}));
}

TEST(Keys, CountAddressesByTheirPrefix) {
  EngineUnderTest plain(RuleWith("key: ip"));
  EXPECT_EQ(plain.Exhaust({.ip = "2001:db8:1:2::1"}), 2);
  EXPECT_FALSE(plain.Allows({.ip = "2001:db8:1:2:ffff::9"}));
  EXPECT_TRUE(plain.Allows({.ip = "2001:db8:1:3::1"}));
  EXPECT_EQ(plain.Exhaust({.ip = "192.0.2.1"}), 2);
  EXPECT_FALSE(plain.Allows({.ip = "::ffff:192.0.2.1"}));
  EXPECT_TRUE(plain.Allows({.ip = "192.0.2.2"}));

  EngineUnderTest wide(RuleWith("key: { ip: { v4: 24, v6: 48 } }"));
  EXPECT_EQ(wide.Exhaust({.ip = "2001:db8:1:2::1"}), 2);
  EXPECT_FALSE(wide.Allows({.ip = "2001:db8:1:3::1"}));
  EXPECT_EQ(wide.Exhaust({.ip = "192.0.2.1"}), 2);
  EXPECT_FALSE(wide.Allows({.ip = "192.0.2.200"}));
  EXPECT_TRUE(wide.Allows({.ip = "192.0.3.1"}));
}

TEST(Keys, TellVisitorsApartByAddressAndUserAgent) {
  EngineUnderTest under_test(RuleWith("key: fingerprint"));
  const std::array<NamedValue, 1> firefox = {{{"User-Agent", "Firefox"}}};
  const std::array<NamedValue, 1> chrome = {{{"user-agent", "Chrome"}}};
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1", .headers = firefox}), 2);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1", .headers = chrome}), 2);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.1"}), 2);
  EXPECT_EQ(under_test.Exhaust({.ip = "192.0.2.2", .headers = firefox}), 2);
}

TEST(Keys, MayHoldAPieceOfThePath) {
  EngineUnderTest under_test(R"(
rules:
  - { name: shop, match: { path: "/shops/{shop}/**" }, key: path.shop, limit: 2/min }
  - { name: item, match: { path: "/shops/*/items/{shop}" }, key: path.shop, limit: 50/min }
)");
  EXPECT_EQ(under_test.Exhaust({.path = "/shops/a/items/1"}), 2);
  EXPECT_FALSE(under_test.Allows({.path = "/shops/a/items/2"}));
  EXPECT_TRUE(under_test.Allows({.path = "/shops/b/items/1"}));
  EXPECT_EQ(under_test.Remaining("item", {.path = "/shops/z/items/1"}), 47);
}

TEST(Keys, ThatAreHashedCountAsTheOthersDo) {
  EngineUnderTest under_test(RuleWith("key: { api_key: { hash: true } }"));
  EXPECT_EQ(under_test.Exhaust({.api_key = "secret-1"}), 2);
  EXPECT_EQ(under_test.Exhaust({.api_key = "secret-2"}), 2);
  const Explanation why = under_test.engine.Explain({.api_key = "secret-1"});
  ASSERT_EQ(why.rules.size(), 1U);
  EXPECT_EQ(why.rules[0].key.find("secret-1"), std::string::npos);
}

TEST(Keys, OfTheSameWhoeverAreApartUnderEveryRule) {
  EngineUnderTest under_test(R"(
rules:
  - { name: a, match: { path: /a }, key: user, limit: 2/min }
  - { name: b, match: { path: /b }, key: user, limit: 2/min }
)");
  EXPECT_EQ(under_test.Exhaust({.user = "ann", .path = "/a"}), 2);
  EXPECT_EQ(under_test.Exhaust({.user = "ann", .path = "/b"}), 2);
  EXPECT_EQ(under_test.Exhaust({.user = "a", .path = "/a"}), 2);
  EXPECT_EQ(under_test.Exhaust({.user = "b", .path = "/b"}), 2);
}

// --- enforce_percent ---

constexpr int kKeys = 10'000;

// For which of many keys a rule of which only a share is enforced denies.
std::vector<bool> Enforced(EngineUnderTest& under_test) {
  std::vector<bool> enforced;
  for (int i = 0; i < kKeys; ++i) {
    const std::string user = "user" + std::to_string(i);
    enforced.push_back(!under_test.Allows({.user = user}));
  }
  return enforced;
}
std::vector<bool> EnforcedAt(std::string_view percent, std::string_view name = "r") {
  EngineUnderTest under_test("rules:\n  - { name: " + std::string(name) +
                             ", key: user, limit: deny, enforce_percent: " + std::string(percent) +
                             " }\n");
  return Enforced(under_test);
}

TEST(EnforcePercent, EnforcesForAboutThatShareOfKeys) {
  const auto count = [](const std::vector<bool>& keys) { return std::ranges::count(keys, true); };
  EXPECT_EQ(count(EnforcedAt("0")), 0);
  EXPECT_NEAR(static_cast<double>(count(EnforcedAt("1"))), 100, 50);
  EXPECT_NEAR(static_cast<double>(count(EnforcedAt("10"))), 1'000, 150);
  EXPECT_NEAR(static_cast<double>(count(EnforcedAt("50"))), 5'000, 250);
  EXPECT_EQ(count(EnforcedAt("100")), kKeys);
}

TEST(EnforcePercent, PicksTheSameKeysEveryTimeAndInEveryProcess) {
  EngineUnderTest under_test(
      "rules:\n  - { name: r, key: user, limit: deny, enforce_percent: 10 }\n");
  const std::vector<bool> first = Enforced(under_test);
  EXPECT_EQ(Enforced(under_test), first);
  EXPECT_EQ(EnforcedAt("10"), first);
}

TEST(EnforcePercent, KeepsTheKeysItHasWhenTheShareGrows) {
  std::vector<bool> before = EnforcedAt("0.5");
  for (const char* percent : {"5", "10", "20", "60", "99.9"}) {
    const std::vector<bool> after = EnforcedAt(percent);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i] || !before[i]) << percent;
    before = after;
  }
}

TEST(EnforcePercent, PicksOthersForAnotherRule) {
  EXPECT_NE(EnforcedAt("10", "r"), EnforcedAt("10", "s"));
}

TEST(EnforcePercent, CountsTheRestAsAShadowWould) {
  EngineUnderTest under_test(
      "rules:\n  - { name: r, key: user, limit: 2/min, enforce_percent: 0 }\n");
  std::array<RuleDecision, 1> each;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(under_test.engine.Check({.user = "ann"}, {}, each).decision.allowed);
    EXPECT_TRUE(each[0].shadow);
    EXPECT_EQ(each[0].decision.allowed, i < 2);
  }
}

}  // namespace
}  // namespace weir
