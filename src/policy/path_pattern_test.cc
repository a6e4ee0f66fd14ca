#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy/path.h"

namespace weir {
namespace {

using testing::HasSubstr;

PathPattern Pattern(std::string_view text) {
  const Result<PathPattern> pattern = PathPattern::Parse(text);
  EXPECT_TRUE(pattern.has_value()) << pattern.error().message;
  return pattern.value_or(PathPattern());
}

std::string PatternProblem(std::string_view text) {
  const Result<PathPattern> pattern = PathPattern::Parse(text);
  if (pattern.has_value()) return "none";
  EXPECT_EQ(pattern.error().code, ErrorCode::kInvalidArgument);
  return pattern.error().message;
}

bool Fits(std::string_view pattern, std::string_view path) { return Pattern(pattern).Fits(path); }

TEST(PathPattern, FitsALiteralPathOnly) {
  EXPECT_TRUE(Fits("/auth/login", "/auth/login"));
  EXPECT_FALSE(Fits("/auth/login", "/auth/logins"));
  EXPECT_FALSE(Fits("/auth/login", "/auth"));
  EXPECT_FALSE(Fits("/auth/login", "/auth/login/x"));
  EXPECT_FALSE(Fits("/auth/login", "/"));
  EXPECT_TRUE(Fits("/", "/"));
  EXPECT_FALSE(Fits("/", "/a"));
  EXPECT_FALSE(Fits("/", ""));
}

TEST(PathPattern, TakesAStarForOneSegmentOrPartOfOne) {
  EXPECT_TRUE(Fits("/files/*/meta", "/files/x/meta"));
  EXPECT_FALSE(Fits("/files/*/meta", "/files/meta"));
  EXPECT_FALSE(Fits("/files/*/meta", "/files/x/y/meta"));
  EXPECT_FALSE(Fits("/*", "/"));
  EXPECT_TRUE(Fits("/files/*.json", "/files/a.json"));
  EXPECT_FALSE(Fits("/files/*.json", "/files/a/b.json"));
  EXPECT_TRUE(Fits("/v*/a*z", "/v2/a-z"));
}

TEST(PathPattern, TakesTwoStarsForAnyNumberOfSegments) {
  EXPECT_TRUE(Fits("/**", "/"));
  EXPECT_TRUE(Fits("/**", "/a/b"));
  EXPECT_TRUE(Fits("/search/**", "/search"));
  EXPECT_TRUE(Fits("/search/**", "/search/a/b/c"));
  EXPECT_FALSE(Fits("/search/**", "/searching"));
  EXPECT_TRUE(Fits("/a/**/z", "/a/z"));
  EXPECT_TRUE(Fits("/a/**/z", "/a/b/c/z"));
  EXPECT_FALSE(Fits("/a/**/z", "/a"));
  EXPECT_FALSE(Fits("/a/**/a", "/a"));
  EXPECT_TRUE(Fits("/**/login", "/x/y/login"));
  EXPECT_FALSE(Fits("/**/login", "/x/y/login/z"));
}

TEST(PathPattern, NamesSegments) {
  const PathPattern pattern = Pattern("/users/{id}/**/{action}");
  EXPECT_EQ(pattern.Segment("/users/7/a/b/buy", "id"), "7");
  EXPECT_EQ(pattern.Segment("/users/7/a/b/buy", "action"), "buy");
  EXPECT_EQ(pattern.Segment("/users/7/buy", "other"), "");
  EXPECT_EQ(pattern.Segment("/users/7/buy", ""), "");
  EXPECT_EQ(pattern.Segment("/users/7", "id"), "");
  EXPECT_TRUE(pattern.HasName("id"));
  EXPECT_FALSE(pattern.HasName("users"));
  EXPECT_FALSE(pattern.HasName(""));
  EXPECT_FALSE(Pattern("/*").HasName(""));
}

TEST(PathPattern, IsBroughtIntoTheFormOfPaths) {
  EXPECT_EQ(Pattern("//auth/./%6cogin/").ToString(), "/auth/login");
  EXPECT_EQ(Pattern("/a%2fb/%2e/*.%6ason").ToString(), "/a%2Fb/*.json");
  EXPECT_EQ(Pattern("/").ToString(), "/");
  EXPECT_TRUE(Fits("/caf%C3%A9 x", "/caf\xc3\xa9 x"));
  EXPECT_TRUE(Fits("/..*", "/..a"));
}

TEST(PathPattern, MayHaveTheCharactersThatMeanSomethingAsEscapes) {
  const PathPattern pattern = Pattern("/%2A/%7Bid%7D");
  EXPECT_TRUE(pattern.IsLiteral());
  EXPECT_TRUE(pattern.Fits("/*/{id}"));
  EXPECT_FALSE(pattern.Fits("/x/{id}"));
  EXPECT_EQ(pattern.LiteralPath(), "/*/{id}");
  EXPECT_EQ(pattern.ToString(), "/%2A/%7Bid%7D");
}

TEST(PathPattern, SaysWhatIsWrongWithIt) {
  EXPECT_THAT(PatternProblem(""), HasSubstr("must start with /"));
  EXPECT_THAT(PatternProblem("auth"), HasSubstr("\"auth\": it must start with /"));
  EXPECT_THAT(PatternProblem("/a?b"), HasSubstr("query.NAME"));
  EXPECT_THAT(PatternProblem("/a#b"), HasSubstr("fragment"));
  EXPECT_THAT(PatternProblem("/**/a/**"), HasSubstr("only once"));
  EXPECT_THAT(PatternProblem("/a**"), HasSubstr("whole segments"));
  EXPECT_THAT(PatternProblem("/{}"), HasSubstr("is no {name}"));
  EXPECT_THAT(PatternProblem("/{1a}"), HasSubstr("is no {name}"));
  EXPECT_THAT(PatternProblem("/{a-b}"), HasSubstr("is no {name}"));
  EXPECT_THAT(PatternProblem("/x{a}"), HasSubstr("whole segment"));
  EXPECT_THAT(PatternProblem("/}"), HasSubstr("%7D"));
  EXPECT_THAT(PatternProblem("/{a}/{a}"), HasSubstr("{a} is there twice"));
  EXPECT_THAT(PatternProblem("/a/../b"), HasSubstr(".."));
  EXPECT_THAT(PatternProblem("/a/%2e%2E/b"), HasSubstr(".."));
  EXPECT_THAT(PatternProblem("/a*%2A"), HasSubstr("%2A"));
  std::string deep;
  for (int i = 0; i < 129; ++i) deep += "/a";
  EXPECT_THAT(PatternProblem(deep), HasSubstr("128 segments"));
  EXPECT_EQ(PatternProblem(deep.substr(2)), "none");
}

TEST(PathPattern, DoesNotRunAwayOnDeepPaths) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "/a";
  const PathPattern pattern = Pattern("/a/**/b");
  for (int i = 0; i < 10'000; ++i) EXPECT_FALSE(pattern.Fits(deep));
}

TEST(PathPattern, CoversWhatIsNarrower) {
  const auto covers = [](std::string_view wide, std::string_view narrow) {
    return Pattern(wide).Covers(Pattern(narrow));
  };
  EXPECT_TRUE(covers("/a", "/a"));
  EXPECT_TRUE(covers("/*", "/a"));
  EXPECT_TRUE(covers("/*", "/{id}"));
  EXPECT_TRUE(covers("/{id}", "/*"));
  EXPECT_TRUE(covers("/a*", "/ab*"));
  EXPECT_TRUE(covers("/**", "/a/*/b/**"));
  EXPECT_TRUE(covers("/a/**", "/a"));
  EXPECT_TRUE(covers("/a/**", "/a/b/**/c"));
  EXPECT_TRUE(covers("/**/c", "/a/b/**/c"));
  EXPECT_TRUE(covers("/a/**/a", "/a/a"));
  EXPECT_FALSE(covers("/a/**/a", "/a"));
  EXPECT_FALSE(covers("/a", "/*"));
  EXPECT_FALSE(covers("/ab*", "/a*"));
  EXPECT_FALSE(covers("/a/*", "/a/**"));
  EXPECT_FALSE(covers("/a/b/**", "/a/**"));
  EXPECT_FALSE(covers("/", "/a"));
}

std::vector<std::string> RandomSegments(const std::vector<std::string>& segments) {
  const auto size = *rc::gen::inRange<std::size_t>(0, 4);
  return *rc::gen::container<std::vector<std::string>>(size, rc::gen::elementOf(segments));
}

std::string PathOf(const std::vector<std::string>& segments) {
  std::string path;
  for (const std::string& segment : segments) path += "/" + segment;
  return path.empty() ? "/" : path;
}

std::string RandomPattern() {
  const std::vector<std::string> kinds = {"a", "b", "ab", "*", "a*", "*b"};
  const std::string before = PathOf(RandomSegments(kinds));
  const std::string after = PathOf(RandomSegments(kinds));
  return *rc::gen::arbitrary<bool>() ? before : before + "/**" + after;
}

RC_GTEST_PROP(PathPattern, CoversOnlyWhatItReallyCovers, ()) {
  const PathPattern wide = Pattern(RandomPattern());
  const PathPattern narrow = Pattern(RandomPattern());
  const bool covers = wide.Covers(narrow);
  RC_TAG(covers);
  for (int i = 0; i < 30; ++i) {
    const std::string path = PathOf(RandomSegments({"a", "b", "ab", "abb", "ba"}));
    RC_ASSERT(!covers || !narrow.Fits(path) || wide.Fits(path));
  }
  RC_ASSERT(wide.Covers(wide));
}

bool FitSlowly(std::span<const PathPattern::PatternSegment> pattern,
               std::span<const std::string> path) {
  using Kind = PathPattern::SegmentKind;
  if (pattern.empty()) return path.empty();
  if (pattern.front().kind == Kind::kRest) {
    return FitSlowly(pattern.subspan(1), path) ||
           (!path.empty() && FitSlowly(pattern, path.subspan(1)));
  }
  if (path.empty()) return false;
  const bool fits =
      pattern.front().kind == Kind::kAny || FitsGlob(pattern.front().text, path.front());
  return fits && FitSlowly(pattern.subspan(1), path.subspan(1));
}

RC_GTEST_PROP(PathPattern, AgreesWithTryingEveryWay, ()) {
  const PathPattern pattern = Pattern(RandomPattern());
  const std::vector<std::string> segments = RandomSegments({"a", "b", "ab"});
  RC_ASSERT(pattern.Fits(PathOf(segments)) == FitSlowly(pattern.segments(), segments));
}

RC_GTEST_PROP(PathPattern, IsReadBackFromItsText, ()) {
  const std::string alphabet = "//%%.236aAfF*{}bB";
  const std::string text = "/" + *rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
  const Result<PathPattern> pattern = PathPattern::Parse(text);
  if (!pattern) return;
  const Result<PathPattern> again = PathPattern::Parse(pattern->ToString());
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == *pattern);
}

}  // namespace
}  // namespace weir
