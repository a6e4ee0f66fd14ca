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

// Bodies that are right, but for a few bytes; and those that are right.
rc::Gen<std::string> NearlyABody() {
  const auto blank = rc::gen::weightedElement<std::string>(
      {{20, ""}, {4, " "}, {1, "\n\t"}, {1, "\r"}, {1, "\v"}, {1, std::string(1, '\0')}});
  const auto name = rc::gen::weightedElement<std::string>({{9, "\"ip\""},
                                                           {9, "\"user\""},
                                                           {9, "\"path\""},
                                                           {9, "\"cost\""},
                                                           {5, "\"key\""},
                                                           {5, "\"org\""},
                                                           {2, "\"limit\""},
                                                           {1, "\"usr\""},
                                                           {1, "\"\""},
                                                           {1, "\"us\\u0065r\""},
                                                           {1, "\"headers\""},
                                                           {1, "\"rules\""},
                                                           {1, "\"IP\""},
                                                           {1, "user"}});
  const auto value = rc::gen::weightedElement<std::string>({{9, "\"ann\""},
                                                            {9, "\"10.0.0.1\""},
                                                            {9, "\"a text of more than sixteen\""},
                                                            {9, "7"},
                                                            {3, "\"\""},
                                                            {3, "120"},
                                                            {2, "\"::1\""},
                                                            {1, "\"\xc3\xbc\""},
                                                            {1, "\"\xc3\""},
                                                            {1, "\"\x7f\""},
                                                            {1, "\"\x1f\""},
                                                            {1, "\"a\\n\""},
                                                            {1, "\"\\\""},
                                                            {1, "\"\\x\""},
                                                            {1, "\"\\ud800\""},
                                                            {1, "007"},
                                                            {1, "-1"},
                                                            {1, "1.0"},
                                                            {1, "1e2"},
                                                            {1, "0"},
                                                            {1, "999999999999999"},
                                                            {1, "1000000000000000"},
                                                            {1, "1000000000000001"},
                                                            {1, "null"},
                                                            {1, "{}"},
                                                            {1, "[]"},
                                                            {1, "[\"a\"]"},
                                                            {1, "{\"a\":\"b\"}"}});
  const auto field =
      rc::gen::map(rc::gen::tuple(blank, name, blank, blank, value, blank), [](const auto& parts) {
        return std::get<0>(parts) + std::get<1>(parts) + std::get<2>(parts) + ":" +
               std::get<3>(parts) + std::get<4>(parts) + std::get<5>(parts);
      });
  const auto around = rc::gen::weightedElement<std::string>(
      {{30, ""}, {2, " "}, {1, "\n"}, {1, "x"}, {1, "{}"}, {1, ","}, {1, "\xef\xbb\xbf"}});
  return rc::gen::map(
      rc::gen::tuple(around, rc::gen::container<std::vector<std::string>>(field), around),
      [](const auto& parts) {
        std::string json = std::get<0>(parts) + "{";
        bool first = true;
        for (const std::string& one : std::get<1>(parts)) {
          if (!std::exchange(first, false)) json += ",";
          json += one;
        }
        return json + "}" + std::get<2>(parts);
      });
}

RC_GTEST_PROP(PlainBody, IsReadAsTheParserReadsIt, ()) {
  std::string json = *NearlyABody();
  // One byte put in, taken out or changed, in every other case.
  const auto at = *rc::gen::inRange<std::size_t>(0, json.size());
  const char byte = *rc::gen::elementOf(std::string("\"\\{}[],: 0a\x80\t"));
  switch (*rc::gen::inRange(0, 6)) {
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
  RC_CLASSIFY(IsPlain(json), "plain");
  RC_ASSERT(DifferenceOfWays(json, kForm) == std::nullopt);
}

}  // namespace
}  // namespace weir
