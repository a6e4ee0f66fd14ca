#include "server/request_text.h"

#include <gmock/gmock.h>

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(std::string_view json) {
  const Result<RequestText> request = ParseRequestText(json);
  return request ? "no error" : request.error().message;
}

TEST(RequestText, ReadsEveryField) {
  const Result<RequestText> request = ParseRequestText(R"({
    "ip": "203.0.113.9", "user": "ann", "api_key": "k", "org": "o", "tier": "pro", "method": "GET",
    "path": "/a", "host": "h", "domain": "d", "headers": {"A": "1", "B": ["2", "3"]},
    "cookies": {"c": "4"}, "query": {"q": "5"}, "descriptors": {"x": "6"}, "cost": 7,
    "rules": ["r", "s"]})");
  ASSERT_TRUE(request) << request.error().message;
  const RequestViews views(*request);
  const Request view = views.AsRequest();
  EXPECT_EQ(view.ip, "203.0.113.9");
  EXPECT_EQ(view.user, "ann");
  EXPECT_EQ(view.api_key, "k");
  EXPECT_EQ(view.org, "o");
  EXPECT_EQ(view.tier, "pro");
  EXPECT_EQ(view.method, "GET");
  EXPECT_EQ(view.path, "/a");
  EXPECT_EQ(view.host, "h");
  EXPECT_EQ(view.domain, "d");
  ASSERT_EQ(view.headers.size(), 3U);
  EXPECT_EQ(view.headers[2].name, "B");
  EXPECT_EQ(view.headers[2].value, "3");
  EXPECT_EQ(view.cookies[0].value, "4");
  EXPECT_EQ(view.query[0].value, "5");
  EXPECT_EQ(view.descriptors[0].value, "6");
  EXPECT_EQ(request->cost, 7);
  ASSERT_EQ(view.rules.size(), 2U);
  EXPECT_EQ(view.rules[1], "s");
}

TEST(RequestText, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(ErrorOf(R"({"usr": "ann"})"), HasSubstr("\"usr\": is not known; did you mean user?"));
  EXPECT_THAT(ErrorOf(R"({"user": 5})"), HasSubstr("user: write a text"));
  EXPECT_THAT(ErrorOf(R"({"headers": {"x-cost": 5}})"), HasSubstr("headers.x-cost: write a text"));
  EXPECT_THAT(ErrorOf(R"({"headers": ["a"]})"), HasSubstr("headers: write names and values"));
  EXPECT_THAT(ErrorOf(R"({"rules": "a"})"), HasSubstr("rules: write a list"));
  for (const char* cost : {"-1", "1.5", "\"1\"", "99999999999999999999", "null"}) {
    EXPECT_THAT(ErrorOf(std::string(R"({"cost": )") + cost + "}"), HasSubstr("cost: write a whole"))
        << cost;
  }
}

TEST(RequestText, SaysWhereItStopsBeingJson) {
  EXPECT_THAT(ErrorOf("{'ip': 1}"), HasSubstr("no JSON from character 2"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf("{}{}"), HasSubstr("no JSON from character 3"));
}

TEST(RequestText, FindsTheEndOfJsonBehindValuesOfEveryKind) {
  const std::string whole =
      R"({"a": null, "b": [true, -1, 2, 3.5, "t", {}], "c": {"d": [[]]}, "e": false)";
  for (const char* rest : {"", "]", "; }", ", }"}) {
    EXPECT_THAT(ErrorOf(whole + rest), HasSubstr("no JSON from character ")) << rest;
  }
  // Where it says the end is: at the first character that is wrong.
  EXPECT_THAT(ErrorOf(whole + "]"),
              HasSubstr("from character " + std::to_string(whole.size() + 1) + " on"));
}

TEST(RequestText, RefusesJsonThatIsNoObject) {
  for (const char* json : {"null", "true", "5", "\"ip\"", "[{}]"}) {
    EXPECT_THAT(ErrorOf(json), HasSubstr("no JSON object: write {\"ip\"")) << json;
  }
}

TEST(RequestText, RefusesAListWhereATextBelongsAndANumberInAList) {
  EXPECT_THAT(ErrorOf(R"({"peer": 7})"), HasSubstr("peer: write a text"));
  EXPECT_THAT(ErrorOf(R"({"rules": ["a", 5]})"), HasSubstr("rules: write a text"));
  EXPECT_THAT(ErrorOf(R"({"query": {"q": ["a", null]}})"), HasSubstr("query.q: write a text"));
  EXPECT_THAT(ErrorOf(R"({"cookies": "a=b"})"), HasSubstr("cookies: write names and values"));
  EXPECT_THAT(ErrorOf(R"({"descriptors": null})"), HasSubstr("descriptors: write names"));
}

TEST(RequestText, GuessesNothingForAFieldThatResemblesNone) {
  EXPECT_THAT(ErrorOf(R"({"completely-else": 1})"), HasSubstr("is not known"));
  EXPECT_THAT(ErrorOf(R"({"completely-else": 1})"), Not(HasSubstr("did you mean")));
}

TEST(RequestText, SaysNothingOfValues) {
  EXPECT_THAT(ErrorOf(R"({"api_key": ["hidden"]})"), Not(HasSubstr("hidden")));
}

TEST(RequestText, TakesFromAPeerOnlyWhatAPeerSends) {
  const Result<RequestText> request =
      ParseRequestText(R"({"peer": "10.0.0.7", "path": "/a?b=c", "headers": {"x-user": "ann"}})");
  ASSERT_TRUE(request) << request.error().message;
  const RequestViews views(*request);
  const Incoming incoming = views.AsIncoming();
  EXPECT_EQ(incoming.peer, "10.0.0.7");
  EXPECT_EQ(incoming.path, "/a?b=c");
  EXPECT_EQ(incoming.headers[0].value, "ann");
  EXPECT_THAT(ErrorOf(R"({"user": "ann", "peer": "10.0.0.7"})"), HasSubstr("user: with \"peer\""));
  EXPECT_THAT(ErrorOf(R"({"cookies": {}, "peer": "10.0.0.7"})"), HasSubstr("cookies: with"));
}

}  // namespace
}  // namespace weir
