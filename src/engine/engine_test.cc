// Which rules a request meets, what they take together, and which of them speaks.
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kTwoLayers = R"(
rules:
  - { name: wide, key: ip, limit: 100/min }
  - { name: narrow, match: { path: /login }, key: ip, limit: 3/min, message: Slow down }
)";
constexpr Request kLogin{.ip = "203.0.113.9", .path = "/login"};
constexpr Request kHome{.ip = "203.0.113.9", .path = "/"};

TEST(Engine, LetsThroughWhatNoRuleIsAbout) {
  EngineUnderTest under_test(R"(
rules:
  - { name: login, match: { path: /login }, key: ip, limit: 1/min }
)");
  const Answer answer = under_test.engine.Check(kHome);
  EXPECT_TRUE(answer.decision.allowed);
  EXPECT_EQ(answer.decision.reason, Reason::kNoRule);
  EXPECT_EQ(answer.rules, 0U);
  EXPECT_EQ(answer.decision.cost, 1);
}

TEST(Engine, LooksAtTheAllowListBeforeTheDenyListAndAtBothBeforeRules) {
  EngineUnderTest under_test(R"(
allow: { ip: 10.0.0.0/8 }
deny: [ { ip: 10.0.0.1 }, { header.user-agent: "*badbot*" } ]
rules:
  - { name: everybody, key: ip, limit: 1/min }
)");
  const Request friendly{.ip = "10.0.0.1"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(under_test.Check(friendly).reason, Reason::kAllowList);
    EXPECT_TRUE(under_test.Check(friendly).allowed);
  }
  const std::array<NamedValue, 1> bad = {{{"User-Agent", "x badbot y"}}};
  const Decision denied = under_test.Check({.ip = "192.0.2.7", .headers = bad});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kDenyList);
  EXPECT_EQ(denied.retry_after, kNever);
  EXPECT_EQ(under_test.Remaining("everybody", {.ip = "192.0.2.7"}), 1);
}

TEST(Engine, ChargesNoLayerWhenOneDenies) {
  EngineUnderTest under_test(kTwoLayers);
  EXPECT_EQ(under_test.Exhaust(kLogin), 3);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(under_test.Allows(kLogin));
  EXPECT_EQ(under_test.Remaining("wide", kHome), 97);
}

TEST(Engine, LetsTheTightestRuleSpeakAndOnADenialTheOneWithTheLongestWait) {
  EngineUnderTest under_test(R"(
rules:
  - { name: wide, key: ip, limit: 100/min }
  - { name: narrow, key: ip, limit: 4/min, message: narrow speaks }
  - { name: slow, key: ip, limit: 4/h, message: slow speaks }
)");
  EXPECT_EQ(under_test.Check(kHome).rule, "slow");  // As little left, and longer to wait for it.
  EXPECT_EQ(under_test.Check(kHome, 3).remaining, 0);
  const Answer denied = under_test.engine.Check(kHome);
  EXPECT_EQ(denied.decision.rule, "slow");
  EXPECT_EQ(denied.decision.retry_after, minutes(15));
  EXPECT_EQ(denied.message, "slow speaks");
  EXPECT_EQ(denied.rules, 3U);
}

TEST(Engine, GivesAMessageOnlyToThoseItDenies) {
  EngineUnderTest under_test(kTwoLayers);
  EXPECT_EQ(under_test.engine.Check(kLogin).message, "");
  under_test.Exhaust(kLogin);
  EXPECT_EQ(under_test.engine.Check(kLogin).message, "Slow down");
  EXPECT_EQ(under_test.engine.Peek(kLogin).message, "Slow down");
}

TEST(Engine, NeverLetsAShadowVetoAndChargesItOnlyIfTheOthersPass) {
  EngineUnderTest under_test(R"(
rules:
  - { name: real, key: ip, limit: 5/min }
  - { name: trial, key: ip, limit: 2/min, mode: shadow }
  - { name: wide-trial, key: ip, limit: 100/min, mode: shadow }
)");
  std::array<RuleDecision, 3> each;
  const Answer first = under_test.engine.Check(kHome, {}, each);
  EXPECT_EQ(first.decision.rule, "real");
  EXPECT_FALSE(each[0].shadow);
  EXPECT_TRUE(each[1].shadow);
  EXPECT_EQ(under_test.Exhaust(kHome), 4);
  EXPECT_FALSE(under_test.engine.Check(kHome, {}, each).decision.allowed);
  EXPECT_FALSE(each[1].decision.allowed);
  EXPECT_EQ(each[2].decision.remaining, 95);  // Not charged for what was denied.
}

TEST(Engine, TakesARuleThatIsOffForAbsent) {
  EngineUnderTest under_test(R"(
rules:
  - { name: asleep, key: ip, limit: deny, mode: off }
)");
  EXPECT_EQ(under_test.Check(kHome).reason, Reason::kNoRule);
}

TEST(Engine, AppliesOnlyTheRulesThatARequestNames) {
  EngineUnderTest under_test(kTwoLayers);
  const std::array<std::string_view, 2> names = {"narrow", "no such rule"};
  Request request = kLogin;
  request.rules = names;
  EXPECT_EQ(under_test.engine.Check(request).rules, 1U);
  EXPECT_EQ(under_test.Remaining("wide", kLogin), 100);
  EXPECT_EQ(under_test.Remaining("narrow", kLogin), 2);
  Request elsewhere = kHome;  // The rule's own conditions still hold.
  elsewhere.rules = names;
  EXPECT_EQ(under_test.engine.Check(elsewhere).rules, 0U);
}

TEST(Engine, TellsWhatEachRuleDecidedInTheirOrderAsFarAsThereIsRoom) {
  EngineUnderTest under_test(kTwoLayers);
  std::array<RuleDecision, 3> each;
  EXPECT_EQ(under_test.engine.Check(kLogin, {.cost = 2}, each).rules, 2U);
  EXPECT_EQ(each[0].decision.rule, "wide");
  EXPECT_EQ(each[0].decision.remaining, 98);
  EXPECT_EQ(each[1].decision.rule, "narrow");
  EXPECT_EQ(each[1].decision.remaining, 1);
  EXPECT_EQ(each[2].decision.rule, "");
  EXPECT_FALSE(
      under_test.engine.Check(kLogin, {.cost = 2}, std::span(each).first(1)).decision.allowed);
  EXPECT_EQ(each[0].decision.remaining, 98);
  EXPECT_EQ(each[1].decision.remaining, 1);  // As it was: there was no room for it.
}

std::string ManyRules(int count, std::string_view more) {
  std::string yaml = "rules:\n";
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    yaml += "  - { name: r" + number + ", match: { path: /** }, key: [ip, header.h" + number +
            "], limit: 10/min" + std::string(more) + " }\n";
  }
  return yaml;
}

TEST(Engine, CountsUnderSixtyFourRulesAtOnceAndRefusesWhatWouldNeedMore) {
  EngineUnderTest fits(ManyRules(64, ""));
  EXPECT_EQ(fits.engine.Check(kHome).rules, 64U);
  EXPECT_TRUE(fits.notices().empty());

  EngineUnderTest crowded(ManyRules(65, ""));
  for (int i = 0; i < 3; ++i) {
    const Decision decision = crowded.Check(kHome);
    EXPECT_FALSE(decision.allowed);
    EXPECT_EQ(decision.reason, Reason::kOverload);
  }
  EXPECT_THAT(crowded.notices(), ElementsAre(HasSubstr("more than 64 rules")));
}

TEST(Engine, PassesOverAnyNumberOfRulesWhoseKeysTheRequestLacks) {
  EngineUnderTest under_test(ManyRules(300, ", unidentified: skip"));
  EXPECT_EQ(under_test.Check(kHome).reason, Reason::kNoRule);
  const std::array<NamedValue, 2> headers = {{{"h7", "x"}, {"H299", "y"}}};
  Request request = kHome;
  request.headers = headers;
  std::array<RuleDecision, 2> each;
  EXPECT_EQ(under_test.engine.Check(request, {}, each).rules, 2U);
  EXPECT_EQ(each[0].decision.rule, "r7");
  EXPECT_EQ(each[1].decision.rule, "r299");
}

TEST(Engine, RefundsPenalizesAndResetsUnderTheRulesThatAreMeant) {
  EngineUnderTest under_test(kTwoLayers);
  const std::array<std::string_view, 1> wide = {"wide"};
  Request meant = kLogin;
  meant.rules = wide;
  under_test.Check(kLogin, 2);
  under_test.engine.Refund(meant, {.cost = 1});
  EXPECT_EQ(under_test.Remaining("wide", kLogin), 99);
  EXPECT_EQ(under_test.Remaining("narrow", kLogin), 1);
  under_test.engine.Penalize(kLogin, {.cost = 5});
  EXPECT_EQ(under_test.Remaining("wide", kLogin), 94);
  EXPECT_FALSE(under_test.Allows(kLogin));
  under_test.engine.Reset(kLogin);
  EXPECT_EQ(under_test.Remaining("wide", kLogin), 100);
  EXPECT_EQ(under_test.Exhaust(kLogin), 3);
}

TEST(Engine, TakesACostOfNothingForAQuestion) {
  EngineUnderTest under_test(kTwoLayers);
  EXPECT_TRUE(under_test.Check(kLogin, 0).allowed);
  EXPECT_TRUE(under_test.Check(kLogin, -7).allowed);
  EXPECT_EQ(under_test.Remaining("narrow", kLogin), 3);
  under_test.Exhaust(kLogin);
  EXPECT_FALSE(under_test.Check(kLogin, 0).allowed);
}

constexpr std::string_view kReserving = R"(
rules:
  - { name: calls, key: user, limit: 10/min, cost: 1 }
  - { name: tokens, key: user, limit: 1000/min }
)";

TEST(Engine, SettlesAReservationOnceAndLeavesCostsOfTheirOwnAlone) {
  EngineUnderTest under_test(kReserving);
  const Request ann{.user = "ann"};
  const Answer taken = under_test.engine.Reserve(ann, {.cost = 400});
  ASSERT_TRUE(taken.decision.allowed);
  ASSERT_NE(taken.decision.reservation, ReservationId::kNone);
  EXPECT_EQ(under_test.Remaining("tokens", ann), 600);
  const Result<Decision> settled = under_test.engine.Commit(taken.decision.reservation, 150);
  ASSERT_TRUE(settled);
  EXPECT_EQ(under_test.Remaining("tokens", ann), 850);
  EXPECT_EQ(under_test.Remaining("calls", ann), 9);
  EXPECT_EQ(under_test.engine.Commit(taken.decision.reservation, 150).error().code,
            ErrorCode::kNotFound);
  EXPECT_EQ(under_test.Remaining("tokens", ann), 850);
}

TEST(Engine, GivesACancelledReservationBackUnderEveryRule) {
  EngineUnderTest under_test(kReserving);
  const Request ann{.user = "ann"};
  const Answer taken = under_test.engine.Reserve(ann, {.cost = 400});
  ASSERT_TRUE(under_test.engine.Cancel(taken.decision.reservation));
  EXPECT_EQ(under_test.Remaining("tokens", ann), 1000);
  EXPECT_EQ(under_test.Remaining("calls", ann), 10);
}

TEST(Engine, LetsAReservationExpireAndTheChargeStay) {
  EngineUnderTest under_test(kReserving);
  const Request ann{.user = "ann"};
  const Answer taken = under_test.engine.Reserve(ann, {.cost = 400}, seconds(5));
  under_test.clock.Advance(seconds(6));
  EXPECT_FALSE(under_test.engine.Commit(taken.decision.reservation, 1));
  EXPECT_EQ(under_test.Remaining("tokens", ann), 700);
}

TEST(Engine, ReservesUnderARuleThatBansAndAnswersForTheRuleWhenItIsSettled) {
  EngineUnderTest under_test(R"(
rules:
  - name: login
    key: ip
    limit: 5/min
    algorithm: sliding_log
    block: { after: 2 denials in 1min, for: 10min }
)");
  const Answer taken = under_test.engine.Reserve(kHome, {.cost = 2});
  const Result<Decision> cancelled = under_test.engine.Cancel(taken.decision.reservation);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->rule, "login");
  EXPECT_EQ(cancelled->limit, 5);
  EXPECT_EQ(cancelled->remaining, 5);
}

TEST(Engine, FreesAPlaceWhenItIsReleased) {
  EngineUnderTest under_test(R"(
rules:
  - { name: at-once, key: user, limit: 2 concurrent lease 30s }
  - { name: rate, key: user, limit: 100/min }
)");
  const Request ann{.user = "ann"};
  const Decision first = under_test.Check(ann);
  ASSERT_NE(first.reservation, ReservationId::kNone);
  EXPECT_TRUE(under_test.Allows(ann));
  EXPECT_EQ(under_test.Check(ann).rule, "at-once");
  EXPECT_EQ(under_test.Remaining("rate", ann), 98);
  ASSERT_TRUE(under_test.engine.Release(first.reservation));
  EXPECT_TRUE(under_test.Allows(ann));
  EXPECT_EQ(under_test.Remaining("rate", ann), 97);  // A rate is not given back.
}

TEST(Engine, SaysWhenThereAreTooManyReservations) {
  EngineUnderTest under_test(PolicyOf(kReserving), 1);
  EXPECT_TRUE(under_test.engine.Reserve({.user = "ann"}).decision.allowed);
  EXPECT_EQ(under_test.engine.Reserve({.user = "bob"}).decision.reason, Reason::kOverload);
  EXPECT_EQ(under_test.Remaining("calls", {.user = "bob"}), 10);
}

TEST(Engine, KeepsTheTextsOfItsAnswersWhenThePolicyIsReplaced) {
  EngineUnderTest under_test(kTwoLayers);
  under_test.Exhaust(kLogin);
  const Answer answer = under_test.engine.Check(kLogin);
  for (int i = 0; i < 50; ++i) {
    under_test.Apply("rules:\n  - { name: other" + std::to_string(i) +
                     ", key: ip, limit: 1/min, message: text " + std::to_string(i) + " }\n");
  }
  EXPECT_EQ(answer.decision.rule, "narrow");
  EXPECT_EQ(answer.message, "Slow down");
}

TEST(Engine, IsNotMadeWithoutTheSecretsOfItsStore) {
  PolicySpec spec;
  spec.store = {"redis://:env:WEIR_TEST_NO_SUCH_VARIABLE@127.0.0.1:6379"};
  const Result<Engine> engine = Engine::Make(PolicyOf(spec));
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(engine.error().message.starts_with("store: redis://127.0.0.1:6379: "));
  EXPECT_FALSE(Engine::Make(PolicyOf(PolicySpec()), {.max_reservations = std::size_t{1} << 30}));
}

TEST(Engine, FindsWhoIsAskingAsThePolicyInForceSays) {
  EngineUnderTest under_test(R"(
trusted_proxies: [127.0.0.1]
identity: { user: { header: x-user } }
rules:
  - { name: per-user, match: { user: present }, key: user, limit: 1/min }
  - { name: per-ip, key: ip, limit: 2/min }
)");
  IdentityStorage storage;
  const std::array<NamedValue, 2> headers = {{{"X-User", "ann"}, {"X-Forwarded-For", "192.0.2.1"}}};
  const auto from = [&](std::string_view peer) {
    return under_test.engine.Check(Incoming{.peer = peer, .path = "/", .headers = headers},
                                   storage);
  };
  EXPECT_EQ(from("127.0.0.1").rules, 2U);
  EXPECT_EQ(from("127.0.0.1").decision.rule, "per-user");
  EXPECT_EQ(from("198.51.100.1").rules, 1U);  // Not believed.
  EXPECT_EQ(under_test.Remaining("per-ip", {.ip = "192.0.2.1"}), 1);
  EXPECT_EQ(under_test.Remaining("per-ip", {.ip = "198.51.100.1"}), 1);
}

TEST(Engine, SaysOnceThatForwardingHeadersArePassedOver) {
  constexpr std::string_view kNoProxies = "rules:\n  - { name: r, key: ip, limit: 9/min }\n";
  EngineUnderTest under_test(kNoProxies);
  IdentityStorage storage;
  const std::array<NamedValue, 1> headers = {{{"X-Forwarded-For", "192.0.2.1"}}};
  for (int i = 0; i < 3; ++i) {
    under_test.engine.Check(Incoming{.peer = "10.0.0.1", .headers = headers}, storage);
    under_test.Apply(kNoProxies);
  }
  EXPECT_EQ(under_test.notices().size(), 1U);
}

}  // namespace
}  // namespace weir
