// Commands whose answers come later, because the store is shared: the same replies as at once, in
// the same order.
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "frontend/resp/late_reply.h"
#include "frontend/resp/resp_under_test.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr std::string_view kPolicyOfUsersAndPlaces = R"(
rules:
  - name: per-user
    key: user
    limit: 3/min
  - name: two-at-once
    match: {path: /slow}
    key: ip
    limit: 2 concurrent
)";

ExchangeUnderTest::Options Late() {
  ExchangeUnderTest::Options options;
  options.late = true;
  return options;
}

// Reservations are numbered at random.
std::string WithoutIds(const std::string& bytes) {
  return std::regex_replace(bytes, std::regex("\\$16\r\n[0-9a-f]{16}\r\n"),
                            "$$16\r\n----------------\r\n");
}

const std::vector<std::string> kLateCommands = {
    "WEIR.CHECK * user ann",
    "WEIR.CHECK per-user user ann @cost 2",
    "WEIR.CHECK nobody user ann",
    "WEIR.CHECK * path /slow ip 203.0.113.9",
    "WEIR.CHECK * user ann @cost 4",
    "WEIR.CHECK * user ann @cost x",
    "WEIR.PEEK * user ann",
    "WEIR.RESERVE per-user user bob @cost 2 @ttl_ms 5000",
    "WEIR.RESERVE per-user user bob @cost 0",
    "WEIR.REFUND per-user user ann @cost 1",
    "WEIR.PENALIZE per-user user ann @cost 2",
    "WEIR.PENALIZE * user ann @cost 2",
    "WEIR.RESET per-user user ann",
    "WEIR.COMMIT 0123456789abcdef",
    "WEIR.CANCEL nonsense",
    "WEIR.RELEASE 0123456789abcdef",
    "WEIR.LIMIT k 5/min @cost 2",
    "WEIR.LIMIT k 5/min sliding_log",
    "WEIR.LIMIT k 5",
    "CL.THROTTLE cell 2 30 60",
    "CL.THROTTLE cell 2 30 60 0",
    "CL.THROTTLE cell 2 30 60 -1",
    "CL.THROTTLE cell 2 30 60 3",
    "CL.THROTTLE cell 2 30 60 9",
    "CL.THROTTLE cell x 30 60",
    "THROTTLE crab 3 30 60 2",
    "THROTTLE crab 3 30 60 0",
    "PING",
    "HELLO 2",
    "HELLO 3",
    "FOO"};

// What commands that come together are answered, with answers at once, or in the order given.
enum class Order { kAtOnce, kForwards, kBackwards };
std::string RepliesTo(const std::vector<std::string>& commands, bool late, Order order) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, late ? Late() : ExchangeUnderTest::Options{});
  resp.exchange.late.at_once = order == Order::kAtOnce;
  std::string bytes;
  for (const std::string& command : commands) bytes += CommandOf(command);
  std::string replies = resp.exchange.Send(bytes);
  if (order == Order::kForwards) resp.exchange.late.AnswerAll();
  if (order == Order::kBackwards) resp.exchange.late.AnswerAllBackwards();
  replies += resp.exchange.Take();
  // The number that HELLO gives a connection.
  return std::regex_replace(WithoutIds(replies), std::regex("id\r\n:[0-9]+"), "id\r\n:0");
}

TEST(RespLate, AnswersEveryCommandAsAtOnce) {
  const std::string expected = RepliesTo(kLateCommands, false, Order::kAtOnce);
  EXPECT_EQ(RespUnderTest::ShowAll(expected).size(), kLateCommands.size());
  EXPECT_EQ(RepliesTo(kLateCommands, true, Order::kAtOnce), expected);
  EXPECT_EQ(RepliesTo(kLateCommands, true, Order::kForwards), expected);
  EXPECT_EQ(RepliesTo(kLateCommands, true, Order::kBackwards), expected);
}

RC_GTEST_PROP(RespLate, AnswersAnyPipelineAsAtOnce, ()) {
  const auto commands =
      *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kLateCommands));
  const std::string expected = RepliesTo(commands, false, Order::kAtOnce);
  RC_ASSERT(RepliesTo(commands, true, Order::kAtOnce) == expected);
  RC_ASSERT(RepliesTo(commands, true, Order::kForwards) == expected);
  RC_ASSERT(RepliesTo(commands, true, Order::kBackwards) == expected);
}

TEST(RespLate, AsksAllOfAPipelineBeforeAnyIsAnswered) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, Late());
  EXPECT_THAT(resp.AskAll({"PING", "WEIR.CHECK * user ann", "CL.THROTTLE k 15 30 60", "PING",
                           "WEIR.PEEK * user ann"}),
              ElementsAre("+PONG"));
  EXPECT_THAT(resp.exchange.late.kinds,
              ElementsAre(Question::Kind::kCheck, Question::Kind::kLimit, Question::Kind::kPeek));
  resp.exchange.late.Answer(2);
  resp.exchange.late.Answer(1);
  EXPECT_EQ(resp.exchange.Take(), "");
  resp.exchange.late.Answer(0);
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Take()),
              ElementsAre(HasSubstr("remaining, 2"), "[0, 16, 15, -1, 2]", "+PONG",
                          HasSubstr("remaining, 2")));
}

TEST(RespLate, RepliesInTheVersionInWhichItWasAsked) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, Late());
  resp.AskAll({"WEIR.CHECK * user ann", "HELLO 3", "WEIR.CHECK * user ann"});
  resp.exchange.late.AnswerAllBackwards();
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Take()),
              ElementsAre(StartsWith("[allowed"), HasSubstr("proto: 3"), StartsWith("{allowed")));
}

TEST(RespLate, AsksNoMoreThanMayBeUnderWay) {
  ExchangeUnderTest::Options options = Late();
  options.bounds.held = 2;
  RespUnderTest resp(kPolicyOfUsersAndPlaces, options);
  std::string bytes;
  for (int i = 0; i < 10; ++i) bytes += CommandOf("WEIR.PEEK * user ann");
  resp.exchange.Send(bytes);
  std::size_t replies = 0;
  while (resp.exchange.late.pending() > 0) {
    EXPECT_LE(resp.exchange.late.pending(), 2U);
    resp.exchange.late.AnswerAll();
    replies += RespUnderTest::ShowAll(resp.exchange.Take()).size();
    resp.exchange.TakeUp();
  }
  EXPECT_EQ(replies, 10U);
}

TEST(RespLate, SaysWhatFailedToBeSettled) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, Late());
  resp.exchange.late.at_once = true;
  resp.exchange.late.error = Error{ErrorCode::kDeadline, "the store did not answer in time"};
  EXPECT_EQ(resp.Ask("WEIR.COMMIT 0123456789abcdef"), "-TIMEOUT the store did not answer in time");
  resp.exchange.late.error = Error{ErrorCode::kOverloaded, "the store cannot be reached"};
  EXPECT_EQ(resp.Ask("WEIR.CANCEL 0123456789abcdef"), "-BUSY the store cannot be reached");
  EXPECT_EQ(resp.Ask("WEIR.RELEASE 0123456789abcdef"), "-BUSY the store cannot be reached");
  const auto& counted = resp.exchange.metrics.requests;
  EXPECT_EQ(counted[ReplyCodeNumber("TIMEOUT")].Value(), 1U);
  EXPECT_EQ(counted[ReplyCodeNumber("BUSY")].Value(), 2U);
  EXPECT_EQ(counted[kReplyRespOk].Value(), 0U);
}

TEST(RespLate, SaysThatTheStoreFailed) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, Late());
  resp.exchange.late.at_once = true;
  resp.exchange.late.instead = Decision{.reason = Reason::kStoreFailure,
                                        .source = Source::kClosed,
                                        .rule = "per-user",
                                        .limit = 3,
                                        .cost = 1,
                                        .retry_after = std::chrono::seconds(1)};
  const std::string denied = resp.Ask("WEIR.CHECK * user ann");
  EXPECT_THAT(denied, HasSubstr("allowed, 0"));
  EXPECT_THAT(denied, HasSubstr("retry_after, 1"));
  EXPECT_THAT(denied, HasSubstr("reason, store_failure, source, closed"));
}

TEST(RespLate, DropsAnswersForAConnectionThatHasEnded) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, Late());
  resp.AskAll({"WEIR.CHECK * user ann"});
  resp.exchange.Reconnect();
  resp.AskAll({"WEIR.PEEK * user ann"});
  resp.exchange.late.Answer(0);
  EXPECT_EQ(resp.exchange.Take(), "");
  resp.exchange.late.Answer(0);
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Take()), ElementsAre(HasSubstr("cost, 1")));
}

TEST(RespLate, LetsWaitsAndQuestionsKeepTheirOrder) {
  RespUnderTest resp(kPolicyOfUsersAndPlaces, Late());
  EXPECT_THAT(resp.AskAll({"WEIR.CHECK * user ann", "WEIR.CHECK * user ann @wait_ms 500",
                           "WEIR.CHECK * user ann"}),
              IsEmpty());
  resp.exchange.late.AnswerAll();
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Take()), ElementsAre(HasSubstr("remaining, 2")));
  resp.exchange.Decide(resp.exchange.waits.at(0),
                       {.decision = {.allowed = true, .reason = Reason::kOk, .cost = 7}});
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Take()),
              ElementsAre(HasSubstr("cost, 7"), HasSubstr("remaining, 1")));
}

TEST(RespLateReply, IsReadAsItWasWritten) {
  using resp::LateReply;
  using resp::LimitShape;
  for (const std::int64_t quantity : {-5, 0, 7}) {
    const LateReply late{.version = resp::Version::kResp3,
                         .shape = {.kind = LimitShape::Kind::kThrottlecrab, .quantity = quantity},
                         .burst_tolerance = kMaxBurstTime.count() * 16};
    const LateReply read = LateReply::Of(late.bits());
    EXPECT_EQ(read.version, resp::Version::kResp3);
    EXPECT_EQ(read.shape.kind, LimitShape::Kind::kThrottlecrab);
    EXPECT_EQ(read.shape.quantity < 0, quantity < 0);
    EXPECT_EQ(read.shape.quantity == 0, quantity == 0);
    EXPECT_EQ(read.burst_tolerance, late.burst_tolerance);
  }
}

}  // namespace
}  // namespace weir
