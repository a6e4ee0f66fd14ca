// Forward-auth from bytes to bytes: whom it limits by what, and what the proxy is told.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/http/http_under_test.h"

namespace weir {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr std::string_view kPolicy = R"(
trusted_proxies: [203.0.113.9]
identity:
  user: {header: x-user}
  tier: {header: x-tier, default: free}
deny: [{user: mallory}, {path: /secret/**}]
allow: [{user: root}]
rules:
  - name: per-ip
    key: ip
    limit: 100/min
  - name: login
    match: {path: /login, method: POST}
    key: ip
    limit: 2/min
    message: Too many attempts to log in.
  - name: shop
    match: {host: shop.example}
    key: global
    limit: 50/min
  - name: pages
    match: {query.page: present}
    key: query.page
    limit: 30/min
  - name: session
    match: {cookie.sid: present}
    key: cookie.sid
    limit: 10/min
  - name: heavy
    match: {path: /heavy}
    key: ip
    limit: 10/min
    cost: {header: x-cost, from: trusted, default: 1, max: 100}
  - name: never
    match: {path: /never}
    key: ip
    limit: deny
)";

class HttpAuth : public testing::Test {
 protected:
  static std::string Auth(const std::string& headers, const std::string& below = "",
                          const std::string& method = "GET") {
    return method + " /v1/auth" + below + " HTTP/1.1\r\nHost: weir\r\n" + headers + "\r\n";
  }
  // What is left under the rule that speaks for all.
  std::string Left(const std::string& headers, const std::string& below = "") {
    return http_.Ask(Auth(headers, below)).header("ratelimit");
  }
  static std::string Login(const std::string& more = "") {
    return "X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /login\r\n" + more;
  }

  HttpUnderTest http_{{}, kPolicy};
};

TEST_F(HttpAuth, AllowsBy200AndNothingToRead) {
  const HttpReply reply = http_.Ask(Auth("X-Forwarded-For: 198.51.100.1\r\n"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(reply.header("content-length"), "0");
  EXPECT_EQ(reply.header("content-type"), "(absent)");
  EXPECT_EQ(reply.header("x-ratelimit-limit"), "100");
  EXPECT_EQ(reply.header("x-ratelimit-remaining"), "99");
  EXPECT_EQ(reply.header("ratelimit"), R"("per-ip";r=99;t=1)");
  EXPECT_EQ(reply.header("cache-control"), "no-store");
  EXPECT_EQ(reply.header("x-weir-reason"), "(absent)");
  EXPECT_EQ(http_.Counted("200"), 1U);
}

TEST_F(HttpAuth, DeniesBy429WithAllThatAClientShouldKnow) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(http_.Ask(Auth(Login())).status, 200);
  const HttpReply reply = http_.Ask(Auth(Login()));
  EXPECT_EQ(reply.status, 429);
  EXPECT_THAT(reply.body, HasSubstr(R"("error":"rate_limited","message":"Too many attempts)"));
  EXPECT_GE(std::stoi(reply.header("retry-after")), 30);
  EXPECT_EQ(reply.header("x-ratelimit-remaining"), "0");
  EXPECT_EQ(reply.header("ratelimit"), R"("login";r=0;t=30)");
  EXPECT_THAT(reply.header("ratelimit-policy"), HasSubstr(R"("login";q=2;w=60)"));
  EXPECT_EQ(reply.header("cache-control"), "no-store");
  EXPECT_EQ(reply.header("x-weir-reason"), "limited");
  EXPECT_EQ(reply.header("location"), "(absent)");
  EXPECT_EQ(http_.Counted("429"), 1U);
}

TEST_F(HttpAuth, DeniesBy403IfTheProxyWantsThat) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(http_.Ask(Auth(Login())).status, 200);
  const HttpReply reply = http_.Ask(Auth(Login(), "?deny_status=403"));
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(reply.header("x-weir-reason"), "limited");
  EXPECT_GE(std::stoi(reply.header("retry-after")), 30);
  EXPECT_THAT(reply.body, HasSubstr(R"("error":"rate_limited")"));
  const HttpReply problem =
      http_.Ask(Auth(Login("Accept: application/problem+json\r\n"), "/?deny_status=403"));
  EXPECT_EQ(problem.header("content-type"), "application/problem+json");
  EXPECT_THAT(problem.body, HasSubstr(R"("status":403)"));
  EXPECT_THAT(problem.body, HasSubstr(R"("violated-policies":["login"])"));
  for (const char* odd : {"?deny_status=200", "?deny_status=500", "?deny_status=", "?deny=403"}) {
    EXPECT_EQ(http_.Ask(Auth(Login(), odd)).status, 429) << odd;
  }
}

TEST_F(HttpAuth, SaysWhyThoseOnAListAreDenied) {
  const HttpReply listed = http_.Ask(Auth("X-User: mallory\r\n"));
  EXPECT_EQ(listed.status, 403);
  EXPECT_EQ(listed.header("x-weir-reason"), "deny_list");
  EXPECT_EQ(listed.header("retry-after"), "(absent)");
  EXPECT_THAT(listed.body, HasSubstr(R"("error":"forbidden")"));
  EXPECT_EQ(http_.Ask(Auth("", "/never")).status, 403);
  EXPECT_EQ(http_.Ask(Auth("X-User: root\r\n", "/login")).status, 200);
}

TEST_F(HttpAuth, FindsTheClientBehindTheProxy) {
  EXPECT_EQ(Left("X-Forwarded-For: 198.51.100.1\r\n"), R"("per-ip";r=99;t=1)");
  EXPECT_EQ(Left("X-Forwarded-For: 198.51.100.2, 198.51.100.1\r\n"), R"("per-ip";r=98;t=2)");
  EXPECT_EQ(Left("X-Forwarded-For: 198.51.100.2\r\n"), R"("per-ip";r=99;t=1)");
}

TEST_F(HttpAuth, LimitsByWhatTheOriginalRequestHas) {
  EXPECT_EQ(Left("X-Forwarded-Host: SHOP.example:8443\r\n"), R"("shop";r=49;t=2)");
  EXPECT_EQ(Left("X-Forwarded-Uri: /list?page=7\r\n"), R"("pages";r=29;t=2)");
  EXPECT_EQ(Left("", "/list?page=7"), R"("pages";r=28;t=4)");
  EXPECT_EQ(Left("", "?page=7"), R"("pages";r=27;t=6)");
  EXPECT_EQ(Left("Cookie: a=b; sid=s1\r\n"), R"("session";r=9;t=6)");
  EXPECT_EQ(Left("X-Cost: 4\r\n", "/heavy"), R"("heavy";r=6;t=24)");
}

// Its own URL's query is the proxy's.
TEST_F(HttpAuth, DoesNotTakeTheQueryOfItsOwnUrlForTheClients) {
  EXPECT_EQ(Left("X-Original-URI: /list\r\n", "?page=7"), R"("per-ip";r=99;t=1)");
}

TEST_F(HttpAuth, ComparesPathsHoweverTheyAreWritten) {
  const std::vector<std::string> ways = {
      "/secret/a",   "//secret/a", "/x/../secret/a",        "/x/%2e%2e/secret/a",
      "/%73ecret/a", "secret/a",   "http://other/secret/a", "/secret"};
  for (const std::string& way : ways) {
    EXPECT_EQ(http_.Ask(Auth("X-Forwarded-Uri: " + way + "\r\n")).status, 403) << way;
  }
  for (const char* below : {"/secret/a", "//secret/a", "/x/../secret/a", "/%73ecret/a"}) {
    EXPECT_EQ(http_.Ask(Auth("", below)).status, 403) << below;
  }
}

TEST_F(HttpAuth, BelievesNobodyButItsProxies) {
  http_.address = "192.0.2.66";
  http_.Reconnect();
  const std::string forged = Login(
      "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Host: shop.example\r\nX-User: root\r\n"
      "X-Original-URI: /secret/a\r\nX-Cost: 100\r\n");
  EXPECT_EQ(Left(forged), R"("per-ip";r=99;t=1)");
  EXPECT_EQ(Left(forged, "/heavy"), R"("heavy";r=9;t=6)");
  EXPECT_EQ(http_.Ask(Auth(forged, "/secret/a")).status, 403);
  http_.address = "203.0.113.9";
  http_.Reconnect();
  // Nothing was charged to whom it said it was.
  EXPECT_EQ(Left("X-Forwarded-For: 198.51.100.1\r\n"), R"("per-ip";r=99;t=1)");
  EXPECT_EQ(Left("X-Forwarded-For: 192.0.2.66\r\n"), R"("per-ip";r=97;t=2)");
}

TEST_F(HttpAuth, TakesAUnixSocketForAProxy) {
  http_.address = "";
  http_.Reconnect();
  EXPECT_EQ(Left("X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Uri: /list?page=1\r\n"),
            R"("pages";r=29;t=2)");
}

TEST_F(HttpAuth, RefusesContradictionsAndChargesNothing) {
  const HttpReply reply = http_.Ask(Auth("X-Forwarded-Uri: /cheap\r\nX-Original-URI: /login\r\n"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("the proxy must remove"));
  EXPECT_EQ(Left(""), R"("per-ip";r=99;t=1)");
}

TEST_F(HttpAuth, TakesEveryMethodAndIgnoresBodies) {
  for (const std::string method :
       {"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "M-SEARCH"}) {
    EXPECT_EQ(http_.Ask(Auth("", "/", method)).status, 200) << method;
    EXPECT_EQ(http_
                  .Ask(method + " /v1/auth HTTP/1.1\r\nHost: weir\r\n"
                                "Content-Length: 3\r\n\r\n{{{")
                  .status,
              200)
        << method;
    EXPECT_EQ(http_
                  .Ask(method + " /v1/auth HTTP/1.1\r\nHost: weir\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n3\r\n{{{\r\n0\r\n\r\n")
                  .status,
              200)
        << method;
  }
  const HttpReply tunnel = http_.Ask(Auth("", "/", "CONNECT"));
  EXPECT_EQ(tunnel.status, 501);
  EXPECT_TRUE(http_.replies().closing());
}

TEST_F(HttpAuth, AnswersHeadWithoutABody) {
  for (int i = 0; i < 2; ++i) http_.Ask(Auth(Login()));
  const std::string bytes = http_.Send(Auth(Login(), "", "HEAD"));
  const auto replies = RepliesIn(bytes, true);
  ASSERT_THAT(replies, SizeIs(1));
  EXPECT_EQ(replies[0].status, 429);
  EXPECT_GT(std::stoi(replies[0].header("content-length")), 100);
}

TEST_F(HttpAuth, TakesTheMethodOfTheRequestItselfIfNoHeaderTells) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(http_.Ask(Auth("", "/login", "POST")).status, 200);
  EXPECT_EQ(http_.Ask(Auth("", "/login", "POST")).status, 429);
  EXPECT_EQ(http_.Ask(Auth("", "/login", "GET")).status, 200);
  EXPECT_EQ(http_.Ask(Auth("X-Original-Method: POST\r\n", "/login", "GET")).status, 429);
}

TEST_F(HttpAuth, IsNothingBesideItsPath) {
  for (const char* other : {"x", "%2f", "entication", ".json"}) {
    EXPECT_EQ(http_.Ask(Auth("", other)).status, 404) << other;
  }
  EXPECT_EQ(http_.Ask("GET http://weir/v1/auth/login?a=b HTTP/1.1\r\nHost: weir\r\n\r\n").status,
            200);
}

TEST_F(HttpAuth, SpeaksHttp10) {
  const HttpReply closed = http_.Ask("GET /v1/auth HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closed.status, 200);
  EXPECT_EQ(closed.header("connection"), "close");
  http_.Reconnect();
  const HttpReply kept = http_.Ask("GET /v1/auth HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.header("connection"), "keep-alive");
}

TEST_F(HttpAuth, KeepsTheOrderOfAPipeline) {
  const std::string check = Post("/v1/check", R"({"ip":"198.51.100.1","path":"/list"})");
  const std::string auth = Auth("X-Forwarded-For: 198.51.100.1\r\n", "/list");
  const auto replies = RepliesIn(http_.Send(check + auth + check + auth + auth + check));
  ASSERT_THAT(replies, SizeIs(6));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].header("x-ratelimit-remaining"), std::to_string(99 - i));
    EXPECT_EQ(replies[i].body.empty(), i == 1 || i == 3 || i == 4);
  }
}

// What was read ahead stays what it was when other heads come after it.
TEST_F(HttpAuth, IsNotMixedUpWithItsNeighbours) {
  std::string requests;
  for (int i = 0; i < 40; ++i) {
    requests += Auth("X-Forwarded-For: 198.51.100." + std::to_string(i % 4) + "\r\n");
  }
  const auto replies = RepliesIn(http_.Send(requests));
  ASSERT_THAT(replies, SizeIs(40));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].header("x-ratelimit-remaining"), std::to_string(99 - i / 4));
  }
}

TEST_F(HttpAuth, TakesAHeaderThatIsAsLongAsItMayBe) {
  const std::string path = "/" + std::string(15'000, 'a') + "/login";
  EXPECT_EQ(http_.Ask(Auth("X-Forwarded-Uri: " + path + "\r\n")).status, 200);
  EXPECT_EQ(http_.Ask(Auth("", path)).status, 200);
  EXPECT_EQ(http_.Ask(Auth("X-Forwarded-Uri: /" + std::string(20'000, 'a') + "\r\n")).status, 431);
}

class HttpAuthToken : public HttpAuth {
 protected:
  HttpAuthToken() : guarded_({.access = {.token = "of the service"}}, kPolicy) {}

  int StatusWith(const std::string& headers) { return guarded_.Ask(Auth(headers)).status; }

  HttpUnderTest guarded_;
};

TEST_F(HttpAuthToken, HasAHeaderOfItsOwn) {
  EXPECT_EQ(StatusWith("X-Weir-Token: of the service\r\n"), 200);
  EXPECT_EQ(StatusWith("X-Weir-Token: of the service\r\nAuthorization: Bearer somebody\r\n"), 200);
  EXPECT_EQ(StatusWith("X-Weir-Token: of the service\r\nAuthorization: Basic YTpi\r\n"), 200);
  EXPECT_EQ(StatusWith("Authorization: Bearer of the service\r\n"), 200);
  EXPECT_EQ(guarded_.Refused(Refusal::kToken), 0U);
}

TEST_F(HttpAuthToken, IsNeeded) {
  EXPECT_EQ(StatusWith(""), 401);
  EXPECT_EQ(StatusWith("X-Weir-Token: wrong\r\n"), 401);
  EXPECT_EQ(StatusWith("X-Weir-Token: \r\n"), 401);
  EXPECT_EQ(StatusWith("Authorization: Bearer somebody\r\n"), 401);
  EXPECT_EQ(guarded_.Refused(Refusal::kToken), 4U);
  const HttpReply reply = guarded_.Ask(Auth(""));
  EXPECT_THAT(reply.body, HasSubstr("X-Weir-Token"));
  EXPECT_EQ(StatusWith("X-Weir-Token: of the service\r\nX-Weir-Token: of the service\r\n"), 400);
}

TEST_F(HttpAuthToken, IsTakenFromThatHeaderForNothingElse) {
  EXPECT_EQ(guarded_.Ask(Post("/v1/check", "{}", "X-Weir-Token: of the service\r\n")).status, 401);
}

TEST_F(HttpAuthToken, OfSomebodyElseIsNoMatterWhereNoneIsNeeded) {
  for (const char* other : {"Authorization: Bearer somebody\r\n", "X-Weir-Token: somebody\r\n"}) {
    EXPECT_EQ(http_.Ask(Auth(other)).status, 200);
  }
  EXPECT_EQ(http_.Refused(Refusal::kToken), 0U);
}

constexpr std::string_view kQueues = R"(
trusted_proxies: [203.0.113.9]
rules:
  - name: per-ip
    key: ip
    limit: 100/min
  - name: shaped
    match: {path: /shaped/**}
    key: global
    limit: 10/s burst 5
    algorithm: leaky_bucket
    queue: true
)";

TEST(HttpAuthQueue, IsWaitedForOnlyByThoseItMayHold) {
  HttpUnderTest http({}, kQueues);
  EXPECT_EQ(http.Ask(Get("/v1/auth/plain")).status, 200);
  EXPECT_THAT(http.waits, SizeIs(0));
  EXPECT_EQ(http.Send(Get("/v1/auth/shaped/a") + Get("/v1/auth/plain")), "");
  ASSERT_THAT(http.waits, SizeIs(1));
  EXPECT_EQ(http.waits[0].what, WaitFor::kQueues);
  EXPECT_EQ(http.waits[0].patience, std::chrono::seconds(1));
  EXPECT_EQ(http.waits[0].path, "/shaped/a");
  http.Decide(http.waits[0], {.decision = {.allowed = true, .rule = "shaped", .limit = 5}});
  const auto replies = RepliesIn(http.Take());
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_EQ(replies[0].status, 200);
  EXPECT_EQ(replies[0].body, "");
}

TEST(HttpAuthQueue, HoldsForAsLongAsThePolicySays) {
  HttpUnderTest http({}, "queue_hold: 250ms\n" + std::string(kQueues));
  http.Send(Get("/v1/auth/shaped/a"));
  ASSERT_THAT(http.waits, SizeIs(1));
  EXPECT_EQ(http.waits[0].patience, std::chrono::milliseconds(250));
}

TEST(HttpAuthQueue, SaysSoWhenTooManyWait) {
  HttpUnderTest http({}, kQueues);
  http.Send(Get("/v1/auth/shaped/a?deny_status=403"));
  ASSERT_THAT(http.waits, SizeIs(1));
  http.Decide(http.waits[0], {.decision = {.reason = Reason::kOverload}});
  const auto replies = RepliesIn(http.Take());
  ASSERT_THAT(replies, SizeIs(1));
  EXPECT_EQ(replies[0].status, 503);
  EXPECT_EQ(replies[0].header("x-weir-reason"), "overload");
}

}  // namespace
}  // namespace weir
