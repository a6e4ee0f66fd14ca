// Reports of explanations made by hand: of a first request, which is all that the command asks
// about, few reasons can be had.
#include "server/explain_report.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace weir {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

PolicySpec SpecWithMessages() {
  PolicySpec spec;
  spec.rules.push_back(
      {.name = "login", .key = {"ip"}, .limit = "5/min", .message = "Wait a little."});
  spec.rules.push_back({.name = "quiet", .key = {"ip"}, .limit = "5/min"});
  return spec;
}

// An explanation of which nothing but the decision counts.
Explanation Decided(const Decision& decision) {
  return {.decision = decision, .list = "", .tier = "", .rules = {}};
}

std::string TextFor(const Decision& decision) {
  const PolicySpec spec = SpecWithMessages();
  const Explanation explanation = Decided(decision);
  return ExplanationText(
      {.policy = spec, .request = {}, .peer = std::nullopt, .explanation = explanation});
}

nlohmann::json JsonFor(const Explanation& explanation, const Request& request = {},
                       const std::optional<std::string>& peer = std::nullopt) {
  const PolicySpec spec = SpecWithMessages();
  return nlohmann::json::parse(
      ExplanationJson(
          {.policy = spec, .request = request, .peer = peer, .explanation = explanation}),
      nullptr, false);
}

TEST(ExplainReport, SaysWhenADeniedRequestWouldPass) {
  const Decision decision{.reason = Reason::kLimited,
                          .rule = "quiet",
                          .limit = 5,
                          .cost = 1,
                          .retry_after = std::chrono::seconds(12)};
  EXPECT_THAT(TextFor(decision), StartsWith("denied by quiet: not now; it would pass in 12s\n"));
}

TEST(ExplainReport, RoundsWaitsUp) {
  const Decision decision{.reason = Reason::kLimited,
                          .rule = "quiet",
                          .retry_after = std::chrono::nanoseconds(1'000'001)};
  EXPECT_THAT(TextFor(decision), HasSubstr("it would pass in 2ms\n"));
  EXPECT_EQ(JsonFor(Decided(decision))["decision"]["retry_after_ms"], 2);
}

TEST(ExplainReport, SaysThatWaitingDoesNotHelp) {
  const Decision decision{
      .reason = Reason::kNeverFits, .rule = "quiet", .limit = 5, .cost = 6, .retry_after = kNever};
  EXPECT_THAT(TextFor(decision),
              StartsWith("denied by quiet: it costs 6, and the limit never holds more than 5\n"));
  EXPECT_TRUE(JsonFor(Decided(decision))["decision"]["retry_after_ms"].is_null());
}

TEST(ExplainReport, NamesReasonsThatNeedNoMoreWords) {
  EXPECT_THAT(TextFor({.reason = Reason::kBanned, .rule = "quiet"}),
              StartsWith("denied by quiet: banned\n"));
  EXPECT_THAT(TextFor({.reason = Reason::kStoreFailure, .rule = "quiet"}),
              StartsWith("denied by quiet: store_failure\n"));
}

TEST(ExplainReport, NamesNoRuleWhereNoneDecides) {
  EXPECT_THAT(TextFor({.reason = Reason::kOverload}), StartsWith("denied: too many rules match\n"));
  EXPECT_THAT(TextFor({.allowed = true, .reason = Reason::kNoRule}),
              StartsWith("allowed: no rule applies\n"));
  EXPECT_THAT(TextFor({.allowed = true, .reason = Reason::kOk}), StartsWith("allowed\n"));
}

TEST(ExplainReport, CountsNothingWhereThereIsNoNumber) {
  EXPECT_THAT(TextFor({.allowed = true, .reason = Reason::kOk, .rule = "quiet"}),
              StartsWith("allowed: nearest to its limit is quiet\n"));
}

TEST(ExplainReport, HasTheMessageOfTheRuleThatDenies) {
  EXPECT_THAT(TextFor({.reason = Reason::kLimited, .rule = "login"}),
              HasSubstr("\nmessage: Wait a little.\n"));
  EXPECT_THAT(TextFor({.reason = Reason::kLimited, .rule = "quiet"}), Not(HasSubstr("message")));
  EXPECT_THAT(TextFor({.allowed = true, .reason = Reason::kOk, .rule = "login"}),
              Not(HasSubstr("message")));
  EXPECT_EQ(JsonFor(Decided({.reason = Reason::kLimited, .rule = "login"}))["message"],
            "Wait a little.");
  EXPECT_EQ(JsonFor(Decided({.allowed = true, .reason = Reason::kOk, .rule = "login"}))["message"],
            "");
}

TEST(ExplainReport, SaysInJsonWhoWasFoundBehindAPeer) {
  const Request request{.ip = "192.0.2.9", .user = "ann", .api_key = "sk-12345", .trusted = true};
  const auto json = JsonFor(Decided({.allowed = true}), request, "10.0.0.7");
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["identity"], nlohmann::json({{"peer", "10.0.0.7"},
                                              {"trusted", true},
                                              {"ip", "192.0.2.9"},
                                              {"user", "ann"},
                                              {"api_key", "sk…"},
                                              {"org", nullptr},
                                              {"tier", nullptr}}));
  EXPECT_FALSE(JsonFor(Decided({.allowed = true}), request).contains("identity"));
}

TEST(ExplainReport, GivesRulesBehindAListNoDecision) {
  Explanation explanation = Decided({.reason = Reason::kDenyList});
  explanation.rules.push_back({.rule = "quiet",
                               .matches = true,
                               .why_not = "",
                               .key = "ip=192.0.2.9",
                               .limit = "5/min",
                               .origin = "the rule",
                               .mode = "enforce",
                               .cost_origin = "",
                               .decision = {.allowed = true, .limit = 5, .remaining = 4}});
  EXPECT_EQ(JsonFor(explanation)["rules"][0]["decision"]["remaining"], 4);
  explanation.list = "deny[1]";
  EXPECT_TRUE(JsonFor(explanation)["rules"][0]["decision"].is_null());
  EXPECT_EQ(JsonFor(explanation)["list"], "deny[1]");
}

}  // namespace
}  // namespace weir
