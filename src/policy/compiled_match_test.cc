#include "policy/compiled_match.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy/match_samples.h"

namespace weir {
namespace {

using testing::HasSubstr;
using Wants = AttributeTest::Wants;

CompiledMatch Compiled(const Match& match) {
  const Result<CompiledMatch> compiled = CompiledMatch::Make(match);
  EXPECT_TRUE(compiled.has_value()) << compiled.error().message;
  return compiled.value_or(CompiledMatch());
}

bool Holds(const Match& match, const Request& request) {
  return Compiled(match).Holds(Facts(request));
}

std::string WhyNot(const Match& match, const Request& request) {
  return Compiled(match).WhyNot(Facts(request));
}

std::string MatchProblem(const Match& match) {
  const Result<CompiledMatch> compiled = CompiledMatch::Make(match);
  if (compiled.has_value()) return "none";
  EXPECT_EQ(compiled.error().code, ErrorCode::kInvalidArgument);
  return compiled.error().message;
}

TEST(CompiledMatch, HoldsForEverythingIfEmpty) {
  EXPECT_TRUE(Holds({}, Request{}));
  EXPECT_TRUE(Holds(All({{}, {}}), Request{}));
}

TEST(CompiledMatch, ComparesEveryAttributeInItsForm) {
  const Request request{.ip = "10.1.2.3",
                        .user = "ann",
                        .method = "post",
                        .path = "/auth//%6cogin/?x",
                        .host = "WWW.Example.org:80"};
  EXPECT_TRUE(Holds({{"ip", {"192.0.2.0/24", "10.0.0.0/8"}}}, request));
  EXPECT_FALSE(Holds({{"ip", {"192.0.2.0/24"}}}, request));
  EXPECT_TRUE(Holds({{"user", {"bob", "ann"}}}, request));
  EXPECT_FALSE(Holds({{"user", {"Ann"}}}, request));
  EXPECT_TRUE(Holds({{"user", {"a*"}}}, request));
  EXPECT_TRUE(Holds({{"method", {"Post"}}}, request));
  EXPECT_TRUE(Holds({{"path", {"/auth/login"}}}, request));
  EXPECT_TRUE(Holds({{"path", {"/auth/*"}}}, request));
  EXPECT_TRUE(Holds({{"host", {"*.EXAMPLE.org"}}}, request));
  EXPECT_FALSE(Holds({{"host", {"example.org"}}}, request));
}

TEST(CompiledMatch, TakesAnAbsentAttributeForNoValueAtAll) {
  const Request nobody{};
  EXPECT_FALSE(Holds({{"user", {"*"}}}, nobody));
  EXPECT_FALSE(Holds({Present("user")}, nobody));
  EXPECT_TRUE(Holds({Absent("user")}, nobody));
  EXPECT_TRUE(Holds({Not({"user", {"*"}})}, nobody));
  EXPECT_FALSE(Holds({Not(Absent("user"))}, nobody));
  EXPECT_FALSE(Holds({{"path", {"/**"}}}, nobody));
}

TEST(CompiledMatch, TakesAnAddressThatIsNoneForAbsent) {
  const Request request{.ip = "10.0.0.999"};
  EXPECT_FALSE(Holds({{"ip", {"0.0.0.0/0", "::/0"}}}, request));
  EXPECT_TRUE(Holds({Not({"ip", {"10.0.0.0/8"}})}, request));
  EXPECT_TRUE(Holds({Absent("ip")}, request));
}

TEST(CompiledMatch, JoinsItsParts) {
  const Request ann{.user = "ann", .tier = "pro"};
  const Match user_ann{{"user", {"ann"}}};
  const Match user_bob{{"user", {"bob"}}};
  const Match tier_pro{{"tier", {"pro"}}};
  EXPECT_TRUE(Holds(All({user_ann, tier_pro}), ann));
  EXPECT_FALSE(Holds(All({user_bob, tier_pro}), ann));
  EXPECT_TRUE(Holds(Any({user_bob, tier_pro}), ann));
  EXPECT_FALSE(Holds(Any({user_bob}), ann));
  EXPECT_TRUE(Holds(None({user_bob}), ann));
  EXPECT_FALSE(Holds(None({user_bob, tier_pro}), ann));
  EXPECT_FALSE(Holds(None({All({user_ann, tier_pro})}), ann));
  EXPECT_TRUE(Holds(None({All({user_bob, tier_pro})}), ann));
}

TEST(CompiledMatch, RefusesTestsThatMakeNoSense) {
  EXPECT_THAT(MatchProblem({{"colour", {"red"}}}), HasSubstr("unknown attribute \"colour\""));
  EXPECT_THAT(MatchProblem({{"fingerprint", {"x"}}}), HasSubstr("fingerprint is a hash"));
  EXPECT_THAT(MatchProblem({{"path.id", {"7"}}}), HasSubstr("path.id is part of the path"));
  EXPECT_THAT(MatchProblem({{"user", {}}}), HasSubstr("user has no value"));
  EXPECT_THAT(MatchProblem({{"user", {""}}}), HasSubstr("user cannot be an empty text"));
  EXPECT_THAT(MatchProblem({{.attribute = "user", .any_of = {"x"}, .wants = Wants::kPresent}}),
              HasSubstr("user cannot have values"));
  EXPECT_THAT(MatchProblem({{"ip", {"10.0.0.1/8"}}}), HasSubstr("ip \"10.0.0.1/8\" is no address"));
  EXPECT_THAT(MatchProblem({{"ip", {"10.*"}}}), HasSubstr("ip \"10.*\" is no address"));
  EXPECT_THAT(MatchProblem({{"path", {"login"}}}), HasSubstr("\"login\": it must start with /"));
  EXPECT_THAT(MatchProblem({{"host", {"a.org:80"}}}), HasSubstr("without port"));
  EXPECT_THAT(MatchProblem(Any({All({None({{{"user", {""}}}})})})), HasSubstr("user cannot"));
}

TEST(CompiledMatch, MayBeNestedOnlySoDeep) {
  Match match;
  for (int depth = 1; depth < CompiledMatch::kMaxDepth; ++depth) match = All({match});
  EXPECT_EQ(MatchProblem(match), "none");
  EXPECT_THAT(MatchProblem(All({match})), HasSubstr("32 deep"));
}

TEST(CompiledMatch, SaysWhatTheRequestHasInstead) {
  const Request request{.ip = "1.2.3.4", .user = "ann", .method = "get", .path = "/cart/"};
  EXPECT_EQ(WhyNot({{"path", {"/search/**"}}}, request), "path is \"/cart\", not /search/**");
  EXPECT_EQ(WhyNot({Present("org")}, request), "org is absent");
  EXPECT_EQ(WhyNot({{"org", {"acme"}}}, request), "org is absent, not acme");
  EXPECT_EQ(WhyNot({Absent("user")}, request), "user is \"ann\", not absent");
  EXPECT_EQ(WhyNot({{"method", {"post", "put"}}}, request), "method is \"GET\", not POST or PUT");
  EXPECT_EQ(WhyNot({Not({"method", {"get"}})}, request), "method is \"GET\", but must not be GET");
  EXPECT_EQ(WhyNot({{"ip", {"10.0.0.0/8"}}}, request), "ip is 1.2.3.4, not in 10.0.0.0/8");
  EXPECT_EQ(WhyNot({Not({"ip", {"1.2.0.0/16"}})}, request),
            "ip is 1.2.3.4, but must not be in 1.2.0.0/16");
  EXPECT_EQ(WhyNot({{"ip", {"10.0.0.0/8"}}}, {.ip = "me"}), "ip is \"me\", which is no address");
  EXPECT_EQ(WhyNot({{"user", {"a", "b", "c", "d", "e", "f", "g"}}}, request),
            "user is \"ann\", not a, b, c, d, e or 2 others");
  EXPECT_EQ(WhyNot(Any({{Present("org")}, {Present("tier")}}), request),
            "none of the alternatives in \"any\" holds");
  EXPECT_EQ(WhyNot(Any({{Present("org")}}), request), "org is absent");
  EXPECT_EQ(WhyNot(All({{}, {Present("org")}}), request), "org is absent");
  EXPECT_EQ(WhyNot(None({{Present("user")}}), request), "user is \"ann\", not absent");
  EXPECT_EQ(WhyNot(None({{Present("user"), Present("ip")}}), request),
            "what is excluded by \"not\" holds");
  EXPECT_EQ(WhyNot({Present("user"), {"path", {"/cart"}}}, request), "");
}

TEST(CompiledMatch, CutsLongValues) {
  const std::string user(1'000, 'x');
  EXPECT_LT(WhyNot({{"user", {"ann"}}}, {.user = user}).size(), 100u);
}

RC_GTEST_PROP(CompiledMatch, SaysWhyNotExactlyIfItDoesNotHold, (std::uint64_t seed)) {
  MatchSampler sampler(seed);
  const CompiledMatch match = sampler.NextCompiled();
  for (int i = 0; i < 50; ++i) {
    const auto sample = sampler.NextRequest();
    const Facts facts(sample.request);
    RC_ASSERT(match.WhyNot(facts).empty() == match.Holds(facts));
  }
}

// What the words of the specification say, without anything worked out before.
bool HoldsByTheBook(const Match& match, const Facts& facts) {
  const auto holds = [&](const Match& part) { return HoldsByTheBook(part, facts); };
  for (const AttributeTest& test : match.attributes) {
    const CompiledMatch plain =
        Compiled({{.attribute = test.attribute, .any_of = test.any_of, .wants = test.wants}});
    if (plain.Holds(facts) == test.negated) return false;
  }
  return std::ranges::all_of(match.all, holds) &&
         (match.any.empty() || std::ranges::any_of(match.any, holds)) &&
         std::ranges::none_of(match.none, holds);
}

RC_GTEST_PROP(CompiledMatch, JoinsAndNegatesAsWritten, (std::uint64_t seed)) {
  MatchSampler sampler(seed);
  const Match match = sampler.NextMatch();
  const CompiledMatch compiled = Compiled(match);
  for (int i = 0; i < 20; ++i) {
    const auto sample = sampler.NextRequest();
    const Facts facts(sample.request);
    RC_ASSERT(compiled.Holds(facts) == HoldsByTheBook(match, facts));
  }
}

TEST(CompiledMatch, FindsTheSegmentOfTheFirstPatternThatFits) {
  const Request request{.path = "/teams/red/members/7"};
  const Facts facts(request);
  const CompiledMatch several =
      Compiled({{"path", {"/users/{id}", "/teams/{team}/**", "/teams/*/members/{team}"}}});
  EXPECT_EQ(several.PathSegment(facts, "team"), "red");
  EXPECT_EQ(several.PathSegment(facts, "id"), "");
  Match nested = Any({{{"path", {"/teams/{team}/**"}}}});
  EXPECT_EQ(Compiled(nested).PathSegment(facts, "team"), "red");
  nested.all = {{{"path", {"/**/{team}"}}}};
  EXPECT_EQ(Compiled(nested).PathSegment(facts, "team"), "7");
  nested.attributes = {{"path", {"/{team}/**"}}};
  EXPECT_EQ(Compiled(nested).PathSegment(facts, "team"), "teams");
  EXPECT_EQ(Compiled({Not({"path", {"/teams/{team}"}})}).PathSegment(facts, "team"), "");
}

}  // namespace
}  // namespace weir
