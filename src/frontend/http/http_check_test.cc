// Checks over HTTP: what comes back, in which order, and how it is cut into pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/http/http_under_test.h"
#include "net/http/date_line.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpCheck, AnswersExactlyAsDocumented) {
  HttpUnderTest http;
  const Now now = http.clock.Read();
  const auto reset =
      RoundUpTo<std::chrono::seconds>(now.wall.time_since_epoch() + std::chrono::milliseconds(600));
  const std::string reset_at = std::to_string(reset);
  HttpDateLine date;
  date.SetTo(std::chrono::floor<std::chrono::seconds>(now.wall));
  const std::string body =
      R"({"allowed":true,"rule":"per-user","limit":100,"remaining":99,"cost":1,"retry_after":0,)"
      R"("retry_after_ms":0,"reset_after":1,"reset_after_ms":600,"reset_at":)" +
      reset_at + R"(,"delay_ms":0,"reason":"ok","source":"memory"})";
  EXPECT_EQ(http.Send(Post("/v1/check", kAnn)),
            "HTTP/1.1 200 OK\r\n" + std::string(date.text()) +
                "Content-Type: application/json\r\nX-RateLimit-Limit: 100\r\n"
                "X-RateLimit-Remaining: 99\r\nX-RateLimit-Reset: " +
                reset_at +
                "\r\nRateLimit-Policy: \"per-ip\";q=200;w=60, \"per-user\";q=100;w=60\r\n"
                "RateLimit: \"per-user\";r=99;t=1\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(http.Counted("200"), 1U);
  EXPECT_EQ(http.decided, 1U);
}

TEST(HttpCheck, DeniesWithAWaitThatIsNeverTooShort) {
  HttpUnderTest http;
  const std::string body = R"({"ip":"203.0.113.9","path":"/login"})";
  http.Check(body);
  http.Check(body);
  const HttpReply reply = http.Check(body);
  EXPECT_EQ(reply.status, 429);
  const int wait = std::stoi(reply.header("retry-after"));
  EXPECT_GE(wait, 30);
  EXPECT_LE(wait, 33);
  EXPECT_EQ(reply.header("cache-control"), "no-store");
  EXPECT_EQ(reply.header("ratelimit"), "\"login\";r=0;t=30");
  EXPECT_EQ(reply.header("x-ratelimit-remaining"), "0");
  EXPECT_THAT(reply.body, StartsWith(R"({"error":"rate_limited","message":"Too many attempts to)"
                                     R"( log in.","allowed":false,"rule":"login","limit":2,)"));
  EXPECT_THAT(reply.body, HasSubstr(R"("retry_after":30,"retry_after_ms":30000,)"));
  EXPECT_EQ(http.Counted("429"), 1U);
}

TEST(HttpCheck, SaysInWordsHowLongToWaitIfTheRuleHasNoMessage) {
  HttpUnderTest http({}, "rules: [{name: a, key: ip, limit: 5/min}]");
  const HttpReply reply = http.Check(R"({"ip":"1.2.3.4","cost":5})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(http.Check(R"({"ip":"1.2.3.4"})").body,
              HasSubstr(R"("message":"Too many requests. Retry after 12 seconds.")"));
  http.clock.Advance(std::chrono::milliseconds(11'500));
  EXPECT_THAT(http.Check(R"({"ip":"1.2.3.4"})").body, HasSubstr("Retry after 1 second.\""));
}

TEST(HttpCheck, SaysThatWaitingIsNoUseWithoutATime) {
  HttpUnderTest http;
  const HttpReply reply = http.Check(R"({"ip":"203.0.113.9","cost":201})");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(reply.header("retry-after"), "(absent)");
  EXPECT_THAT(reply.body, HasSubstr(R"("retry_after":null,"retry_after_ms":null,)"));
  EXPECT_THAT(reply.body, HasSubstr(R"("reason":"never_fits")"));
}

TEST(HttpCheck, HasNoLimitsToTellOfWhereAListOrNoRuleDecides) {
  HttpUnderTest http({},
                     "allow: [{user: root}]\ndeny: [{user: mallory}]\n"
                     "rules: [{name: a, match: {path: /x}, key: ip, limit: 5/min}]");
  for (const char* body : {R"({"user":"root"})", R"({"user":"mallory"})", "{}"}) {
    const HttpReply reply = http.Check(body);
    EXPECT_EQ(reply.status, std::string_view(body).contains("mallory") ? 403 : 200);
    EXPECT_EQ(reply.header("ratelimit"), "(absent)");
    EXPECT_EQ(reply.header("ratelimit-policy"), "(absent)");
    EXPECT_EQ(reply.header("x-ratelimit-limit"), "(absent)");
    EXPECT_EQ(reply.header("retry-after"), "(absent)");
    EXPECT_THAT(reply.body, HasSubstr(R"("rule":null,)"));
  }
}

TEST(HttpCheck, LeavesOutHeadersThatThePolicyDoesNotWant) {
  ExchangeUnderTest::Options options;
  options.settings.x_ratelimit_headers = false;
  EXPECT_EQ(HttpUnderTest(options).Check(kAnn).header("x-ratelimit-limit"), "(absent)");
  EXPECT_NE(HttpUnderTest(options).Check(kAnn).header("ratelimit"), "(absent)");
  options.settings = {.ratelimit_headers = false, .reset = ResetStyle::kDelta};
  const HttpReply reply = HttpUnderTest(options).Check(kAnn);
  EXPECT_EQ(reply.header("x-ratelimit-reset"), "1");
  EXPECT_EQ(reply.header("ratelimit"), "(absent)");
  EXPECT_EQ(reply.header("ratelimit-policy"), "(absent)");
}

TEST(HttpCheck, TellsProblemsInTheFormThatWasAskedFor) {
  HttpUnderTest http;
  const std::string accept = "Accept: application/json;q=0.5, application/problem+json\r\n";
  const HttpReply reply = http.Check(R"({"ip":"203.0.113.9","cost":201})", accept);
  EXPECT_EQ(reply.header("content-type"), "application/problem+json");
  EXPECT_THAT(reply.body,
              StartsWith(R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceed)"
                         R"(ed","title":"Quota exceeded","status":429,"detail":"This request )"));
  EXPECT_THAT(reply.body, HasSubstr(R"("violated-policies":["per-ip"],"allowed":false)"));
  const HttpReply error = http.Check(R"({"cost":-1})", accept);
  EXPECT_EQ(error.header("content-type"), "application/problem+json");
  EXPECT_EQ(error.body, R"({"type":"about:blank","title":"Bad Request","status":400,"detail":)"
                        R"("cost: write a whole number, 0 to 1000000000000000",)"
                        R"("error":"invalid_argument"})");
  EXPECT_EQ(http.Check(kAnn, accept).header("content-type"), "application/json");
}

TEST(HttpCheck, TellsProblemsOnlyToThoseWhoWantThem) {
  HttpUnderTest http;
  const auto type = [&](const std::string& accept) {
    return http.Check(R"({"cost":-1})", "Accept: " + accept + "\r\n").header("content-type");
  };
  for (const char* accept :
       {"application/problem+json;q=0", "application/problem+json; q=0.000",
        "application/problem+json;v=1;Q=0, */*", "application/problem+jsonx, application/json",
        "text/html;x=application/problem+json", "application/json, text/plain, */*"}) {
    EXPECT_EQ(type(accept), "application/json") << accept;
  }
  for (const char* accept :
       {"application/problem+json", "Application/Problem+JSON",
        "text/html , application/problem+json", "application/problem+json;q=0.001",
        "application/problem+json ; q=1.0"}) {
    EXPECT_EQ(type(accept), "application/problem+json") << accept;
  }
}

TEST(HttpCheck, GivesThePlaceUnderAConcurrencyLimitAName) {
  HttpUnderTest http;
  const std::string body = R"({"user":"ann","ip":"1.2.3.4","path":"/export"})";
  const HttpReply reply = http.Check(body);
  const std::size_t at = reply.body.find(R"("reservation":")");
  ASSERT_NE(at, std::string::npos);
  const std::string id = reply.body.substr(at + 15, 16);
  EXPECT_EQ(http.Check(body).status, 429);
  EXPECT_EQ(http.Ask(Post("/v1/release", R"({"reservation":")" + id + "\"}")).status, 200);
  EXPECT_EQ(http.Check(body).status, 200);
  EXPECT_EQ(http.Ask(Post("/v1/release", R"({"reservation":")" + id + "\"}")).status, 404);
}

TEST(HttpCheck, AnswersInOrderHoweverManyComeAtOnce) {
  HttpUnderTest http;
  std::string requests;
  for (int i = 0; i < 70; ++i) requests += Post("/v1/check", kAnn);
  requests += Get("/healthz") + Post("/v1/check", "{") + Post("/v1/check", kAnn);
  const std::vector<HttpReply> replies = RepliesIn(http.Send(requests));
  ASSERT_EQ(replies.size(), 73U);
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(replies[static_cast<std::size_t>(i)].header("x-ratelimit-remaining"),
              std::to_string(99 - i));
  }
  EXPECT_EQ(replies[70].body, "ok");
  EXPECT_EQ(replies[71].status, 400);
  EXPECT_EQ(replies[72].header("x-ratelimit-remaining"), "29");
  EXPECT_EQ(http.decided, 71U);
  EXPECT_EQ(http.left_over(), "");
}

TEST(HttpCheck, AnswersTheSameHoweverTheBytesAreCut) {
  const std::string requests = Post("/v1/check", kAnn) +
                               "POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked" +
                               "\r\n\r\n5\r\n{\"use\r\n9\r\nr\":\"ann\"}\r\n0\r\n\r\n" +
                               Get("/v1/nothing") + Post("/v1/peek", kAnn);
  const std::string whole = HttpUnderTest().Send(requests);
  EXPECT_EQ(RepliesIn(whole).size(), 4U);
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 50U}) {
    EXPECT_EQ(HttpUnderTest().SendInPieces(requests, piece), whole) << piece;
  }
}

TEST(HttpCheck, ReadsLargeBodiesAmongSmallOnes) {
  HttpUnderTest http;
  const std::string large =
      R"({"user":"ann","ip":"203.0.113.9","headers":{"x":")" + std::string(5000, 'x') + "\"}}";
  const auto replies = RepliesIn(
      http.Send(Post("/v1/check", kAnn) + Post("/v1/check", large) + Post("/v1/check", kAnn)));
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[1].header("x-ratelimit-remaining"), "98");
  EXPECT_EQ(replies[2].header("x-ratelimit-remaining"), "97");
}

TEST(HttpCheck, StopsTakingRequestsWhenRepliesAreFull) {
  ExchangeUnderTest::Options options;
  options.bounds.bytes = 1000;
  HttpUnderTest http(options);
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += Post("/v1/check", kAnn);
  std::size_t replies = RepliesIn(http.Send(requests)).size();
  EXPECT_LT(replies, 100U);
  while (!http.left_over().empty()) replies += RepliesIn(http.Send("")).size();
  EXPECT_EQ(replies, 100U);
}

TEST(HttpCheck, HoldsTheAnswerOfOneThatWaitsAndThoseBehindIt) {
  HttpUnderTest http;
  const std::string waiting = Post("/v1/check", R"({"user":"ann","wait_ms":1500,"cost":3})",
                                   "Accept: application/problem+json\r\n");
  EXPECT_EQ(http.Send(waiting + Get("/healthz")), "");
  ASSERT_EQ(http.waits.size(), 1U);
  EXPECT_EQ(http.waits[0].patience, std::chrono::milliseconds(1500));
  EXPECT_EQ(http.waits[0].ask.cost, 3);
  EXPECT_EQ(http.waits[0].user, "ann");
  http.Decide(http.waits[0], {.decision = {.reason = Reason::kOverload, .retry_after = kNever}});
  const auto replies = RepliesIn(http.Take());
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].status, 503);
  EXPECT_EQ(replies[0].header("content-type"), "application/problem+json");
  EXPECT_EQ(replies[0].header("retry-after"), "(absent)");
  EXPECT_EQ(replies[1].body, "ok");
}

TEST(HttpCheck, TellsTheWindowOfTheRuleThatIsOverloaded) {
  HttpUnderTest http;
  http.Send(Post("/v1/check", R"({"user":"ann","wait_ms":1500})"));
  http.Decide(http.waits.at(0), {.decision = {.reason = Reason::kOverload,
                                              .rule = "per-user",
                                              .limit = 100,
                                              .retry_after = std::chrono::seconds(5)}});
  const HttpReply reply = RepliesIn(http.Take()).at(0);
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("ratelimit-policy"), "\"per-user\";q=100;w=60");
  EXPECT_THAT(reply.body, HasSubstr("\"message\":\"Too many requests wait or hold places already. "
                                    "Retry after 5 seconds.\""));
}

TEST(HttpCheck, ClosesAfterAWaitThatWasTheLastRequestOfADrain) {
  HttpUnderTest http;
  http.Send(Post("/v1/check", R"({"user":"ann","wait_ms":1500})"));
  http.is_draining = true;
  http.Decide(http.waits.at(0), {.decision = {.allowed = true, .reason = Reason::kOk}});
  EXPECT_EQ(RepliesIn(http.Take()).at(0).header("connection"), "close");
  EXPECT_TRUE(http.replies().closing());
}

}  // namespace
}  // namespace weir
