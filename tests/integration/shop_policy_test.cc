// The example of the documentation, as a whole: what a stranger, a customer and an intruder get.
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year;

constexpr Request kStranger{.ip = "203.0.113.9", .method = "GET", .path = "/"};
constexpr Request kLogin{.ip = "203.0.113.9", .method = "POST", .path = "/auth/login"};
constexpr Request kFree{.ip = "203.0.113.1", .user = "ann", .method = "GET", .path = "/"};
constexpr Request kPro{
    .ip = "203.0.113.2", .user = "bob", .tier = "pro", .method = "GET", .path = "/"};

class ShopPolicy : public testing::Test {
 protected:
  static Policy Shop() {
    PolicyReport report = Policy::Load(WEIR_SOURCE_DIR "/examples/policies/shop.yaml");
    for (const Problem& problem : report.problems) ADD_FAILURE() << problem.ToString();
    return report.policy.value();
  }
  // Uses up what is left of the day, past the other layers.
  void UseUpTheDay(const Request& who) {
    const std::array<std::string_view, 1> only = {"daily-quota"};
    Request request = who;
    request.rules = only;
    EXPECT_EQ(under_test_.Exhaust(request, 2'000), 1'000);
  }
  void GoTo(WallTime wall) { under_test_.clock.Advance(wall - under_test_.clock.Read().wall); }

  EngineUnderTest under_test_{Shop()};
};

TEST_F(ShopPolicy, CountsAStrangerByAddressOnly) {
  const Answer first = under_test_.engine.Check(kStranger);
  EXPECT_EQ(first.rules, 1U);
  EXPECT_EQ(first.decision.rule, "per-ip");
  EXPECT_EQ(first.decision.limit, 200);
  EXPECT_EQ(under_test_.Exhaust(kStranger), 199);
  const Decision denied = under_test_.Check(kStranger);
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.source, Source::kMemory);
  EXPECT_GT(denied.retry_after, Duration(0));
  EXPECT_TRUE(under_test_.Allows({.ip = "203.0.113.10", .path = "/"}));
  under_test_.clock.Advance(minutes(2));
  EXPECT_TRUE(under_test_.Allows(kStranger));
}

TEST_F(ShopPolicy, GivesAUserOfTheFreeTierFiftyAtOnceAndThenTenAMinute) {
  EXPECT_EQ(under_test_.engine.Check(kFree).rules, 3U);
  EXPECT_EQ(under_test_.Exhaust(kFree), 49);
  const Decision denied = under_test_.Check(kFree);
  EXPECT_EQ(denied.rule, "per-user");
  EXPECT_EQ(denied.retry_after, seconds(6));
  under_test_.clock.Advance(minutes(1));
  EXPECT_EQ(under_test_.Exhaust(kFree), 10);
  EXPECT_EQ(under_test_.Remaining("daily-quota", kFree), 940);
}

TEST_F(ShopPolicy, GivesAUserOfTheProTierTwoHundredAtOnceAndThenAHundredASecond) {
  const Request elsewhere{.ip = "203.0.113.77", .user = "bob", .tier = "pro", .path = "/"};
  int admitted = 0;
  for (int i = 0; i < 200; ++i) {
    if (under_test_.Allows(i % 2 == 0 ? kPro : elsewhere)) ++admitted;
  }
  EXPECT_EQ(admitted, 200);
  EXPECT_EQ(under_test_.Check(kPro).rule, "per-user");
  EXPECT_EQ(under_test_.Check(kPro).limit, 200);
  under_test_.clock.Advance(seconds(1));
  EXPECT_EQ(under_test_.Remaining("per-user", kPro), 100);
  EXPECT_EQ(under_test_.Remaining("daily-quota", kPro), 999'800);
}

TEST_F(ShopPolicy, TakesAUserWhoseTierNobodyKnowsForFree) {
  Request request = kFree;
  request.tier = "platinum";
  EXPECT_EQ(under_test_.Check(request).limit, 50);
  EXPECT_EQ(under_test_.notices().size(), 1U);
}

TEST_F(ShopPolicy, AllowsFiveLoginsAMinuteAndADenialChargesNoOtherLayer) {
  EXPECT_EQ(under_test_.Exhaust(kLogin), 5);
  for (int i = 0; i < 100; ++i) {
    const Answer denied = under_test_.engine.Check(kLogin);
    EXPECT_EQ(denied.decision.rule, "credentials");
    EXPECT_EQ(denied.decision.retry_after, minutes(1));
    EXPECT_EQ(denied.message, "Too many authentication attempts");
  }
  std::array<RuleDecision, 3> each;
  under_test_.engine.Peek(kLogin, {}, each);
  EXPECT_EQ(each[0].decision.rule, "per-ip");
  EXPECT_EQ(each[0].decision.remaining, 195);
  EXPECT_EQ(each[2].decision.rule, "write");
  EXPECT_TRUE(each[2].shadow);
  EXPECT_EQ(each[2].decision.remaining, 5);

  Request register_too = kLogin;
  register_too.path = "/auth/register";
  EXPECT_FALSE(under_test_.Allows(register_too));  // The three share a count.
  Request get = kLogin;
  get.method = "GET";
  EXPECT_TRUE(under_test_.Allows(get));
  under_test_.clock.Advance(minutes(1));
  EXPECT_EQ(under_test_.Exhaust(kLogin), 5);
}

TEST_F(ShopPolicy, DeniesAUserOverTheDailyQuotaUntilMidnightInBerlin) {
  GoTo(sys_days(year(2025) / 6 / 10) + hours(20));  // 22:00 there.
  UseUpTheDay(kFree);
  const Decision denied = under_test_.Check(kFree);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.rule, "daily-quota");
  EXPECT_EQ(denied.retry_after, hours(2));
  EXPECT_EQ(under_test_.Remaining("per-user", kFree), 50);
  EXPECT_EQ(under_test_.Remaining("per-ip", kFree), 200);
  under_test_.clock.Advance(hours(2) - std::chrono::nanoseconds(1));
  EXPECT_FALSE(under_test_.Allows(kFree));
  under_test_.clock.Advance(std::chrono::nanoseconds(1));
  EXPECT_TRUE(under_test_.Allows(kFree));
  EXPECT_EQ(under_test_.Remaining("daily-quota", kFree), 999);
}

TEST_F(ShopPolicy, KnowsThatSomeDaysAreShorterOrLonger) {
  GoTo(sys_days(year(2025) / 3 / 29) + hours(23) + minutes(30));  // 00:30 on the 30th.
  UseUpTheDay(kFree);
  EXPECT_EQ(under_test_.Check(kFree).retry_after, hours(22) + minutes(30));
  under_test_.clock.Advance(hours(22) + minutes(30));
  EXPECT_TRUE(under_test_.Allows(kFree));

  GoTo(sys_days(year(2025) / 10 / 25) + hours(22) + minutes(30));  // 00:30 on the 26th.
  UseUpTheDay(kFree);
  EXPECT_EQ(under_test_.Check(kFree).retry_after, hours(24) + minutes(30));
  under_test_.clock.Advance(hours(24));
  EXPECT_FALSE(under_test_.Allows(kFree));
  under_test_.clock.Advance(minutes(30));
  EXPECT_TRUE(under_test_.Allows(kFree));
}

// A search as it comes in over a socket.
class Search {
 public:
  Search(Engine& engine, std::string_view peer) : engine_(engine), peer_(peer) {}
  RuleDecision At(std::string_view cost) {
    const std::array<NamedValue, 2> headers = {{{"X-Api-Key", "key-1"}, {"X-Query-Cost", cost}}};
    const Incoming incoming{
        .peer = peer_, .method = "GET", .path = "/search/shoes?size=42", .headers = headers};
    std::array<RuleDecision, 2> each;
    EXPECT_EQ(engine_.Check(incoming, storage_, {}, each).rules, 2U);
    EXPECT_EQ(each[0].decision.cost, 1);  // By address it is one request.
    return each[1];
  }

 private:
  Engine& engine_;
  std::string_view peer_;
  IdentityStorage storage_;
};

TEST_F(ShopPolicy, BelievesWhatASearchCostsOnlyFromATrustedSender) {
  Search trusted(under_test_.engine, "127.0.0.1");
  EXPECT_EQ(trusted.At("30").decision.rule, "search");
  EXPECT_EQ(trusted.At("30").decision.remaining, 40);
  EXPECT_EQ(trusted.At("0").decision.cost, 1);
  EXPECT_EQ(trusted.At("999").decision.cost, 50);
  EXPECT_EQ(trusted.At("30").decision.remaining, 9);
  Search stranger(under_test_.engine, "198.51.100.7");
  EXPECT_EQ(stranger.At("30").decision.cost, 1);
  EXPECT_EQ(stranger.At("0").decision.remaining, 7);  // The same key, whoever sends it.
}

TEST_F(ShopPolicy, OnlyTriesOutTheLimitOnWrites) {
  Request order = kPro;
  order.method = "POST";
  order.path = "/orders";
  std::array<RuleDecision, 4> each;
  for (int i = 1; i <= 30; ++i) {
    EXPECT_TRUE(under_test_.engine.Check(order, {}, each).decision.allowed);
    EXPECT_EQ(each[3].decision.rule, "write");
    EXPECT_TRUE(each[3].shadow);
    EXPECT_EQ(each[3].decision.allowed, i <= 10);
  }
}

}  // namespace
}  // namespace weir
