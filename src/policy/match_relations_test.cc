#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy/compiled_match.h"
#include "policy/match_samples.h"

namespace weir {
namespace {

bool Guarantees(const Match& match, std::string_view attribute) {
  return CompiledMatch::Make(match).value().Guarantees(ParseAttribute(attribute).value());
}

bool Covers(const Match& wide, const Match& narrow) {
  return CompiledMatch::Make(wide).value().Covers(CompiledMatch::Make(narrow).value());
}

std::string WhyNever(const Match& match) { return CompiledMatch::Make(match).value().WhyNever(); }

TEST(Guarantees, WhatMustBeThereForTheMatchToHold) {
  EXPECT_TRUE(Guarantees({Present("user")}, "user"));
  EXPECT_TRUE(Guarantees({{"user", {"a*"}}}, "user"));
  EXPECT_TRUE(Guarantees({Not(Absent("user"))}, "user"));
  EXPECT_TRUE(Guarantees(None({{Absent("user")}}), "user"));
  EXPECT_TRUE(Guarantees(All({{Present("org")}, {Present("user")}}), "user"));
  EXPECT_TRUE(Guarantees(Any({{Present("user")}, {{"user", {"ann"}}}}), "user"));
  EXPECT_TRUE(Guarantees({Present("header.X-Plan")}, "header.x-plan"));
  EXPECT_TRUE(Guarantees({{"ip", {"10.0.0.0/8"}}}, "fingerprint"));
  EXPECT_FALSE(Guarantees({}, "user"));
  EXPECT_FALSE(Guarantees({Present("org")}, "user"));
  EXPECT_FALSE(Guarantees({Absent("user")}, "user"));
  EXPECT_FALSE(Guarantees({Not({"user", {"ann"}})}, "user"));
  EXPECT_FALSE(Guarantees(Any({{Present("user")}, {Present("org")}}), "user"));
  EXPECT_FALSE(Guarantees(None({{Present("user"), Present("org")}}), "user"));
}

TEST(Guarantees, ASegmentThatEveryPatternNames) {
  EXPECT_TRUE(Guarantees({{"path", {"/users/{id}", "/teams/*/{id}"}}}, "path.id"));
  EXPECT_FALSE(Guarantees({{"path", {"/users/{id}", "/teams/*"}}}, "path.id"));
  EXPECT_FALSE(Guarantees({{"path", {"/users/{id}", "/users"}}}, "path.id"));
  EXPECT_FALSE(Guarantees({Not({"path", {"/users/{id}"}})}, "path.id"));
  EXPECT_FALSE(Guarantees({Present("path")}, "path.id"));
}

TEST(Covers, WhatIsNarrower) {
  const Match everything;
  EXPECT_TRUE(Covers(everything, {{"user", {"ann"}}}));
  EXPECT_TRUE(Covers(everything, everything));
  EXPECT_FALSE(Covers({{"user", {"ann"}}}, everything));
  EXPECT_TRUE(Covers({{"user", {"ann", "bob"}}}, {{"user", {"bob"}}, {"org", {"acme"}}}));
  EXPECT_FALSE(Covers({{"user", {"bob"}}, {"org", {"acme"}}}, {{"user", {"bob"}}}));
  EXPECT_TRUE(Covers({{"user", {"a*"}}}, {{"user", {"ann", "ab*"}}}));
  EXPECT_FALSE(Covers({{"user", {"ab*"}}}, {{"user", {"a*"}}}));
  EXPECT_TRUE(Covers({{"path", {"/a/**"}}}, {{"path", {"/a/b", "/a/*/c"}}}));
  EXPECT_FALSE(Covers({{"path", {"/a/**"}}}, {{"path", {"/a/b", "/b"}}}));
  EXPECT_TRUE(Covers({{"ip", {"10.0.0.0/8"}}}, {{"ip", {"10.1.0.0/16", "10.2.3.4"}}}));
  EXPECT_FALSE(Covers({{"ip", {"10.1.0.0/16"}}}, {{"ip", {"10.0.0.0/8"}}}));
  EXPECT_TRUE(Covers({Present("user")}, {{"user", {"ann"}}}));
  EXPECT_FALSE(Covers({{"user", {"ann"}}}, {Present("user")}));
  EXPECT_TRUE(Covers({Absent("user")}, {Not(Present("user"))}));
  EXPECT_TRUE(Covers({Not({"user", {"ann"}})}, {{"user", {"bob"}}}));
  EXPECT_TRUE(Covers({Not({"user", {"ann"}})}, {Absent("user")}));
  EXPECT_TRUE(Covers({Not({"user", {"ann"}})}, {Not({"user", {"a*"}})}));
  EXPECT_FALSE(Covers({Not({"user", {"a*"}})}, {Not({"user", {"ann"}})}));
  EXPECT_FALSE(Covers({Not({"user", {"a*"}})}, {Present("user")}));
}

TEST(Covers, SeesThroughNestedMatches) {
  const Match ann{{"user", {"ann"}}};
  const Match bob{{"user", {"bob"}}};
  const Match excluded{{"user", {"bob"}}, {"tier", {"free"}}};
  EXPECT_TRUE(Covers({Present("user")}, Any({ann, bob})));
  EXPECT_TRUE(Covers(All({ann}), ann));
  EXPECT_TRUE(Covers(ann, All({ann, {Present("org")}})));
  EXPECT_TRUE(Covers(Any({ann, bob}), bob));
  EXPECT_TRUE(Covers(Any({ann, bob}), All({Any({ann, bob}), {Present("org")}})));
  EXPECT_FALSE(Covers(Any({ann, bob}), {Present("user")}));
  EXPECT_TRUE(Covers(None({excluded}), None({excluded, ann})));
  EXPECT_TRUE(Covers(None({excluded}), None({bob, excluded})));
  EXPECT_FALSE(Covers(None({excluded}), ann));
}

RC_GTEST_PROP(Covers, OnlyWhatIsReallyNarrower, (std::uint64_t seed)) {
  MatchSampler sampler(seed);
  for (int pair = 0; pair < 30; ++pair) {
    const CompiledMatch wide = sampler.NextCompiled(1);
    const CompiledMatch narrow = sampler.NextCompiled(1);
    RC_ASSERT(wide.Covers(wide));
    if (!wide.Covers(narrow)) continue;
    for (int i = 0; i < 100; ++i) {
      const auto sample = sampler.NextRequest();
      const Facts facts(sample.request);
      RC_ASSERT(!narrow.Holds(facts) || wide.Holds(facts));
    }
  }
}

TEST(WhyNever, NamesTheContradiction) {
  EXPECT_EQ(WhyNever({{"method", {"GET"}}, {"method", {"POST"}}}),
            "method is GET and POST at once");
  EXPECT_EQ(WhyNever({{"user", {"ann"}}, Absent("user")}), "user is present and absent at once");
  EXPECT_EQ(WhyNever({Absent("user"), Present("user")}), "user is present and absent at once");
  EXPECT_EQ(WhyNever({{"user", {"ann"}}, Not({"user", {"a*"}})}), "user is ann and not a* at once");
  EXPECT_EQ(WhyNever({Not({"user", {"ann"}}), {"user", {"ann"}}}),
            "user is ann and not ann at once");
  EXPECT_EQ(WhyNever({{"user", {"ann"}}, {"user", {"b*"}}}), "user is ann and b* at once");
  EXPECT_EQ(WhyNever({{"path", {"/a/**"}}, {"path", {"/b/*"}}}), "path is /a/** and /b/* at once");
  EXPECT_EQ(WhyNever({{"path", {"/a/*"}}, {"path", {"/a/*/c"}}}),
            "path is /a/* and /a/*/c at once");
  EXPECT_EQ(WhyNever({{"ip", {"10.0.0.0/8"}}, {"ip", {"192.0.2.1"}}}),
            "ip is 10.0.0.0/8 and 192.0.2.1 at once");
  EXPECT_EQ(WhyNever(All({{{"tier", {"a", "b"}}}, {{"tier", {"c"}}}})),
            "tier is a or b and c at once");
}

TEST(WhyNever, SeesThroughNestedMatches) {
  Match match{{"method", {"GET"}}};
  match.any = {{{"method", {"PUT"}}}, {{"method", {"POST"}}}};
  EXPECT_EQ(WhyNever(match), "no alternative in \"any\" can hold: method is GET and PUT at once");
  match.any.push_back({});
  EXPECT_EQ(WhyNever(match), "");
  EXPECT_EQ(WhyNever(None({{}})), "what is excluded by \"not\" holds whenever the rest does");
  EXPECT_EQ(WhyNever(None({{Present("user"), Present("org")}})), "");
}

TEST(WhyNever, IsQuickOnDeepAlternatives) {
  Match match{{"method", {"GET"}}, {"method", {"PUT"}}};
  for (int i = 1; i < CompiledMatch::kMaxDepth; ++i) match = Any({match});
  EXPECT_THAT(WhyNever(match), testing::EndsWith("method is GET and PUT at once"));
}

TEST(WhyNever, IsEmptyIfSomethingMayFit) {
  EXPECT_EQ(WhyNever({}), "");
  EXPECT_EQ(WhyNever({{"method", {"GET", "PUT"}}, {"method", {"PUT"}}}), "");
  EXPECT_EQ(WhyNever({{"path", {"/a/**"}}, {"path", {"/*/b"}}}), "");
  EXPECT_EQ(WhyNever({{"user", {"a*"}}, {"user", {"*b"}}}), "");
  EXPECT_EQ(WhyNever({Not({"user", {"a"}}), Absent("user")}), "");
  EXPECT_EQ(WhyNever({{"header.a", {"1"}}, {"header.b", {"2"}}}), "");
}

RC_GTEST_PROP(WhyNever, IsSaidOnlyOfWhatNeverHolds, (std::uint64_t seed)) {
  MatchSampler sampler(seed);
  for (int i = 0; i < 30; ++i) {
    const CompiledMatch match = sampler.NextCompiled();
    if (match.WhyNever().empty()) continue;
    for (int j = 0; j < 100; ++j) {
      const auto sample = sampler.NextRequest();
      RC_ASSERT(!match.Holds(Facts(sample.request)));
    }
  }
}

RC_GTEST_PROP(Guarantees, OnlyWhatEveryRequestHas, (std::uint64_t seed)) {
  MatchSampler sampler(seed);
  const CompiledMatch match = sampler.NextCompiled();
  for (const char* name : {"user", "path", "ip", "header.x-a", "cookie.x-a", "path.x"}) {
    const Attribute attribute = ParseAttribute(name).value();
    if (!match.Guarantees(attribute)) continue;
    for (int i = 0; i < 100; ++i) {
      const auto sample = sampler.NextRequest();
      const Facts facts(sample.request);
      if (!match.Holds(facts)) continue;
      const bool has = attribute.kind == AttributeKind::kPathSegment
                           ? !match.PathSegment(facts, attribute.name).empty()
                           : facts.Has(attribute);
      RC_ASSERT(has);
    }
  }
}

}  // namespace
}  // namespace weir
