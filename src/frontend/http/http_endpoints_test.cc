// The endpoints beside the check.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/http/http_under_test.h"
#include "frontend/http/openapi.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string ReservationOf(const HttpReply& reply) {
  constexpr std::string_view kName = R"("reservation":")";
  const std::size_t at = reply.body.find(kName);
  return at == std::string::npos ? "" : reply.body.substr(at + kName.size(), 16);
}

TEST(HttpBatch, AnswersEveryItemInOrderAndCountsEach) {
  HttpUnderTest http;
  const HttpReply reply = http.Ask(Post(
      "/v1/check/batch",
      R"([{"user":"ann","ip":"1.2.3.4"},{"user":"mallory"},{"user":"ann","ip":"1.2.3.4","cost":9}])"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, StartsWith(R"([{"allowed":true,"rule":"per-user","limit":100,"rema)"));
  EXPECT_THAT(reply.body, AllOf(HasSubstr(R"("remaining":99,)"), HasSubstr(R"("remaining":90,)"),
                                HasSubstr(R"(},{"allowed":false,"rule":null,)")));
  EXPECT_EQ(http.decided, 3U);
  EXPECT_EQ(http.Ask(Post("/v1/check/batch", "[]")).body, "[]");
}

TEST(HttpBatch, CountsNothingIfAnItemIsWrong) {
  HttpUnderTest http;
  const auto error = [&](const std::string& body) {
    return http.Ask(Post("/v1/check/batch", body));
  };
  EXPECT_THAT(error(R"([{"user":"ann"},{"cost":"1"}])").body,
              HasSubstr("[1].cost: write a whole number"));
  EXPECT_THAT(error(R"([{"user":"ann"},{"rules":["nix"]}])").body,
              HasSubstr(R"([1].rules: there is no rule \"nix\")"));
  EXPECT_THAT(error(R"([{"user":"ann"},5])").body,
              HasSubstr("item 1 of the list is no JSON object"));
  EXPECT_THAT(error("[{},1]").body, HasSubstr("item 1 of the list is no JSON object"));
  EXPECT_THAT(error(R"([{},{"ip":"unknown"}])").body, HasSubstr("[1].ip: write an address"));
  EXPECT_THAT(error("[{}] x").body, HasSubstr("goes on behind its end, from character 6 on"));
  EXPECT_THAT(error(R"([{"wait_ms":5}])").body,
              HasSubstr("[0].wait_ms: only /v1/check waits; write 0"));
  EXPECT_EQ(http.Ask(Post("/v1/check/batch", R"([{"wait_ms":0}])")).status, 200);
  EXPECT_THAT(error(kAnn).body, HasSubstr("no JSON array"));
  EXPECT_EQ(http.Check(kAnn).header("x-ratelimit-remaining"), "99");
}

TEST(HttpBatch, TakesAThousandAtOnceAndNoMore) {
  HttpUnderTest http;
  std::string items = "{}";
  for (int i = 1; i < 1000; ++i) items += ",{}";
  EXPECT_EQ(http.Ask(Post("/v1/check/batch", "[" + items + "]")).status, 200);
  const HttpReply reply = http.Ask(Post("/v1/check/batch", "[" + items + ",{}]"));
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr(R"("error":"too_large")"));
  EXPECT_EQ(http.Check(kAnn).status, 200);  // The connection goes on.
}

TEST(HttpLimit, CountsUnderTheLimitThatCameWithTheRequest) {
  HttpUnderTest http;
  const std::string body = R"({"key":"job:1","limit":"2/min","cost":1})";
  const HttpReply reply = http.Ask(Post("/v1/limit", body));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("x-ratelimit-limit"), "2");
  EXPECT_EQ(reply.header("ratelimit"), "\"default\";r=1;t=30");
  EXPECT_EQ(reply.header("ratelimit-policy"), "\"default\";q=2;w=60");
  EXPECT_THAT(reply.body, HasSubstr(R"("rule":null,"limit":2,"remaining":1,)"));
  http.Ask(Post("/v1/limit", body));
  const HttpReply denied =
      http.Ask(Post("/v1/limit", body, "Accept: application/problem+json\r\n"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(denied.body, HasSubstr(R"("violated-policies":["default"],)"));
  EXPECT_EQ(http.Ask(Post("/v1/limit", R"({"key":"job:2","limit":"2/min"})")).status, 200);
  EXPECT_EQ(http.Ask(Post("/v1/limit", R"({"key":"k","limit":"5/min","algorithm":"sliding_log"})"))
                .status,
            200);
}

TEST(HttpLimit, NamesWhatIsWrongOrMissing) {
  HttpUnderTest http;
  const auto error = [&](const std::string& body) {
    const HttpReply reply = http.Ask(Post("/v1/limit", body));
    EXPECT_EQ(reply.status, 400);
    return reply.body;
  };
  EXPECT_THAT(error(R"({"key":"a"})"), HasSubstr("limit: is missing"));
  EXPECT_THAT(error(R"({"limit":"1/s"})"), HasSubstr("key: is missing"));
  EXPECT_THAT(error(R"({"key":"a","limit":"5/fortnight"})"),
              HasSubstr(R"(limit \"5/fortnight\": )"));
  for (const char* algorithm : {"magic", ""}) {
    EXPECT_THAT(
        error(R"({"key":"a","limit":"5/s","algorithm":")" + std::string(algorithm) + "\"}"),
        HasSubstr(R"("message":"algorithm: unknown algorithm \")" + std::string(algorithm)));
  }
  EXPECT_THAT(error(R"({"key":"a","limit":"5/s","user":"b"})"), HasSubstr("is not known here"));
}

TEST(HttpPeek, AnswersTheQuestionAndTakesNothing) {
  HttpUnderTest http;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(http.Ask(Post("/v1/peek", kAnn)).body,
                HasSubstr(R"("limit":200,"remaining":200,)"));
  }
  const HttpReply denied = http.Ask(Post("/v1/peek", R"({"ip":"203.0.113.9","cost":201})"));
  EXPECT_EQ(denied.status, 200);
  EXPECT_THAT(denied.body, StartsWith(R"({"allowed":false,"rule":"per-ip")"));
}

TEST(HttpReserve, TakesAnEstimateThatIsSettledLater) {
  HttpUnderTest http;
  const HttpReply reply =
      http.Ask(Post("/v1/reserve", R"({"user":"ann","ip":"1.2.3.4","cost":50,"ttl_ms":1000})"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("x-ratelimit-remaining"), "50");
  EXPECT_EQ(reply.header("ratelimit-policy"), "\"per-user\";q=100;w=60");
  const std::string id = ReservationOf(reply);
  ASSERT_EQ(id.size(), 16U);
  const auto settle = [&](const std::string& path, const std::string& more) {
    return http.Ask(Post(path, R"({"reservation":")" + id + "\"" + more + "}"));
  };
  EXPECT_EQ(settle("/v1/commit", R"(,"cost":20)").status, 200);
  EXPECT_THAT(http.Ask(Post("/v1/peek", R"({"user":"ann","ip":"1.2.3.4","cost":0})")).body,
              HasSubstr(R"("remaining":80,)"));
  const HttpReply again = settle("/v1/commit", R"(,"cost":20)");
  EXPECT_EQ(again.status, 404);
  EXPECT_THAT(again.body, HasSubstr(R"("error":"not_found")"));
  EXPECT_EQ(settle("/v1/cancel", "").status, 404);
}

TEST(HttpReserve, IsSettledAtItsOwnCostIfNoOtherIsTold) {
  HttpUnderTest http;
  const std::string ann = R"({"user":"ann","ip":"1.2.3.4","cost":)";
  const std::string id = ReservationOf(http.Ask(Post("/v1/reserve", ann + "50}")));
  EXPECT_EQ(http.Ask(Post("/v1/commit", R"({"reservation":")" + id + "\"}")).status, 200);
  EXPECT_THAT(http.Ask(Post("/v1/peek", ann + "0}")).body, HasSubstr(R"("remaining":50,)"));
  EXPECT_THAT(http.Ask(Post("/v1/reserve", ann + "0}")).body,
              HasSubstr("cost: there is nothing to reserve; write at least 1"));
}

TEST(HttpBody, IsReadAlikeWhereverItIsThatOfACheck) {
  HttpUnderTest http;
  for (const char* path :
       {"/v1/check", "/v1/peek", "/v1/reserve", "/v1/refund", "/v1/penalize", "/v1/reset"}) {
    EXPECT_EQ(http.Ask(Post(path, R"({"user":"ann","wait_ms":0})")).status, 200) << path;
    const HttpReply reply = http.Ask(Post(path, R"({"ip":"1.2.3.4:5678"})"));
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_EQ(reply.body, R"({"error":"invalid_argument","message":)"
                          R"("ip: write an address: 203.0.113.9 or 2001:db8::1"})");
  }
}

TEST(HttpReserve, IsDeniedLikeACheck) {
  HttpUnderTest http;
  const HttpReply reply = http.Ask(Post("/v1/reserve", R"({"user":"ann","cost":101})"));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(ReservationOf(reply), "");
}

TEST(HttpSettle, NamesWhatIsWrong) {
  HttpUnderTest http;
  const auto error = [&](const std::string& path, const std::string& body) {
    const HttpReply reply = http.Ask(Post(path, body));
    EXPECT_EQ(reply.status, 400);
    return reply.body;
  };
  EXPECT_THAT(error("/v1/commit", R"({"cost":1})"), HasSubstr("reservation: is missing"));
  for (const char* id : {"1", "\"1\"", "\"000000000000000g\"", "\"0000000000000000\"",
                         "\"-000000000000001\"", "\"00000000000000001\"", "null"}) {
    EXPECT_THAT(error("/v1/cancel", std::string(R"({"reservation":)") + id + "}"),
                HasSubstr("reservation: write the 16 hexadecimal digits"));
  }
  EXPECT_THAT(error("/v1/release", R"({"reservation":"0000000000000001","cost":1})"),
              HasSubstr(R"(\"cost\": is not known here)"));
}

TEST(HttpManage, GivesBackTakesAndMakesFresh) {
  HttpUnderTest http;
  const auto remaining = [&](const std::string& path, const std::string& cost) {
    const HttpReply reply =
        http.Ask(Post(path, R"({"user":"ann","rules":["per-user"],"cost":)" + cost + "}"));
    EXPECT_EQ(reply.status, 200);
    const std::size_t at = reply.body.find(R"("remaining":)");
    return std::stoi(reply.body.substr(at + 12));
  };
  EXPECT_EQ(remaining("/v1/check", "60"), 40);
  EXPECT_EQ(remaining("/v1/refund", "20"), 60);
  EXPECT_EQ(remaining("/v1/penalize", "30"), 30);
  EXPECT_EQ(remaining("/v1/reset", "0"), 100);
}

TEST(HttpRules, MustExist) {
  HttpUnderTest http;
  for (const char* path : {"/v1/check", "/v1/peek", "/v1/reserve", "/v1/refund"}) {
    const HttpReply reply = http.Ask(Post(path, R"({"rules":["per-ip","per-planet"]})"));
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr(R"(there is no rule \"per-planet\")"));
  }
}

TEST(HttpLimits, TellsWhatIsInForce) {
  HttpUnderTest http;
  const HttpReply reply = http.Ask(Get("/v1/limits"));
  EXPECT_EQ(reply.header("content-type"), "application/json");
  EXPECT_THAT(reply.body,
              StartsWith(R"({"limits":[{"name":"per-ip","limit":"200/min","algorithm":)"
                         R"("token_bucket","key":["ip"],"match":"everything","mode":"enforce"},)"));
  EXPECT_THAT(reply.body, HasSubstr(R"("match":"path is /login","mode":"enforce"})"));
  EXPECT_THAT(reply.body, HasSubstr(R"("algorithm":"concurrency","key":["user"])"));
  EXPECT_THAT(reply.body, HasSubstr(R"("key":["global"],"match":"everything","mode":"shadow")"));
  EXPECT_THAT(reply.body, Not(HasSubstr("retired")));
}

TEST(HttpLimits, ChangesWithThePolicy) {
  HttpUnderTest http;
  http.Ask(Get("/v1/limits"));
  ASSERT_TRUE(
      http.engine.Apply(*Policy::Parse("rules: [{name: other, key: ip, limit: 5/min}]").policy));
  EXPECT_THAT(http.Ask(Get("/v1/limits")).body, HasSubstr(R"("name":"other")"));
}

TEST(HttpTop, TellsWhoWasDeniedMost) {
  HttpUnderTest http;
  for (int i = 0; i < 12; ++i) http.Check(R"({"ip":"203.0.113.9","path":"/login"})");
  const HttpReply reply = http.Ask(Get("/v1/top?n=5"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"keys":[{"rule":"login","key":"ip=203.0.113.9","denials":10,"error":0}]})");
  for (const char* query : {"?n=0", "?n=1001", "?n=", "?n=x", "?n=5x", "?m=5", "?n=-1"}) {
    EXPECT_EQ(http.Ask(Get(std::string("/v1/top") + query)).status, 400) << query;
  }
  EXPECT_EQ(http.Ask(Get("/v1/top")).status, 200);
}

TEST(HttpReadiness, IsToldByStatusAndWord) {
  using Readiness = ServiceState::Readiness;
  HttpUnderTest http;
  const auto told = [&](Readiness readiness) {
    http.state.ready = readiness;
    const HttpReply reply = http.Ask(Get("/readyz"));
    return std::to_string(reply.status) + " " + reply.body;
  };
  EXPECT_EQ(told(Readiness::kStarting), "503 starting");
  EXPECT_EQ(told(Readiness::kReady), "200 ready");
  EXPECT_EQ(told(Readiness::kDegraded), "200 degraded");
  EXPECT_EQ(told(Readiness::kDraining), "503 draining");
  EXPECT_EQ(http.Ask(Get("/healthz")).status, 200);
}

TEST(HttpMetrics, AreTextForPrometheus) {
  HttpUnderTest http;
  const HttpReply reply = http.Ask(Get("/metrics"));
  EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4");
  EXPECT_EQ(reply.body, http.state.MetricsText());
}

TEST(HttpOpenApi, IsServedAsItWasWritten) {
  HttpUnderTest http;
  EXPECT_EQ(http.Ask(Get("/openapi.json")).body, OpenApiJson());
  EXPECT_THAT(OpenApiJson(), HasSubstr("\"openapi\": \"3.1.0\""));
}

}  // namespace
}  // namespace weir
