#include "frontend/http/plain_body.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "frontend/http/bodies_under_test.h"

namespace weir {
namespace {

constexpr RequestBodyReader::Form kForm = {.allowed = kReserveFields | kLimitFields};

bool IsPlain(const std::string& json, const RequestBodyReader::Form& form = kForm) {
  RequestBody body;
  return ReadPlainBody(json, form, body);
}

TEST(PlainBody, IsWhatClientsWrite) {
  EXPECT_TRUE(IsPlain(R"({"ip":"203.0.113.9","user":"ann","method":"POST","path":"/orders"})"));
  EXPECT_TRUE(IsPlain(R"({"ip": "2001:db8::1", "user": "ann", "cost": 2})"));
  EXPECT_TRUE(IsPlain("{\n  \"user\" : \"ann\",\r\n\t\"tier\": \"\"\n}\n"));
  EXPECT_TRUE(IsPlain(R"({"user":"a longer name than eight","cost":999999999999999})"));
  EXPECT_TRUE(IsPlain(R"({"ip":"","cost":0})"));
  EXPECT_TRUE(IsPlain(R"({"key":"k","limit":"5/s","algorithm":"token_bucket"})"));
}

TEST(PlainBody, LeavesEverythingElseToTheParser) {
  for (const char* const json : {"",
                                 "{",
                                 "{}",
                                 "[]",
                                 "{\"user\"",
                                 "{\"user\":",
                                 "{\"user\":\"ann",
                                 "{\"user\":\"ann\"",
                                 R"({"user":"ann",})",
                                 R"({"user":"ann"}})",
                                 R"({"user":"ann"}x)",
                                 R"({"user":"\u0061"})",
                                 R"({"\u0075ser":"ann"})",
                                 "{\"user\":\"\xc3\xa4\"}",
                                 "{\"user\":\"\xff\"}",
                                 "{\"user\":\"a\tb\"}",
                                 R"({"user":null})",
                                 R"({"user":5})",
                                 R"({"user":"a","user":"a"})",
                                 R"({"usr":"ann"})",
                                 R"({"":"ann"})",
                                 R"({"ip":"localhost"})",
                                 R"({"headers":{}})",
                                 R"({"rules":["a"]})",
                                 R"({"wait_ms":0})",
                                 R"({"cost":"1"})",
                                 R"({"cost":01})",
                                 R"({"cost":-1})",
                                 R"({"cost":1.0})",
                                 R"({"cost":1e3})",
                                 R"({"cost":})",
                                 R"({"cost":1000000000000000})",
                                 R"({'user':'ann'})",
                                 R"({user:"ann"})"}) {
    EXPECT_FALSE(IsPlain(json)) << json;
  }
}

TEST(PlainBody, HasTheFieldsOfItsForm) {
  EXPECT_FALSE(IsPlain(R"({"key":"k"})", {.allowed = kCheckFields}));
  EXPECT_FALSE(IsPlain(R"({"user":"k"})", {.allowed = kLimitFields}));
  const BodyFieldSet both = SetOf(BodyField::kKey) | SetOf(BodyField::kLimit);
  EXPECT_FALSE(IsPlain(R"({"key":"k"})", {.allowed = kLimitFields, .required = both}));
  EXPECT_TRUE(IsPlain(R"({"key":"k","limit":"l"})", {.allowed = kLimitFields, .required = both}));
}

// Most of these are right; each of the others is wrong in its own way, or right and not plain.
std::string AField() {
  static const std::vector<std::string> right = {R"("ip":"10.0.0.1")",
                                                 R"("ip": "2001:db8::1")",
                                                 R"("user":"ann")",
                                                 R"("user" : "")",
                                                 "\"org\":\"\x7f~ }{][,:\"",
                                                 R"("path":"/a/text/of/more/than/sixteen")",
                                                 R"("tier":"01234567")",
                                                 R"("cost":7)",
                                                 R"("cost": 120)",
                                                 R"("cost":0)",
                                                 R"("key":"k")",
                                                 "\n\t\"host\"\r:\n\"h\" "};
  static const std::vector<std::string> other = {R"("ip":"localhost")",
                                                 R"("ip":7)",
                                                 R"("usr":"ann")",
                                                 R"("":"ann")",
                                                 R"("us\u0065r":"ann")",
                                                 R"("IP":"10.0.0.1")",
                                                 R"(user:"ann")",
                                                 R"("user":"a\n")",
                                                 R"("user":"\")",
                                                 R"("user":"\x")",
                                                 R"("user":"\ud800")",
                                                 "\"user\":\"\x1f\"",
                                                 "\"user\":\"\xc3\xbc\"",
                                                 "\"user\":\"\xc3\"",
                                                 R"("user":null)",
                                                 R"("user":{})",
                                                 R"("user":[])",
                                                 R"("user" "ann")",
                                                 R"("user":)",
                                                 "\v\"user\":\"ann\"",
                                                 R"("cost":"1")",
                                                 R"("cost":007)",
                                                 R"("cost":-1)",
                                                 R"("cost":1.0)",
                                                 R"("cost":1e2)",
                                                 R"("cost":)",
                                                 R"("cost":1 2)",
                                                 R"("cost":999999999999999)",
                                                 R"("cost":1000000000000000)",
                                                 R"("cost":1000000000000001)",
                                                 R"("headers":{"a":"b"})",
                                                 R"("rules":["a"])",
                                                 R"("wait_ms":0)",
                                                 R"("ttl_ms":5)",
                                                 ""};
  return *rc::gen::elementOf(*rc::gen::inRange(0, 12) == 0 ? other : right);
}

std::string NearlyABody() {
  static const std::vector<std::string> around = {" ", "\n", "x", "{}", ",", "\xef\xbb\xbf"};
  const auto put_around = [](std::string& json) {
    if (*rc::gen::inRange(0, 20) == 0) json += *rc::gen::elementOf(around);
  };
  std::string json;
  put_around(json);
  json += "{" + AField();
  for (int more = *rc::gen::inRange(0, 4); more > 0; --more) json += "," + AField();
  json += "}";
  put_around(json);
  // One byte put in, taken out or changed.
  const auto at = *rc::gen::inRange<std::size_t>(0, json.size());
  const char byte = *rc::gen::elementOf(std::string("\"\\{}[],: 0a\x80\t"));
  switch (*rc::gen::inRange(0, 10)) {
    case 0:
      json.insert(at, 1, byte);
      break;
    case 1:
      json.erase(at, 1);
      break;
    case 2:
      json[at] = byte;
      break;
    default:
      break;
  }
  return json;
}

RC_GTEST_PROP(PlainBody, IsReadAsTheParserReadsIt, ()) {
  constexpr int kBodies = 100;
  int plain = 0;
  for (int i = 0; i < kBodies; ++i) {
    const std::string json = NearlyABody();
    if (IsPlain(json)) ++plain;
    RC_ASSERT(DifferenceOfWays(json, kForm) == std::nullopt);
  }
  RC_CLASSIFY(plain >= kBodies / 5, "a fifth of them plain, or more");
}

}  // namespace
}  // namespace weir
