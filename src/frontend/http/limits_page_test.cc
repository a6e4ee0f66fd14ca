#include "frontend/http/limits_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LimitsPage, DescribesWhenARuleApplies) {
  PolicySpec spec;
  RuleSpec rule{.name = "a", .key = {"org", FirstOf({"user", "ip"})}, .limit = "5/min"};
  rule.match = {{"path", {"/a/*", "/b"}},
                Not(AttributeTest{"tier", {"gold"}}),
                Present("user"),
                Absent("cookie.session")};
  rule.match.any = {Match{{"method", {"GET"}}}, Match{{"method", {"HEAD"}}}};
  rule.match.none = {Match{{"host", {"internal.example"}}}};
  spec.rules.push_back(rule);
  EXPECT_EQ(LimitsJson(spec),
            R"x({"limits":[{"name":"a","limit":"5/min","algorithm":"token_bucket",)x"
            R"x("key":["org","user or ip"],"match":"path is /a/* or /b and tier is not gold )x"
            R"x(and user is present and cookie.session is absent and any of (method is GET), )x"
            R"x((method is HEAD) and none of (host is internal.example)","mode":"enforce"}]})x");
}

TEST(LimitsPage, TellsTheLimitsOfTiers) {
  PolicySpec spec;
  spec.tiers = {{"free", {{"api", "10/min"}}}, {"gold", {{"api", "1k/min"}, {"bulk", "5/h"}}}};
  spec.rules.push_back({.name = "a", .key = {"user"}, .tier_limit = "api"});
  EXPECT_THAT(LimitsJson(spec), HasSubstr(R"("tiers":{"free":"10/min","gold":"1k/min"},)"));
}

TEST(LimitsPage, TellsNoSecrets) {
  PolicySpec spec;
  RuleSpec rule{.name = "a", .key = {"user"}, .limit = "5/min"};
  rule.match = {{"header.x-bypass", {"hidden"}}, {"ip", {"192.0.2.77"}}, {"user", {"hidden-user"}}};
  rule.overrides = {{.key = {{"user", "hidden-ann"}}, .limit = "7/min"}};
  spec.rules.push_back(rule);
  spec.allow = {Match{{"api_key", {"hidden-key"}}}};
  const std::string text = LimitsJson(spec);
  EXPECT_THAT(text, HasSubstr("header.x-bypass is a certain value and ip is a certain value"));
  EXPECT_THAT(text, AllOf(::testing::Not(HasSubstr("hidden")),
                                     ::testing::Not(HasSubstr("192.0.2.77"))));
}

}  // namespace
}  // namespace weir
