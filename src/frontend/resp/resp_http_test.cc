// Decisions that also say how HTTP tells them (@http): the same lines and bodies as the front end
// of HTTP sends, whether they are answered at once or later.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/resp/late_reply.h"
#include "frontend/resp/resp_under_test.h"

namespace weir {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kPolicyWithMessage = R"(
rules:
  - name: per-user
    match: {user: present}
    key: user
    limit: 1/min
    message: Not so fast
  - name: per-ip
    match: {ip: present}
    key: ip
    limit: 10/min
  - name: two-at-once
    match: {path: /slow}
    key: ip
    limit: 2 concurrent
)";

TEST(RespHttp, SaysStatusAndHeadersOfWhatIsAllowed) {
  RespUnderTest resp(kPolicyWithMessage);
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann ip 203.0.113.9 @http json"),
              AllOf(HasSubstr("source, memory, status, 200, headers, X-RateLimit-Limit: 1\r\n"
                              "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1735689660\r\n"
                              "RateLimit-Policy: \"per-user\";q=1;w=60, \"per-ip\";q=10;w=60\r\n"
                              "RateLimit: \"per-user\";r=0;t=60\r\n, body, "),
                    Not(HasSubstr("Retry-After"))));
}

TEST(RespHttp, SaysWhatADenialIsToldBy) {
  RespUnderTest resp(kPolicyWithMessage);
  resp.Ask("WEIR.CHECK * user ann");
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @http json"),
              AllOf(HasSubstr("status, 429, headers, Content-Type: application/json\r\n"),
                    HasSubstr("Retry-After: 6"),
                    HasSubstr("Cache-Control: no-store\r\n, body, "
                              "{\"error\":\"rate_limited\",\"message\":"
                              "\"Not so fast\",\"allowed\":false,")));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @http problem"),
              AllOf(HasSubstr("Content-Type: application/problem+json\r\n"),
                    HasSubstr("\"status\":429,\"detail\":\"Not so fast\""),
                    HasSubstr("\"violated-policies\":[\"per-user\"]")));
}

TEST(RespHttp, CountsItsFieldsInBothProtocols) {
  // The reader of the test refuses a reply whose header says another number.
  RespUnderTest resp(kPolicyWithMessage);
  EXPECT_THAT(resp.Ask("WEIR.CHECK * path /slow ip 203.0.113.9 @http json"),
              AllOf(HasSubstr("reservation, "), HasSubstr(", status, 200, ")));
  resp.Ask("HELLO 3");
  EXPECT_THAT(resp.Ask("WEIR.CHECK * path /slow ip 203.0.113.9 @http json"),
              AllOf(HasSubstr("reservation: "), HasSubstr(", status: 200, "), EndsWith("body: }")));
}

TEST(RespHttp, FollowsTheFamiliesThatThePolicySays) {
  ExchangeUnderTest::Options options;
  options.settings.x_ratelimit_headers = false;
  RespUnderTest resp(kPolicyWithMessage, options);
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @http json"),
              AllOf(HasSubstr("RateLimit: \"per-user\""), Not(HasSubstr("X-RateLimit"))));
}

TEST(RespHttp, SaysNothingWhereNoLimitHadASay) {
  RespUnderTest resp("rules:\n  - {name: a, match: {path: /x}, key: user, limit: 1/min}\n");
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @http json"),
              HasSubstr("reason, no_rule, source, memory, status, 200, headers, , body, "));
}

TEST(RespHttp, SpeaksOfALimitThatComesWithTheCall) {
  RespUnderTest resp(kPolicyWithMessage);
  EXPECT_THAT(
      resp.Ask("WEIR.LIMIT k 2/min @http json"),
      HasSubstr("RateLimit-Policy: \"default\";q=2;w=60\r\nRateLimit: \"default\";r=1;t=30"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 2/min token_bucket @http problem @cost 2"),
              AllOf(HasSubstr("status, 429"), HasSubstr("violated-policies")));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k deny @http json"), HasSubstr("status, 403"));
}

TEST(RespHttp, RefusesOtherForms) {
  RespUnderTest resp(kPolicyWithMessage);
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @http xml"),
              HasSubstr("@http: \"xml\" is not allowed; write json or problem"));
  EXPECT_THAT(resp.Ask("WEIR.CHECK * user ann @http json @http json"), HasSubstr("given twice"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 2/min @http xml"), HasSubstr("write json or problem"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 2/min @http json @http json"), HasSubstr("given twice"));
  EXPECT_THAT(resp.Ask("WEIR.LIMIT k 2/min @http"), HasSubstr("\"@http\": its value is missing"));
  EXPECT_THAT(resp.Ask("WEIR.PEEK * user ann @http json"), HasSubstr("no such option"));
}

const std::vector<std::string> kHttpCommands = {
    "WEIR.CHECK * user ann ip 203.0.113.9 @http json",
    "WEIR.CHECK * user ann",
    "WEIR.CHECK * user ann @http problem",
    "WEIR.LIMIT k 2/min @http json",
    "WEIR.LIMIT k 2/min @cost 2 @http json",
    "WEIR.LIMIT k 2/min",
    "WEIR.LIMIT c 0 @http json",
    "CL.THROTTLE k 1 2 60",
    "WEIR.CHECK nobody user ann @http json",
    "WEIR.CHECK per-user user bob @http json",
};

// Retry-After is up to a tenth later, by chance.
std::string WithoutChance(std::string text) {
  const std::size_t at = text.find("Retry-After: ");
  if (at != std::string::npos) text.erase(at, text.find("\r\n", at) - at);
  return text;
}

TEST(RespHttp, IsTheSameInABatchAndOneByOne) {
  RespUnderTest together(kPolicyWithMessage);
  RespUnderTest apart(kPolicyWithMessage);
  const std::vector<std::string> replies = together.AskAll(kHttpCommands);
  ASSERT_EQ(replies.size(), kHttpCommands.size());
  for (std::size_t i = 0; i < kHttpCommands.size(); ++i) {
    EXPECT_EQ(WithoutChance(replies[i]), WithoutChance(apart.Ask(kHttpCommands[i])))
        << kHttpCommands[i];
  }
}

TEST(RespHttp, IsTheSameWhenTheAnswerComesLater) {
  ExchangeUnderTest::Options options;
  options.late = true;
  RespUnderTest late(kPolicyWithMessage, options);
  RespUnderTest at_once(kPolicyWithMessage);
  for (const std::string& command : kHttpCommands) {
    late.AskAll({command});
    late.exchange.late.AnswerAll();
    std::string told;
    for (const std::string& reply : RespUnderTest::ShowAll(late.exchange.Take())) told += reply;
    if (told.empty()) continue;  // Refused at once.
    EXPECT_EQ(WithoutChance(told), WithoutChance(at_once.Ask(command))) << command;
  }
}

TEST(RespHttp, IsToldToThoseWhoWaited) {
  RespUnderTest resp(kPolicyWithMessage);
  resp.AskAll({"WEIR.CHECK * user ann @wait_ms 500 @http json"});
  resp.exchange.Decide(
      resp.exchange.waits.at(0),
      {.decision = {
           .allowed = true, .reason = Reason::kOk, .rule = "per-user", .limit = 1, .cost = 1}});
  EXPECT_THAT(RespUnderTest::ShowAll(resp.exchange.Take()),
              ElementsAre(AllOf(HasSubstr("status, 200"),
                                HasSubstr("RateLimit-Policy: \"per-user\";q=1;w=60\r\n"))));
}

TEST(RespHttp, IsRememberedUntilTheAnswerComes) {
  using resp::HttpForm;
  using resp::LateReply;
  for (const HttpForm form : {HttpForm::kNone, HttpForm::kJson, HttpForm::kProblem}) {
    const LateReply late{.version = resp::Version::kResp3,
                         .shape = {.http = form},
                         .window = std::chrono::hours(24 * 366)};
    const LateReply read = LateReply::Of(late.bits());
    EXPECT_EQ(read.version, late.version);
    EXPECT_EQ(read.shape.kind, resp::LimitShape::Kind::kDecision);
    EXPECT_EQ(read.shape.http, form);
    EXPECT_EQ(read.window, late.window);
  }
}

}  // namespace
}  // namespace weir
