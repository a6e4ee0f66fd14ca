// HTTP itself: persistence, errors, rights, paths and methods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/http/http_under_test.h"
#include "frontend/http/routes.h"
#include "net/http/date_line.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

TEST(HttpProtocol, KeepsConnectionsAsClientsWantIt) {
  HttpUnderTest http;
  EXPECT_EQ(http.Ask(Get("/healthz")).header("connection"), "(absent)");
  EXPECT_EQ(
      http.Ask("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("connection"),
      "keep-alive");
  EXPECT_FALSE(http.replies().closing());
  EXPECT_EQ(
      http.Ask(Get("/healthz", "Connection: close\r\n") + Get("/healthz")).header("connection"),
      "close");
  EXPECT_TRUE(http.replies().closing());
  HttpUnderTest old;
  EXPECT_EQ(old.Ask("GET /healthz HTTP/1.0\r\n\r\n").header("connection"), "close");
  EXPECT_TRUE(old.replies().closing());
}

TEST(HttpProtocol, EndsConnectionsWhileTheServiceDrainsOnceAllIsAnswered) {
  HttpUnderTest http;
  http.is_draining = true;
  const auto replies = RepliesIn(http.Send(Get("/healthz") + Post("/v1/check", "{}")));
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].header("connection"), "(absent)");
  EXPECT_EQ(replies[1].header("connection"), "close");
  EXPECT_TRUE(http.replies().closing());
}

TEST(HttpProtocol, RefusesWhatIsNoHttpAndCloses) {
  struct Case {
    std::string text;
    int status;
    Refusal why;
  };
  const std::vector<Case> cases = {
      {"hello\r\n\r\n", 400, Refusal::kProtocol},
      {"GET / HTTP/3.0\r\n\r\n", 505, Refusal::kProtocol},
      {Get("/", "Expect: more\r\n"), 417, Refusal::kProtocol},
      {Get("/", "X: " + std::string(20'000, 'x') + "\r\n"), 431, Refusal::kHeader},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", 413, Refusal::kBody},
  };
  for (const Case& example : cases) {
    HttpUnderTest http;
    const auto replies =
        RepliesIn(http.Send(Get("/healthz") + Post("/v1/check", "{}") + example.text + "junk"));
    ASSERT_EQ(replies.size(), 3U) << example.text;
    EXPECT_EQ(replies[2].status, example.status);
    EXPECT_EQ(replies[2].header("connection"), "close");
    EXPECT_THAT(replies[2].body, HasSubstr("\"error\":\""));
    EXPECT_TRUE(http.replies().closing());
    EXPECT_EQ(http.Refused(example.why), 1U);
    EXPECT_EQ(http.Counted(std::to_string(example.status)), 1U);
  }
}

TEST(HttpProtocol, TellsClientsThatAskToGoOn) {
  HttpUnderTest http;
  const std::string whole = Post("/v1/check", "{}", "Expect: 100-continue\r\n");
  EXPECT_EQ(http.Send(whole.substr(0, whole.size() - 2)), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(http.last.wants, whole.size());
  EXPECT_EQ(http.Ask("{}").status, 200);
  EXPECT_EQ(RepliesIn(http.Send(whole)).size(), 1U);
}

TEST(HttpProtocol, KnowsItsPathsAndMethods) {
  HttpUnderTest http;
  for (const HttpRoute& route : kHttpRoutes) {
    for (const char* method : {"GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"}) {
      const auto reply = http.Ask(std::string(method) + " " + std::string(route.path) +
                                  " HTTP/1.1\r\nHost: a\r\n\r\n");
      const bool is_allowed =
          route.is_tree || method == std::string_view(route.is_get ? "GET" : "POST");
      EXPECT_EQ(reply.status != 405, is_allowed) << method << " " << route.path;
      EXPECT_NE(reply.status, 404) << route.path;
      EXPECT_EQ(reply.header("allow"), is_allowed     ? "(absent)"
                                       : route.is_get ? "GET, HEAD"
                                                      : "POST");
    }
  }
  for (const char* path : {"/", "/v1", "/v1/", "/v1/checks", "/v1/check/", "/V1/check", "*",
                           "/v1/authx", "/healthz/.."}) {
    EXPECT_EQ(http.Ask(Get(path)).status, 404) << path;
  }
  EXPECT_EQ(http.Ask(Get("http://elsewhere/healthz?x=y")).status, 200);
  EXPECT_EQ(http.Ask("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n").status, 501);
  EXPECT_TRUE(http.replies().closing());
}

TEST(HttpProtocol, AnswersHeadLikeGetWithoutTheBody) {
  HttpUnderTest http;
  const std::string get = http.Send(Get("/v1/limits"));
  const std::string head = http.Send("HEAD /v1/limits HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(head, get.substr(0, get.find("\r\n\r\n") + 4));
  EXPECT_EQ(RepliesIn(http.Send("HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\n"), true).at(0).status,
            404);
}

TEST(HttpProtocol, WantsATokenWhereThereIsOne) {
  ExchangeUnderTest::Options options;
  options.access = {.token = "use-token", .manage_token = "manage-token"};
  HttpUnderTest http(options);
  const std::string check = "{}";
  const HttpReply reply = http.Check(check);
  EXPECT_EQ(reply.status, 401);
  EXPECT_EQ(reply.header("www-authenticate"), "Bearer");
  EXPECT_THAT(reply.body, HasSubstr("\"error\":\"unauthenticated\""));
  EXPECT_EQ(http.Check(check, "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(http.Check(check, "Authorization: Basic use-token\r\n").status, 401);
  EXPECT_EQ(http.Check(check, "Authorization: Bearer\r\n").status, 401);
  EXPECT_EQ(http.Refused(Refusal::kToken), 4U);
  EXPECT_EQ(http.Check(check, "Authorization: Bearer use-token\r\n").status, 200);
  EXPECT_EQ(http.Check(check, "authorization: bearer  manage-token\r\n").status, 200);
  EXPECT_EQ(http.Ask(Get("/healthz")).status, 200);
  EXPECT_EQ(http.Ask(Get("/readyz")).status, 200);
  for (const char* path : {"/metrics", "/v1/limits", "/openapi.json"}) {
    EXPECT_EQ(http.Ask(Get(path)).status, 401) << path;
  }
}

TEST(HttpProtocol, LetsOnlyThoseManageWhoMay) {
  ExchangeUnderTest::Options options;
  options.access = {.token = "use-token", .manage_token = "manage-token"};
  HttpUnderTest http(options);
  for (const char* path : {"/v1/refund", "/v1/penalize", "/v1/reset"}) {
    EXPECT_EQ(http.Ask(Post(path, "{}")).status, 401);
    const HttpReply reply = http.Ask(Post(path, "{}", "Authorization: Bearer use-token\r\n"));
    EXPECT_EQ(reply.status, 403);
    EXPECT_THAT(reply.body, HasSubstr("\"error\":\"forbidden\""));
    EXPECT_EQ(http.Ask(Post(path, "{}", "Authorization: Bearer manage-token\r\n")).status, 200);
  }
  EXPECT_EQ(http.Ask(Get("/v1/top", "Authorization: Bearer use-token\r\n")).status, 403);
  options.access = {};
  HttpUnderTest open(options);
  EXPECT_EQ(open.Ask(Post("/v1/reset", "{}")).status, 403);
  EXPECT_EQ(open.Check("{}").status, 200);
}

TEST(HttpProtocol, SaysWhenEveryReplyWasMade) {
  HttpUnderTest http;
  const auto date = [&] {
    HttpDateLine line;
    line.SetTo(std::chrono::floor<std::chrono::seconds>(http.clock.Read().wall));
    const std::string_view text = line.text();
    return std::string(text.substr(6, text.size() - 8));
  };
  const std::vector<std::string> requests = {
      Post("/v1/check", "{}"),   Post("/v1/check", R"({"user":"mallory"})"),
      Post("/v1/check", "{"),    Post("/v1/check/batch", "[]"),
      Post("/v1/peek", "{}"),    Get("/v1/limits"),
      Get("/healthz"),           Get("/nothing"),
      Get("/v1/check"),          Post("/v1/limit", R"({"key":"a","limit":"1/s"})"),
      Post("/v1/reserve", "{}"), "nonsense\r\n\r\n"};
  std::string before;
  for (const std::string& request : requests) {
    http.clock.Advance(std::chrono::seconds(1));
    EXPECT_EQ(http.Ask(request).header("date"), date()) << request;
    EXPECT_NE(date(), std::exchange(before, date()));
  }
  http.Reconnect();
  http.Send("POST /v1/check HT");
  http.clock.Advance(std::chrono::minutes(1));
  http.protocol().OnTimeout();
  EXPECT_EQ(RepliesIn(http.Take()).at(0).header("date"), date());
}

TEST(HttpProtocol, SaysThatARequestTookTooLong) {
  HttpUnderTest http;
  http.protocol().OnTimeout();
  EXPECT_EQ(http.Take(), "");
  http.Send("POST /v1/check HT");
  http.protocol().OnTimeout();
  EXPECT_EQ(RepliesIn(http.Take()).at(0).status, 408);
}

}  // namespace
}  // namespace weir
