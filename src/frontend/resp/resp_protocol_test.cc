#include "frontend/resp/resp_protocol.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/resp/reply.h"
#include "frontend/resp/resp_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kPolicyOfPlans = R"(
rules:
  - name: per-user
    match: {user: "*"}
    key: user
    limit: 3/min
  - name: per-plan
    match: {header.x-plan: "*"}
    key: header.x-plan
    limit: 2/min
  - name: two-at-once
    match: {path: /slow}
    key: ip
    limit: 2 concurrent
)";

std::size_t CountOf(const RespUnderTest& resp, std::string_view code) {
  return resp.exchange.metrics.requests[ReplyCodeNumber(code)].Value();
}

std::size_t Refused(const RespUnderTest& resp, Refusal why) {
  return resp.exchange.metrics.refused[static_cast<std::size_t>(why)].Value();
}

TEST(WeirCheck, AnswersADecisionAsAFlatArray) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_EQ(resp.Ask("WEIR.CHECK * user ann"),
            "[allowed, 1, rule, per-user, limit, 3, remaining, 2, cost, 1, retry_after, 0, "
            "retry_after_ms, 0, reset_after, 20, reset_after_ms, 20000, reset_at, 1735689620, "
            "delay_ms, 0, reason, ok, source, memory]");
}

TEST(WeirCheck, AnswersADecisionAsAMapInResp3) {
  RespUnderTest resp(kPolicyOfPlans);
  resp.Ask("HELLO 3");
  EXPECT_EQ(resp.Ask("weir.check per-user user ann @cost 3"),
            "{allowed: true, rule: per-user, limit: 3, remaining: 0, cost: 3, retry_after: 0, "
            "retry_after_ms: 0, reset_after: 60, reset_after_ms: 60000, reset_at: 1735689660, "
            "delay_ms: 0, reason: ok, source: memory}");
  EXPECT_THAT(resp.Ask("WEIR.CHECK per-user user ann"),
              HasSubstr("allowed: false, rule: per-user, limit: 3, remaining: 0, cost: 1, "
                        "retry_after: 20, retry_after_ms: 20000,"));
}

TEST(WeirCheck, SaysNullWhereWaitingNeverHelps) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @cost 4"),
              HasSubstr("retry_after, null, retry_after_ms, null, reset_after, 0,"));
  resp.Ask("HELLO 3");
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @cost 4"),
              HasSubstr("retry_after: null, retry_after_ms: null, reset_after: 0,"));
}

TEST(WeirCheck, TakesEveryAttribute) {
  RespUnderTest resp(R"(
rules:
  - name: all
    match: {ip: 203.0.113.9, user: u, api_key: k, org: o, tier: t, method: GET, path: /p, host: h.example,
            domain: d, header.a: "1", cookie.b: "2", query.c: "3", descriptor.e: "4", header.f: "5"}
    key: user
    limit: 10/min
tiers: {t: {}}
)");
  EXPECT_THAT(
      resp.Ask("WEIR.CHECK * ip 203.0.113.9 header.A 1 user u api_key k org o tier t method GET "
               "path /p host h.example domain d cookie.b 2 query.c 3 header.F 5 "
               "descriptor.e 4"),
      HasSubstr("rule, all, limit, 10, remaining, 9"));
}

TEST(WeirCheck, NamesTheFieldThatIsWrong) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_EQ(resp.Ask("WEIR.CHECK nobody user ann"), "-ERR unknown rule \"nobody\"");
  EXPECT_EQ(resp.Ask("WEIR.CHECK * user"), "-ERR \"user\": its value is missing");
  EXPECT_EQ(resp.Ask("WEIR.CHECK * user a user b"), "-ERR \"user\": given twice; write it once");
  EXPECT_EQ(resp.Ask("WEIR.CHECK * header.X-a 1 header.x-A 2"),
            "-ERR \"header.x-A\": given twice; write it once");
  EXPECT_THAT(resp.Ask("WEIR.CHECK * cookie.a 1 cookie.A 2"), StartsWith("[allowed"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * usr ann"),
              StartsWith("-ERR \"usr\": no such attribute; there are ip user"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * header. ann"), StartsWith("-ERR \"header.\": a name"));
  for (const std::string bad :
       {"x", "-1", "1.5", "+1", "1000000000000001", "99999999999999999999"}) {
    EXPECT_THAT(resp.Ask("WEIR.CHECK * @cost " + bad), StartsWith("-ERR @cost: ")) << bad;
  }
  EXPECT_THAT(resp.Ask("WEIR.CHECK * @wait_ms 3600001"),
              HasSubstr("@wait_ms: \"3600001\" is not allowed; write 0 to 3600000"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * @cost 1 @cost 1"), HasSubstr("given twice"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * @ttl_ms 5"),
              HasSubstr("\"@ttl_ms\": no such option; there is @cost @wait_ms @http"));
  EXPECT_EQ(resp.Ask("WEIR.CHECK"), "-ERR wrong number of arguments for 'weir.check' command");
  EXPECT_EQ(CountOf(resp, "ERR"), 16U);
}

TEST(WeirCheck, HasAnAddressWhereOneBelongs) {
  RespUnderTest resp(kPolicyOfPlans);
  for (const std::string verb : {"WEIR.CHECK * ", "WEIR.PEEK * ", "WEIR.RESERVE * "}) {
    for (const std::string ip : {"1.2.3.4:5678", "999.1.1.1", "unknown", "[::1]", "fe80::1%eth0"}) {
      EXPECT_EQ(resp.Ask(verb + "ip " + ip),
                "-ERR ip: write an address: 203.0.113.9 or 2001:db8::1")
          << ip;
    }
    EXPECT_THAT(resp.Ask(verb + "user ann ip 2001:db8::1"), StartsWith("[allowed"));
  }
}

TEST(WeirCheck, SaysNothingOfTheValuesOfAttributes) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_THAT(resp.Ask("WEIR.CHECK * api_key s3cret api_key s3cret"),
              testing::Not(HasSubstr("s3cret")));
}

TEST(WeirCheck, RefusesMoreNamedAttributesThanAnybodyNeeds) {
  RespUnderTest resp(kPolicyOfPlans);
  std::string command = "WEIR.CHECK *";
  for (int i = 0; i < 64; ++i) command += " header.h" + std::to_string(i) + " v";
  EXPECT_THAT(resp.Ask(command), StartsWith("[allowed"));
  EXPECT_THAT(resp.Ask(command + " header.more v"), StartsWith("-ERR header.NAME: more than 64"));
  // Many of them, right and wrong, in one pipeline.
  std::vector<std::string> commands;
  for (int i = 0; i < 40; ++i) commands.push_back(command + (i % 3 == 0 ? " header.more v" : ""));
  const std::vector<std::string> replies = resp.AskAll(commands);
  ASSERT_EQ(replies.size(), 40U);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_THAT(replies[i], StartsWith(i % 3 == 0 ? "-ERR" : "[allowed")) << i;
  }
}

TEST(Pipeline, IsAnsweredInOrderWhateverIsInIt) {
  RespUnderTest resp(kPolicyOfPlans);
  const std::vector<std::string> replies =
      resp.AskAll({"WEIR.CHECK * user ann", "WEIR.CHECK * user ann", "CL.THROTTLE k 15 30 60",
                   "WEIR.CHECK * bad", "WEIR.CHECK * user ann", "PING", "CL.THROTTLE k 15 30 60",
                   "WEIR.CHECK * user ann", "FOO", "WEIR.LIMIT k2 5/min", "THROTTLE k3 10 100 60"});
  ASSERT_EQ(replies.size(), 11U);
  EXPECT_THAT(replies[0], HasSubstr("remaining, 2"));
  EXPECT_THAT(replies[1], HasSubstr("remaining, 1"));
  EXPECT_EQ(replies[2], "[0, 16, 15, -1, 2]");
  EXPECT_THAT(replies[3], StartsWith("-ERR \"bad\""));
  EXPECT_THAT(replies[4], HasSubstr("remaining, 0"));
  EXPECT_EQ(replies[5], "+PONG");
  EXPECT_EQ(replies[6], "[0, 16, 14, -1, 4]");
  EXPECT_THAT(replies[7], HasSubstr("allowed, 0"));
  EXPECT_THAT(replies[8], StartsWith("-ERR unknown command 'FOO'"));
  EXPECT_THAT(replies[9], HasSubstr("rule, , limit, 5, remaining, 4"));
  EXPECT_EQ(replies[10], "[1, 10, 9, 1, 0]");
  EXPECT_EQ(resp.exchange.decided, 8U);
  EXPECT_EQ(CountOf(resp, "OK"), 9U);
  EXPECT_EQ(CountOf(resp, "ERR"), 2U);
}

TEST(Pipeline, OfAnyDepthIsAnsweredWhole) {
  RespUnderTest resp("rules: [{name: r, key: user, limit: 1000/h}]");
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += CommandOf("WEIR.CHECK * user ann");
  const std::vector<std::string> replies = RespUnderTest::ShowAll(resp.exchange.Send(bytes));
  ASSERT_EQ(replies.size(), 500U);
  for (std::size_t i = 0; i < 500; ++i) {
    EXPECT_THAT(replies[i], HasSubstr("remaining, " + std::to_string(999 - i) + ",")) << i;
  }
  EXPECT_EQ(resp.exchange.left_over(), "");
}

TEST(Pipeline, IsAnsweredTheSameWayInPieces) {
  const std::string bytes = CommandOf("WEIR.CHECK * user ann") + "PING \"a b\"\r\n" +
                            CommandOf("CL.THROTTLE k 15 30 60 2") + CommandOf("HELLO 3") +
                            CommandOf("WEIR.PEEK per-user user ann");
  RespUnderTest whole(kPolicyOfPlans);
  std::string expected = whole.exchange.Send(bytes);
  // The id of the connection differs.
  const auto without_id = [](std::string text) {
    const std::size_t at = text.find("$2\r\nid\r\n");
    return text.erase(at, text.find("$4\r\nmode", at) - at);
  };
  for (const std::size_t piece : {1U, 2U, 7U, 30U}) {
    RespUnderTest pieces(kPolicyOfPlans);
    EXPECT_EQ(without_id(pieces.exchange.SendInPieces(bytes, piece)), without_id(expected));
  }
}

TEST(Pipeline, StopsWhenTheRepliesAreFullAndGoesOnLater) {
  ExchangeUnderTest::Options options;
  options.bounds.bytes = 1'000;
  RespUnderTest resp(kPolicyOfPlans, options);
  std::string bytes;
  for (int i = 0; i < 1'000; ++i) bytes += CommandOf("WEIR.CHECK * user ann");
  std::size_t replies = RespUnderTest::ShowAll(resp.exchange.Send(bytes)).size();
  EXPECT_LE(replies, 64U);
  EXPECT_GT(resp.exchange.left_over().size(), 0U);
  while (!resp.exchange.left_over().empty()) {
    resp.exchange.TakeUp();
    const std::size_t more = RespUnderTest::ShowAll(resp.exchange.Take()).size();
    ASSERT_GT(more, 0U);
    replies += more;
  }
  EXPECT_EQ(replies, 1'000U);
}

TEST(Framing, LostIsSaidAndEndsTheConnection) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Send(CommandOf("PING") + "*x\r\nPING\r\n")),
              ElementsAre("+PONG", "-ERR Protocol error: invalid multibulk length"));
  EXPECT_TRUE(resp.exchange.replies().closing());
  EXPECT_EQ(Refused(resp, Refusal::kProtocol), 1U);
  EXPECT_EQ(CountOf(resp, "ERR"), 1U);
}

TEST(Framing, OfTooLargeACommandIsRefusedBeforeItComes) {
  ExchangeUnderTest::Options options;
  options.settings.limits.command = 1'000;
  RespUnderTest resp(kPolicyOfPlans, options);
  EXPECT_THAT(resp.exchange.Send("*2\r\n$4\r\nECHO\r\n$1000\r\n"),
              StartsWith("-ERR Protocol error: too large"));
  EXPECT_TRUE(resp.exchange.replies().closing());
  EXPECT_EQ(Refused(resp, Refusal::kCommand), 1U);
}

TEST(Framing, SaysHowManyBytesAreAwaited) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_EQ(resp.exchange.Send("*2\r\n$4\r\nECHO\r\n$1000\r\nx"), "");
  EXPECT_EQ(resp.exchange.last.used, 0U);
  EXPECT_EQ(resp.exchange.last.wants, 14U + 7 + 1000 + 2);
}

TEST(Framing, OfABrowserEndsTheConnectionWithoutAWord) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_EQ(resp.exchange.Send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nWEIR.CHECK *\r\n"), "");
  EXPECT_TRUE(resp.exchange.replies().closing());
  EXPECT_EQ(Refused(resp, Refusal::kProtocol), 1U);
}

TEST(Waiting, HoldsTheReplyAndThoseBehindIt) {
  RespUnderTest resp(kPolicyOfPlans);
  const std::vector<std::string> replies =
      resp.AskAll({"WEIR.CHECK * user ann", "WEIR.CHECK per-user user bob @wait_ms 500 @cost 2",
                   "PING", "HELLO 3", "WEIR.CHECK * user bob @wait_ms 0"});
  EXPECT_THAT(replies, ElementsAre(HasSubstr("remaining, 2")));
  ASSERT_EQ(resp.exchange.waits.size(), 1U);
  const ExchangeUnderTest::Wait wait = resp.exchange.waits[0];
  EXPECT_EQ(wait.patience, 500ms);
  EXPECT_EQ(wait.ask.cost, 2);
  EXPECT_EQ(wait.user, "bob");
  EXPECT_THAT(wait.rules, ElementsAre("per-user"));
  resp.exchange.Decide(
      wait, {.decision = {.allowed = true, .reason = Reason::kOk, .rule = "per-user", .cost = 2}});
  const std::vector<std::string> later = RespUnderTest::ShowAll(resp.exchange.Take());
  ASSERT_EQ(later.size(), 4U);
  // As it was asked, before the other version was chosen.
  EXPECT_THAT(later[0], StartsWith("[allowed, 1, rule, per-user"));
  EXPECT_EQ(later[1], "+PONG");
  EXPECT_THAT(later[2], HasSubstr("proto: 3"));
  EXPECT_THAT(later[3], StartsWith("{allowed: true"));
}

TEST(Waiting, SaysOverloadAsADecision) {
  RespUnderTest resp(kPolicyOfPlans);
  resp.Ask("WEIR.CHECK * user ann @wait_ms 500");
  resp.exchange.Decide(resp.exchange.waits.at(0),
                       {.decision = {.reason = Reason::kOverload, .retry_after = kNever}});
  EXPECT_THAT(resp.exchange.Take(), HasSubstr("overload"));
}

TEST(WeirPeek, TakesNothing) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_THAT(resp.Ask("WEIR.PEEK * user ann @cost 3"), HasSubstr("remaining, 3, cost, 3"));
  EXPECT_THAT(resp.Ask("WEIR.PEEK * user ann @cost 3"), HasSubstr("remaining, 3, cost, 3"));
  EXPECT_THAT(resp.Ask("WEIR.PEEK * user ann @wait_ms 0"), HasSubstr("allowed, 1"));
  EXPECT_EQ(resp.Ask("WEIR.PEEK * user ann @wait_ms 3"),
            "-ERR @wait_ms: only WEIR.CHECK waits; write 0");
  EXPECT_THAT(resp.Ask("WEIR.RESERVE * user ann @wait_ms 0"), HasSubstr("allowed, 1"));
}

std::string ReservationIn(const std::string& reply) {
  return reply.substr(reply.find("reservation, ") + 13, 16);
}

TEST(WeirReserve, IsSettledAtWhatItReallyCost) {
  RespUnderTest resp(kPolicyOfPlans);
  const std::string reserved = resp.Ask("WEIR.RESERVE per-user user ann @cost 3 @ttl_ms 5000");
  EXPECT_THAT(reserved, HasSubstr("remaining, 0, cost, 3"));
  const std::string id = ReservationIn(reserved);
  EXPECT_THAT(resp.Ask("WEIR.COMMIT " + id + " @cost 1"), HasSubstr("remaining, 2"));
  EXPECT_THAT(resp.Ask("WEIR.COMMIT " + id + " @cost 1"), StartsWith("-ERR "));
  EXPECT_THAT(resp.Ask("WEIR.COMMIT nonsense"),
              StartsWith("-ERR id: \"nonsense\" is not allowed; write the 16 hex digits"));
  EXPECT_THAT(resp.Ask("WEIR.COMMIT " + id + " @cost"), HasSubstr("its value is missing"));
  EXPECT_THAT(resp.Ask("WEIR.COMMIT " + id + " @price 3"), HasSubstr("no such option"));
}

TEST(WeirReserve, IsGivenBackWhenItIsCancelled) {
  RespUnderTest resp(kPolicyOfPlans);
  const std::string id = ReservationIn(resp.Ask("WEIR.RESERVE per-user user ann @cost 3"));
  EXPECT_THAT(resp.Ask("WEIR.CANCEL " + id), HasSubstr("remaining, 3"));
}

TEST(WeirRelease, FreesAPlace) {
  RespUnderTest resp(kPolicyOfPlans);
  resp.Ask("WEIR.CHECK two-at-once path /slow ip 203.0.113.9");
  const std::string id = ReservationIn(resp.Ask("WEIR.CHECK * path /slow ip 203.0.113.9"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * path /slow ip 203.0.113.9"), HasSubstr("allowed, 0"));
  EXPECT_THAT(resp.Ask("WEIR.RELEASE " + id), HasSubstr("reason, ok"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * path /slow ip 203.0.113.9"), HasSubstr("allowed, 1"));
}

TEST(WeirManage, RefundsPenalizesAndResetsANamedRule) {
  RespUnderTest resp(kPolicyOfPlans);
  resp.Ask("WEIR.CHECK * user ann @cost 3");
  EXPECT_THAT(resp.Ask("WEIR.REFUND per-user user ann @cost 2"), HasSubstr("remaining, 2"));
  EXPECT_THAT(resp.Ask("WEIR.PENALIZE per-user user ann @cost 2"), HasSubstr("remaining, 0"));
  EXPECT_THAT(resp.Ask("WEIR.RESET per-user user ann"), HasSubstr("remaining, 3"));
  EXPECT_THAT(resp.Ask("WEIR.RESET per-user user ann @cost 1"), HasSubstr("no such option"));
  EXPECT_THAT(resp.Ask("WEIR.RESET * user ann"), HasSubstr("write the name of the rule"));
  EXPECT_THAT(resp.Ask("WEIR.REFUND nobody user ann"), HasSubstr("unknown rule"));
}

TEST(WeirLimit, CountsAKeyUnderALimitOfItsOwn) {
  RespUnderTest resp(kPolicyOfPlans);
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min @cost 2"), HasSubstr("limit, 5, remaining, 3, cost, 2"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min fixed_window @cost 2"), HasSubstr("remaining, 3"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min fixed_window"), HasSubstr("remaining, 2"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k deny"), HasSubstr("reason, deny_list"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5"), StartsWith("-ERR limit \"5\""));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min magic"), StartsWith("-ERR "));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min @cost"), HasSubstr("its value is missing"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min @cost -1"), StartsWith("-ERR @cost"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 5/min @wait 1"), HasSubstr("no such option; there is @cost"));
}

TEST(Rights, AreAskedForBeforeAnything) {
  RespUnderTest resp(kPolicyOfPlans, {.access = {.token = "s3cret", .manage_token = "m4nage"}});
  EXPECT_THAT(resp.AskAll({"PING", "WEIR.CHECK *", "WEIR.CHECK", "FOO", "AUTH wrong"}),
              ElementsAre("-NOAUTH Authentication required.", "-NOAUTH Authentication required.",
                          "-NOAUTH Authentication required.", "-NOAUTH Authentication required.",
                          "-WRONGPASS invalid username-password pair or user is disabled."));
  EXPECT_EQ(Refused(resp, Refusal::kToken), 5U);
  EXPECT_EQ(CountOf(resp, "NOAUTH"), 4U);
  EXPECT_EQ(CountOf(resp, "WRONGPASS"), 1U);
  EXPECT_THAT(resp.AskAll({"AUTH s3cret", "PING", "WEIR.RESET per-user user ann",
                           "CL.THROTTLE k 15 30 60 -1", "AUTH default m4nage"}),
              ElementsAre("+OK", "+PONG", "-NOPERM WEIR.RESET needs the right to manage",
                          "-NOPERM a negative quantity gives back, which needs the right to manage",
                          "+OK"));
  EXPECT_EQ(CountOf(resp, "NOPERM"), 2U);
  EXPECT_THAT(resp.Ask("WEIR.RESET per-user user ann"), HasSubstr("reason, ok"));
  EXPECT_THAT(resp.AskAll({"RESET", "PING"}),
              ElementsAre("+RESET", "-NOAUTH Authentication required."));
}

TEST(Rights, MayComeWithHello) {
  RespUnderTest resp(kPolicyOfPlans, {.access = {.token = "s3cret"}});
  EXPECT_THAT(resp.Ask("HELLO 3"), StartsWith("-NOAUTH HELLO must be called"));
  EXPECT_THAT(resp.Ask("HELLO 3 AUTH default wrong"), StartsWith("-WRONGPASS"));
  EXPECT_THAT(resp.Ask("HELLO 3 AUTH default s3cret SETNAME me"), HasSubstr("proto: 3"));
  EXPECT_EQ(resp.Ask("CLIENT GETNAME"), "me");
}

TEST(Rights, ToManageAreNobodysWithoutAToken) {
  RespUnderTest resp(kPolicyOfPlans, {.access = {}});
  EXPECT_THAT(resp.Ask("WEIR.REFUND per-user user ann"), StartsWith("-NOPERM"));
  EXPECT_THAT(resp.Ask("AUTH x"), StartsWith("-ERR AUTH <password> called without any password"));
}

TEST(Timeout, IsSaid) {
  RespUnderTest resp(kPolicyOfPlans);
  resp.exchange.Send("*2\r\n");
  resp.exchange.protocol().OnTimeout();
  EXPECT_EQ(resp.exchange.Take(), "-ERR Protocol error: the command was not completed\r\n");
}

}  // namespace
}  // namespace weir
