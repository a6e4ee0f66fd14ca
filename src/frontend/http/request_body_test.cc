#include "frontend/http/request_body.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const std::string& json, const RequestBodyReader::Form& form = {}) {
  RequestBodyReader reader;
  RequestBody body;
  const auto error = reader.Read({.json = json}, form, body);
  return error ? error->message : "(none)";
}

TEST(RequestBody, IsRefusedInTheSameWordsWhateverStandsBehindIt) {
  for (const std::string wrong :
       {R"({"ip"}}}}})", R"({"ip":1}})", R"({"cost":"x"]})", R"([{}]])"}) {
    const std::string alone = ErrorOf(wrong);
    for (const char next : {' ', '}', ']', 'P', '{'}) {
      const std::string bytes = wrong + std::string(100, next);
      RequestBodyReader reader;
      RequestBody body;
      const auto error = reader.Read(
          {.json = std::string_view(bytes).substr(0, wrong.size()), .behind = 100}, {}, body);
      ASSERT_TRUE(error) << wrong;
      EXPECT_EQ(error->message, alone) << wrong << " before " << next;
    }
  }
}

TEST(RequestBody, HasEveryFieldOfACheck) {
  RequestBodyReader reader;
  RequestBody body;
  const std::string json =
      R"({"ip":"1.2.3.4","user":"\u00e4nn","api_key":"k","org":"o","tier":"t","method":"GET",)"
      R"("path":"\/a","host":"h","domain":"d","headers":{"A":"1","B":["2","3"]},"cookies":{"c":"4"},)"
      R"("query":{"q":""},"descriptors":{},"cost":5,"wait_ms":1500,"rules":["r","s"]})";
  ASSERT_FALSE(reader.Read({.json = json}, {.may_wait = true}, body));
  const Request& request = body.request;
  EXPECT_EQ(request.ip, "1.2.3.4");
  EXPECT_EQ(request.user, "\u00e4nn");
  EXPECT_EQ(request.api_key, "k");
  EXPECT_EQ(request.org, "o");
  EXPECT_EQ(request.tier, "t");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a");
  EXPECT_EQ(request.host, "h");
  EXPECT_EQ(request.domain, "d");
  ASSERT_EQ(request.headers.size(), 3U);
  EXPECT_EQ(request.headers[2].name, "B");
  EXPECT_EQ(request.headers[2].value, "3");
  ASSERT_EQ(request.cookies.size(), 1U);
  ASSERT_EQ(request.query.size(), 1U);
  EXPECT_EQ(request.query[0].value, "");
  EXPECT_TRUE(request.descriptors.empty());
  EXPECT_EQ(request.rules.size(), 2U);
  EXPECT_TRUE(request.trusted);
  EXPECT_EQ(body.cost, 5);
  EXPECT_EQ(body.wait, std::chrono::milliseconds(1500));
}

TEST(RequestBody, KeepsNothingOfTheOneBefore) {
  RequestBodyReader reader;
  RequestBody body;
  ASSERT_FALSE(reader.Read(
      {.json = R"({"ip":"1.2.3.4","headers":{"a":"b"},"rules":["r"],"cost":9})"}, {}, body));
  ASSERT_FALSE(reader.Read({.json = "{}"}, {}, body));
  EXPECT_EQ(body.request.ip, "");
  EXPECT_TRUE(body.request.headers.empty());
  EXPECT_TRUE(body.request.rules.empty());
  EXPECT_EQ(body.cost, 1);
}

TEST(RequestBody, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(ErrorOf(R"({"usr":"ann"})"), "\"usr\": is not known here; did you mean user?");
  EXPECT_EQ(ErrorOf(R"({"completely-else":1})"), "\"completely-else\": is not known here");
  EXPECT_EQ(ErrorOf(R"({"user":5})"), "user: write a text: \"...\"");
  EXPECT_EQ(ErrorOf(R"({"user":null})"), "user: write a text: \"...\"");
  EXPECT_EQ(ErrorOf(R"({"headers":["a"]})"),
            "headers: write names and values: {\"name\": \"value\"}");
  EXPECT_EQ(ErrorOf(R"({"headers":{"x-cost":5}})"), "headers.x-cost: write a text: \"...\"");
  EXPECT_EQ(ErrorOf(R"({"query":{"q":["a",null]}})"), "query.q: write a text: \"...\"");
  EXPECT_EQ(ErrorOf(R"({"rules":"a"})"), "rules: write a list of names: [\"per-ip\"]");
  EXPECT_EQ(ErrorOf(R"({"rules":[5]})"), "rules: write a text: \"...\"");
  for (const char* cost : {"-1", "1.5", "1e3", "\"1\"", "true", "null", "1000000000000001",
                           "99999999999999999999", "[1]"}) {
    EXPECT_EQ(ErrorOf(std::string(R"({"cost":)") + cost + "}"),
              "cost: write a whole number, 0 to 1000000000000000");
  }
  EXPECT_EQ(ErrorOf(R"({"wait_ms":1})"), "wait_ms: only /v1/check waits; write 0");
  EXPECT_EQ(ErrorOf(R"({"wait_ms":3600001})"), "wait_ms: write a whole number, 0 to 3600000");
  EXPECT_EQ(ErrorOf(R"({"ttl_ms":0})", {.allowed = kReserveFields}),
            "ttl_ms: write a whole number, 1 to 3600000");
}

TEST(RequestBody, HasAnAddressWhereOneBelongs) {
  for (const char* ip : {"1.2.3.4:5678", "999.1.1.1", "unknown", "[::1]", "fe80::1%eth0",
                         " 1.2.3.4", "1.2.3", "01.2.3.4", "::g"}) {
    EXPECT_EQ(ErrorOf(std::string(R"({"ip":")") + ip + "\"}"),
              "ip: write an address: 203.0.113.9 or 2001:db8::1")
        << ip;
  }
  for (const char* ip : {"203.0.113.9", "2001:db8::1", "::ffff:192.0.2.1", ""}) {
    EXPECT_EQ(ErrorOf(std::string(R"({"ip":")") + ip + "\"}"), "(none)") << ip;
  }
  EXPECT_EQ(ErrorOf(R"({"user":"unknown","host":"[::1]"})"), "(none)");
}

TEST(RequestBody, MayWaitForNothingWhereNobodyWaits) {
  EXPECT_EQ(ErrorOf(R"({"wait_ms":0})"), "(none)");
  EXPECT_EQ(ErrorOf(R"({"wait_ms":0})", {.allowed = kReserveFields}), "(none)");
}

TEST(RequestBody, RefusesWhatIsThereTwice) {
  EXPECT_EQ(ErrorOf(R"({"ip":"::1","ip":"::1"})"), "ip: is there twice");
  EXPECT_EQ(ErrorOf(R"({"ip":"::1","\u0069p":"::1"})"), "ip: is there twice");
  EXPECT_EQ(ErrorOf(R"({"cookies":{"a":"b","a":"c"}})"), "cookies.a: is there twice");
}

TEST(RequestBody, RefusesWhatIsNoJson) {
  for (const char* json : {"{",
                           "{]",
                           "}",
                           "{\"org\"}",
                           "{\"org\":}",
                           "{\"org\":\"a\",}",
                           "{\"org\":\"a\"",
                           "{\"org\":\"a}",
                           "{\"org\" \"a\"}",
                           "{'org':'a'}",
                           "{\"org\":\"\n\"}",
                           "{\"org\":\"\\x\"}",
                           "{\"org\":\"\\ud800\"}",
                           "{}{}",
                           "{} x",
                           "{\"a\"",
                           "{\"cost\":1,\"org\"}",
                           "{\"headers\":{\"a\":\"b\"}",
                           "nix",
                           "{\"org\":\"a\" \"user\":\"b\"}",
                           "{\"rules\":[\"a\" \"b\"]}"}) {
    EXPECT_THAT(ErrorOf(json), AnyOf(HasSubstr("the body "), HasSubstr("org: write a text")))
        << json;
  }
  EXPECT_THAT(ErrorOf("{\"ip\":\"\xff\"}"), HasSubstr("not UTF-8"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf("5"), HasSubstr("no JSON object"));
}

TEST(RequestBody, IsToldWhatIsWrongWithItsShape) {
  const auto behind = [](int at) {
    return "the body goes on behind its end, from character " + std::to_string(at) +
           " on: send one JSON value and nothing else";
  };
  EXPECT_EQ(ErrorOf("{}{}"), behind(3));
  EXPECT_EQ(ErrorOf("{} x"), behind(4));
  EXPECT_EQ(ErrorOf(R"({"user":"}\"{"} ,)"), behind(17));
  EXPECT_EQ(ErrorOf("{}}"), behind(3));
  EXPECT_EQ(ErrorOf("\xef\xbb\xbf{}"), "the body begins with a byte order mark: leave it out");
  EXPECT_EQ(ErrorOf(std::string(2000, '[')), "the body is nested too deep");
  EXPECT_EQ(ErrorOf(std::string(2000, '[') + std::string(2000, ']')),
            "the body is nested too deep");
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep += "{\"ip\":";
  EXPECT_EQ(ErrorOf(deep), "the body is nested too deep");
  EXPECT_EQ(ErrorOf(R"({"user":"ann")"),
            "the body is no JSON: it ends before a bracket or a quote is closed");
}

TEST(RequestBody, SaysNothingOfValues) {
  for (const char* json : {R"({"api_key":["hidden"]})", R"({"headers":{"a":{"hidden":1}}})",
                           R"({"cost":"hidden"})", R"({"api_key":"hidden","cost":-1})",
                           R"({"api_key":"hidden)", R"({"rules":[["hidden"]]})"}) {
    EXPECT_THAT(ErrorOf(json), Not(HasSubstr("hidden"))) << json;
    EXPECT_NE(ErrorOf(json), "(none)") << json;
  }
}

TEST(RequestBody, IsBoundedInItsLists) {
  std::string pairs;
  for (std::size_t i = 0; i < RequestBody::kMostPairs; ++i) {
    pairs += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  }
  EXPECT_EQ(ErrorOf(R"({"headers":{)" + pairs + "}}"), "(none)");
  EXPECT_THAT(ErrorOf(R"({"query":{"a":"b"},"headers":{)" + pairs + "}}"),
              HasSubstr("headers: leave some out"));
  std::string rules = "\"r\"";
  for (std::size_t i = 0; i < RequestBody::kMostRules; ++i) rules += ",\"r\"";
  EXPECT_THAT(ErrorOf(R"({"rules":[)" + rules + "]}"), HasSubstr("rules: name at most 64 rules"));
}

TEST(RequestBody, MayHaveAnythingBehindIt) {
  const std::string text = R"({"ip":"1.2.3.4"})" + std::string(100, '}');
  RequestBodyReader reader;
  RequestBody body;
  EXPECT_FALSE(
      reader.Read({.json = std::string_view(text).substr(0, 16), .behind = 100}, {}, body));
  EXPECT_EQ(body.request.ip, "1.2.3.4");
  EXPECT_FALSE(reader.Read({.json = std::string_view(text).substr(0, 16), .behind = 3}, {}, body));
  EXPECT_EQ(body.request.ip, "1.2.3.4");
}

}  // namespace
}  // namespace weir
