// Requests whose answers come later, because the store is shared: the same replies as at once, in
// the same order.
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "frontend/http/http_under_test.h"
#include "frontend/http/late_replies.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

ExchangeUnderTest::Options Late() {
  ExchangeUnderTest::Options options;
  options.late = true;
  return options;
}

const std::string kAnnAtLogin = R"({"ip":"203.0.113.9","user":"ann","path":"/login"})";
const std::string kProblem = "Accept: application/problem+json\r\n";

const std::vector<std::string> kRequests = {
    Post("/v1/check", kAnnAtLogin),
    Post("/v1/check", kAnnAtLogin, kProblem),
    Post("/v1/check", R"({"user":"mallory"})"),
    Post("/v1/check", R"({"ip":"10.1.2.3"})"),
    Post("/v1/check", R"({"user":"ann","cost":1000})"),
    Post("/v1/check", R"({"rules":["nobody"]})"),
    Post("/v1/check", R"({"user":)"),
    Post("/v1/check", R"({"user":"ann","headers":{"x-pad":")" + std::string(3000, 'x') + R"("}})"),
    Post("/v1/check", R"({"user":"ann","path":"/export"})"),
    Post("/v1/check/batch", "[" + kAnnAtLogin + R"(,{"user":"bob"},{"user":"mallory"}])"),
    Post("/v1/check/batch", "[]"),
    Post("/v1/check/batch", R"([{"user":"bob"},{"rules":["nobody"]}])"),
    Post("/v1/limit", R"({"key":"k","limit":"2/min"})"),
    Post("/v1/limit", R"({"key":"k","limit":"2/min","algorithm":"fixed_window","cost":2})"),
    Post("/v1/limit", R"({"key":"k","limit":"often"})"),
    Post("/v1/peek", kAnnAtLogin),
    Post("/v1/reserve", R"({"user":"ann","cost":3,"ttl_ms":5000})"),
    Post("/v1/reserve", R"({"user":"ann","cost":0})"),
    Post("/v1/commit", R"({"reservation":"0123456789abcdef"})", kProblem),
    Post("/v1/cancel", R"({"reservation":"0123456789abcdef"})"),
    Post("/v1/release", R"({"reservation":"0123456789abcdef"})"),
    Post("/v1/refund", R"({"user":"ann","cost":2,"rules":["per-user"]})"),
    Post("/v1/penalize", R"({"user":"ann","cost":2,"rules":["per-user"]})"),
    Post("/v1/reset", R"({"user":"ann","rules":["per-user"]})"),
    Get("/v1/auth/login", "Cookie: a=b\r\n"),
    Post("/v1/auth/login?deny_status=403", "ignored", kProblem),
    "HEAD /v1/auth/login?deny_status=403 HTTP/1.1\r\nHost: weir\r\n\r\n",
    "OPTIONS /v1/auth HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    Get("/healthz"),
    Get("/nowhere"),
    "HEAD /readyz HTTP/1.1\r\nHost: weir\r\n\r\n",
    "POST /v1/check HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
};

enum class Order { kAtOnce, kForwards, kBackwards };
std::string RepliesTo(const std::vector<std::string>& requests, bool late, Order order) {
  HttpUnderTest http(late ? Late() : ExchangeUnderTest::Options{});
  http.late.at_once = order == Order::kAtOnce;
  std::string bytes;
  for (const std::string& request : requests) bytes += request;
  std::string replies = http.Send(bytes);
  if (order == Order::kForwards) http.late.AnswerAll();
  if (order == Order::kBackwards) http.late.AnswerAllBackwards();
  replies += http.Take();
  // What is drawn at random.
  replies = std::regex_replace(replies, std::regex("\"reservation\":\"[0-9a-f]{16}\""), "<id>");
  return std::regex_replace(replies, std::regex("Retry-After: [0-9]+"), "<later>");
}

TEST(HttpLate, AnswersEveryRequestAsAtOnce) {
  const std::string expected = RepliesTo(kRequests, false, Order::kAtOnce);
  EXPECT_EQ(RepliesTo(kRequests, true, Order::kAtOnce), expected);
  EXPECT_EQ(RepliesTo(kRequests, true, Order::kForwards), expected);
  EXPECT_EQ(RepliesTo(kRequests, true, Order::kBackwards), expected);
}

RC_GTEST_PROP(HttpLate, AnswersAnyPipelineAsAtOnce, ()) {
  const auto requests =
      *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kRequests));
  const std::string expected = RepliesTo(requests, false, Order::kAtOnce);
  RC_ASSERT(RepliesTo(requests, true, Order::kAtOnce) == expected);
  RC_ASSERT(RepliesTo(requests, true, Order::kForwards) == expected);
  RC_ASSERT(RepliesTo(requests, true, Order::kBackwards) == expected);
}

TEST(HttpLate, CountsRepliesWhenTheyAreMade) {
  HttpUnderTest http(Late());
  http.Send(Post("/v1/check", "{}") + Post("/v1/check", R"({"user":"mallory"})") +
            Post("/v1/check/batch", "[{},{}]"));
  EXPECT_EQ(http.Counted("200"), 0U);
  http.late.AnswerAll();
  EXPECT_EQ(http.Counted("200"), 2U);
  EXPECT_EQ(http.Counted("403"), 1U);
}

TEST(HttpLate, JoinsTheAnswersOfABatch) {
  HttpUnderTest http(Late());
  EXPECT_EQ(http.Send(Post("/v1/check/batch", R"([{"user":"a"},{"user":"b"},{"user":"a"}])") +
                      Get("/healthz")),
            "");
  EXPECT_THAT(http.late.kinds, SizeIs(3));
  http.late.Answer(1);
  http.late.Answer(1);
  EXPECT_EQ(http.Take(), "");
  http.late.Answer(0);
  const auto replies = RepliesIn(http.Take());
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_THAT(replies[0].body,
              testing::MatchesRegex(R"(\[\{.*"remaining":99,.*\},\{.*"remaining":198,.*\},)"
                                    R"(\{.*"remaining":98,.*\}\])"));
  EXPECT_EQ(replies[1].body, "ok");
}

TEST(HttpLate, GivesBackPlacesOfABatchThatIsAbandonedHalfWay) {
  HttpUnderTest http(Late());
  http.Send(Post("/v1/check/batch",
                 R"([{"user":"ann","path":"/export"},{"user":"bob","path":"/export"}])"));
  ASSERT_EQ(http.late.pending(), 2U);
  http.late.Answer(0);
  http.Reconnect();
  EXPECT_EQ(http.late.pending(), 2U) << "one that was asked, and one place that is given back";
  EXPECT_EQ(http.late.kinds.back(), Question::Kind::kCancel);
}

TEST(HttpLate, CountsABatchByItsQuestionsAmongThoseUnderWay) {
  ExchangeUnderTest::Options options = Late();
  options.bounds.held = 4;
  HttpUnderTest http(options);
  const std::string batch = Post("/v1/check/batch", "[{},{},{}]");
  http.Send(batch + batch + batch + batch);
  std::size_t replies = 0;
  while (http.late.pending() > 0) {
    EXPECT_LE(http.late.pending(), 6U);
    http.late.AnswerAllBackwards();
    replies += RepliesIn(http.Take()).size();
    http.TakeUp();
  }
  EXPECT_EQ(replies, 4U);
}

TEST(HttpLate, SaysWhatFailedToBeSettled) {
  HttpUnderTest http(Late());
  http.late.at_once = true;
  const std::string settle = R"({"reservation":"0123456789abcdef"})";
  http.late.error = Error{ErrorCode::kDeadline, "the store did not answer in time"};
  const HttpReply late = http.Ask(Post("/v1/commit", settle));
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(late.body, R"({"error":"deadline","message":"the store did not answer in time"})");
  http.late.error = Error{ErrorCode::kOverloaded, "the store cannot be reached"};
  EXPECT_EQ(http.Ask(Post("/v1/cancel", settle)).status, 503);
  EXPECT_EQ(http.Ask(Post("/v1/release", settle, kProblem)).header("content-type"),
            "application/problem+json");
}

TEST(HttpLate, SaysThatTheStoreFailed) {
  HttpUnderTest http(Late());
  http.late.at_once = true;
  http.late.instead = Decision{.reason = Reason::kStoreFailure,
                               .source = Source::kClosed,
                               .rule = "per-user",
                               .limit = 100,
                               .cost = 1,
                               .retry_after = std::chrono::seconds(1)};
  const HttpReply reply = http.Check(kAnnAtLogin);
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(reply.header("retry-after"), "(absent)");
  EXPECT_THAT(reply.body, HasSubstr(R"("reason":"store_failure","source":"closed")"));
}

TEST(HttpLate, ClosesWhenItsRequestSaysSo) {
  HttpUnderTest http(Late());
  http.Send(Post("/v1/check", "{}", "Connection: close\r\n") + Post("/v1/check", "{}"));
  EXPECT_TRUE(http.replies().closing());
  http.late.AnswerAll();
  const auto replies = RepliesIn(http.Take());
  ASSERT_THAT(replies, SizeIs(1));
  EXPECT_EQ(replies[0].header("connection"), "close");
}

TEST(HttpLate, ClosesAfterTheLastRequestOfADrain) {
  for (const std::string& last :
       {Post("/v1/check", "{}"), Post("/v1/check/batch", "[{},{}]"), Post("/v1/peek", "{}"),
        Post("/v1/limit", R"({"key":"k","limit":"2/min"})")}) {
    HttpUnderTest http(Late());
    http.Send(Post("/v1/check", "{}") + last);
    http.is_draining = true;
    http.late.AnswerAllBackwards();
    const auto replies = RepliesIn(http.Take());
    ASSERT_THAT(replies, SizeIs(2));
    EXPECT_EQ(replies[0].header("connection"), "(absent)");
    EXPECT_EQ(replies[1].header("connection"), "close");
    EXPECT_TRUE(http.replies().closing());
  }
}

TEST(HttpLate, DropsAnswersForAConnectionThatHasEnded) {
  HttpUnderTest http(Late());
  http.Send(Post("/v1/check", "{}") + Post("/v1/check/batch", "[{},{}]"));
  http.Reconnect();
  http.Send(Post("/v1/check", "{}"));
  http.late.AnswerAllBackwards();
  EXPECT_THAT(RepliesIn(http.Take()), SizeIs(1));
}

TEST(HttpLateTag, IsReadAsItWasWritten) {
  const LateTag tag{.form = {.persistence = HttpPersistence::kKeepAlive, .problem = true},
                    .style = AnswerStyle::kBatchItem,
                    .item = 999,
                    .number = 123'456'789'012};
  const LateTag read = LateTag::Of(tag.bits());
  EXPECT_FALSE(read.form.without_body || read.form.is_auth || read.form.denies_by_403);
  EXPECT_EQ(read.form.persistence, HttpPersistence::kKeepAlive);
  EXPECT_TRUE(read.form.problem);
  EXPECT_EQ(read.style, AnswerStyle::kBatchItem);
  EXPECT_EQ(read.item, 999U);
  EXPECT_EQ(read.number, 123'456'789'012U);
}

TEST(HttpLateTag, KeepsWhatForwardAuthWants) {
  for (const ReplyForm& form : {ReplyForm{.without_body = true}, ReplyForm{.is_auth = true},
                                ReplyForm{.denies_by_403 = true}}) {
    const ReplyForm read = LateTag::Of(LateTag{.form = form, .number = 1}.bits()).form;
    EXPECT_EQ(read.without_body, form.without_body);
    EXPECT_EQ(read.is_auth, form.is_auth);
    EXPECT_EQ(read.denies_by_403, form.denies_by_403);
    EXPECT_FALSE(read.problem);
  }
}

}  // namespace
}  // namespace weir
