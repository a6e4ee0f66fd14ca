// Many requests at once, and requests that bring their limit along.
#include <array>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine_under_test.h"

namespace weir {
namespace {

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::string_view kLayeredPolicy = R"(
allow: { ip: 10.0.0.0/8 }
rules:
  - { name: wide, key: ip, limit: 100/min }
  - { name: narrow, match: { path: /login }, key: ip, limit: 3/min, message: Slow down }
  - { name: resting, key: ip, limit: 1/min, mode: off }
)";

Limit LimitWith(std::string_view text, Algorithm algorithm = Algorithm::kTokenBucket) {
  return Limit::Parse(text, {.algorithm = algorithm}).value();
}

Decision Ask(Engine& engine, LimitRequest request, Now now) {
  engine.CheckLimits({&request, 1}, now);
  return request.decision;
}

TEST(EngineBatch, DecidesEveryRequestForItsOwnTime) {
  EngineUnderTest batched(kLayeredPolicy);
  EngineUnderTest single(kLayeredPolicy);
  std::vector<BatchRequest> requests;
  for (int i = 0; i < 60; ++i) {
    requests.push_back(
        {.request = {.ip = "192.0.2.1", .path = "/login"}, .later = seconds(i * i / 8)});
  }
  batched.engine.CheckBatch(requests, batched.clock.Read());
  const Now began = single.clock.Read();
  int allowed = 0;
  for (const BatchRequest& item : requests) {
    single.clock.Advance(began.steady + item.later - single.clock.Read().steady);
    const Answer answer = single.engine.Check(item.request);
    EXPECT_EQ(item.answer.decision.allowed, answer.decision.allowed);
    EXPECT_EQ(item.answer.decision.retry_after, answer.decision.retry_after);
    allowed += answer.decision.allowed ? 1 : 0;
  }
  EXPECT_GT(allowed, 10);
  EXPECT_LT(allowed, 50);
}

TEST(EngineBatch, TellsKeysApart) {
  EngineUnderTest under_test(kLayeredPolicy);
  std::array<std::array<RuleDecision, 2>, 3> each{};
  std::array<BatchRequest, 3> requests = {
      {{.request = {.ip = "192.0.2.1", .path = "/login"}, .each = each[0]},
       {.request = {.ip = "192.0.2.2", .path = "/login"}, .each = each[1]},
       {.request = {.ip = "192.0.2.1", .path = "/login"}, .each = each[2]}}};
  under_test.engine.CheckBatch(requests, under_test.clock.Read());
  EXPECT_EQ(each[0][0].key, each[2][0].key);
  EXPECT_EQ(each[0][1].key, each[2][1].key);
  EXPECT_NE(each[0][0].key, each[1][0].key);
  EXPECT_NE(each[0][0].key, each[0][1].key);
}

TEST(EngineBatch, AnswersEveryRequestAsCheckWould) {
  EngineUnderTest batched(kLayeredPolicy);
  EngineUnderTest single(kLayeredPolicy);
  const std::array<std::string, 3> addresses = {"192.0.2.1", "192.0.2.2", "10.0.0.1"};
  std::vector<BatchRequest> requests;
  for (int i = 0; i < 100; ++i) {
    const bool login = i % 3 != 0;
    requests.push_back({.request = {.ip = addresses[static_cast<std::size_t>(i) % 3],
                                    .path = login ? "/login" : "/"},
                        .cost = i % 4});
  }
  batched.engine.CheckBatch(requests, batched.clock.Read());
  int denied = 0;
  for (const BatchRequest& item : requests) {
    const Answer answer = single.engine.Check(item.request, {.cost = item.cost});
    EXPECT_EQ(item.answer.decision.allowed, answer.decision.allowed);
    EXPECT_EQ(item.answer.decision.reason, answer.decision.reason);
    EXPECT_EQ(item.answer.decision.rule, answer.decision.rule);
    EXPECT_EQ(item.answer.decision.remaining, answer.decision.remaining);
    EXPECT_EQ(item.answer.decision.retry_after, answer.decision.retry_after);
    EXPECT_EQ(item.answer.decision.reset_after, answer.decision.reset_after);
    EXPECT_EQ(item.answer.message, answer.message);
    EXPECT_EQ(item.answer.rules, answer.rules);
    if (!answer.decision.allowed) ++denied;
  }
  EXPECT_GT(denied, 10);
}

TEST(EngineBatch, ChargesTheSameKeySeveralTimesInOrder) {
  EngineUnderTest under_test(kLayeredPolicy);
  std::array<BatchRequest, 5> requests;
  requests.fill({.request = {.ip = "192.0.2.1", .path = "/login"}});
  under_test.engine.CheckBatch(requests, under_test.clock.Read());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].answer.decision.allowed, i < 3) << i;
  }
  EXPECT_EQ(requests[1].answer.decision.remaining, 1);
  EXPECT_EQ(requests[4].answer.message, "Slow down");
}

TEST(EngineBatch, TellsWhatEachRuleDecidedWhereThereIsRoomForIt) {
  EngineUnderTest under_test(kLayeredPolicy);
  std::array<RuleDecision, 4> each;
  std::array<BatchRequest, 2> requests = {
      {{.request = {.ip = "192.0.2.1", .path = "/login"}, .each = each},
       {.request = {.ip = "192.0.2.1", .path = "/login"}}}};
  under_test.engine.CheckBatch(requests, under_test.clock.Read());
  EXPECT_EQ(requests[0].answer.rules, 2U);
  EXPECT_EQ(each[0].decision.rule, "wide");
  EXPECT_EQ(each[0].decision.remaining, 99);
  EXPECT_EQ(each[1].decision.rule, "narrow");
  EXPECT_EQ(each[1].decision.remaining, 2);
}

TEST(EngineBatch, TakesEveryCostForTheNearestThatThereIs) {
  EngineUnderTest under_test(kLayeredPolicy);
  std::array<BatchRequest, 2> requests = {
      {{.request = {.ip = "192.0.2.1"}, .cost = -5},
       {.request = {.ip = "192.0.2.1"}, .cost = std::numeric_limits<std::int64_t>::max()}}};
  under_test.engine.CheckBatch(requests, under_test.clock.Read());
  EXPECT_EQ(requests[0].answer.decision.cost, 0);
  EXPECT_TRUE(requests[0].answer.decision.allowed);
  EXPECT_EQ(requests[1].answer.decision.cost, kMaxCount);
  EXPECT_EQ(requests[1].answer.decision.reason, Reason::kNeverFits);
}

TEST(EngineBatch, MayBeEmpty) {
  EngineUnderTest under_test(kLayeredPolicy);
  under_test.engine.CheckBatch({}, under_test.clock.Read());
  under_test.engine.CheckLimits({}, under_test.clock.Read());
  EXPECT_EQ(under_test.engine.Stats().store.entries, 0U);
}

TEST(EngineLimits, CountAKeyByTheLimitThatComesWithIt) {
  EngineUnderTest under_test(kLayeredPolicy);
  const Now now = under_test.clock.Read();
  const Limit limit = LimitWith("2/min");
  std::array<LimitRequest, 70> requests;
  requests.fill({.key = "ann", .limit = &limit});
  requests[69].key = "bob";
  under_test.engine.CheckLimits(requests, now);
  for (std::size_t i = 0; i < 69; ++i) EXPECT_EQ(requests[i].decision.allowed, i < 2) << i;
  EXPECT_TRUE(requests[69].decision.allowed);
  EXPECT_EQ(requests[69].decision.rule, "");
  EXPECT_EQ(requests[69].decision.limit, 2);
  EXPECT_EQ(requests[2].decision.retry_after, seconds(30));
}

TEST(EngineLimits, CountApartFromAllRules) {
  EngineUnderTest under_test("rules: [ { name: everybody, key: global, limit: 1/min } ]");
  const Limit limit = LimitWith("1/min");
  EXPECT_TRUE(under_test.Allows({}));
  EXPECT_TRUE(
      Ask(under_test.engine, {.key = "global", .limit = &limit}, under_test.clock.Read()).allowed);
  EXPECT_FALSE(under_test.Allows({}));
}

TEST(EngineLimits, PeekTakesNothingAndRefundGivesBack) {
  EngineUnderTest under_test(kLayeredPolicy);
  const Now now = under_test.clock.Read();
  const Limit limit = LimitWith("5/min");
  const auto ask = [&](LimitRequest::Verb verb, std::int64_t cost) {
    return Ask(under_test.engine, {.key = "ann", .limit = &limit, .cost = cost, .verb = verb}, now);
  };
  EXPECT_EQ(ask(LimitRequest::Verb::kCheck, 4).remaining, 1);
  EXPECT_EQ(ask(LimitRequest::Verb::kPeek, 1).remaining, 1);
  EXPECT_FALSE(ask(LimitRequest::Verb::kPeek, 2).allowed);
  EXPECT_EQ(ask(LimitRequest::Verb::kRefund, 3).remaining, 4);
  EXPECT_EQ(ask(LimitRequest::Verb::kPeek, 1).remaining, 4);
}

TEST(EngineLimits, ReadTheUsedTimeOfABucketInTheWayOfTheLimitAskedUnder) {
  EngineUnderTest under_test(kLayeredPolicy);
  const Now now = under_test.clock.Read();
  const Limit coarse = LimitWith("1/min burst 10");
  const Limit fine = LimitWith("10/min burst 100");
  EXPECT_EQ(Ask(under_test.engine, {.key = "ann", .limit = &coarse}, now).remaining, 9);
  EXPECT_EQ(
      Ask(under_test.engine, {.key = "ann", .limit = &fine, .verb = LimitRequest::Verb::kPeek}, now)
          .remaining,
      90);
}

TEST(EngineLimits, MayBeOfEveryAlgorithm) {
  EngineUnderTest under_test(kLayeredPolicy);
  const Now now = under_test.clock.Read();
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucket, Algorithm::kFixedWindow,
        Algorithm::kSlidingWindow, Algorithm::kSlidingLog}) {
    const Limit limit = LimitWith("1/min", algorithm);
    EXPECT_TRUE(Ask(under_test.engine, {.key = "ann", .limit = &limit}, now).allowed);
    EXPECT_FALSE(Ask(under_test.engine, {.key = "ann", .limit = &limit}, now).allowed);
  }
  const Limit unlimited = LimitWith("unlimited");
  EXPECT_TRUE(Ask(under_test.engine, {.key = "ann", .limit = &unlimited}, now).allowed);
  const Limit deny = LimitWith("deny");
  EXPECT_EQ(Ask(under_test.engine, {.key = "ann", .limit = &deny}, now).reason, Reason::kDenyList);
}

TEST(EngineLimits, GiveAPlaceThatOutlivesTheLimitItWasTakenUnder) {
  EngineUnderTest under_test(kLayeredPolicy);
  const Now now = under_test.clock.Read();
  ReservationId place = ReservationId::kNone;
  {
    const Limit limit = LimitWith("1 concurrent lease 30s", Algorithm::kConcurrency);
    const Decision taken = Ask(under_test.engine, {.key = "ann", .limit = &limit}, now);
    ASSERT_TRUE(taken.allowed);
    place = taken.reservation;
    ASSERT_NE(place, ReservationId::kNone);
    EXPECT_FALSE(Ask(under_test.engine, {.key = "ann", .limit = &limit}, now).allowed);
  }
  EXPECT_TRUE(under_test.engine.Release(place).has_value());
  EXPECT_FALSE(under_test.engine.Release(place).has_value());
  const Limit again = LimitWith("1 concurrent lease 30s", Algorithm::kConcurrency);
  EXPECT_TRUE(Ask(under_test.engine, {.key = "ann", .limit = &again}, now).allowed);
}

TEST(EngineRules, AreKnownByNameWhetherTheyCountOrNot) {
  EngineUnderTest under_test(kLayeredPolicy);
  EXPECT_TRUE(under_test.engine.HasRule("wide"));
  EXPECT_TRUE(under_test.engine.HasRule("resting"));
  EXPECT_FALSE(under_test.engine.HasRule("nobody"));
  EXPECT_FALSE(under_test.engine.HasRule(""));
  under_test.Apply("rules: [ { name: other, key: ip, limit: 1/min } ]");
  EXPECT_FALSE(under_test.engine.HasRule("wide"));
  EXPECT_TRUE(under_test.engine.HasRule("other"));
}

TEST(EngineRules, SayHowLongTheirWholeCapacityTakesToComeBack) {
  EngineUnderTest under_test(R"(
unidentified: deny
rules:
  - { name: bucket, key: ip, limit: 100/min burst 50 }
  - { name: window, key: ip, limit: 10/min, algorithm: sliding_window }
  - { name: log, key: ip, limit: 10/h, algorithm: sliding_log }
  - { name: monthly, key: ip, limit: 10/month, algorithm: fixed_window, align: calendar }
  - { name: places, key: ip, limit: 5 concurrent lease 30s }
  - { name: free, key: ip, limit: unlimited }
)");
  std::array<RuleDecision, 6> each;
  EXPECT_EQ(under_test.engine.Check({.ip = "192.0.2.1"}, {}, each).rules, 6U);
  EXPECT_EQ(each[0].window, seconds(30));
  EXPECT_EQ(each[1].window, minutes(1));
  EXPECT_EQ(each[2].window, minutes(60));
  EXPECT_EQ(each[3].window, days(31));
  EXPECT_EQ(each[4].window, Duration(0));
  EXPECT_EQ(each[5].window, Duration(0));
  EXPECT_FALSE(under_test.engine.Check({}, {}, each).decision.allowed);
  EXPECT_EQ(each[0].window, Duration(0));
}

}  // namespace
}  // namespace weir
