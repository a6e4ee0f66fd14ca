#include "policy/matcher.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "policy/match_samples.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Matcher MatcherOf(const std::vector<Match>& matches) {
  std::vector<CompiledMatch> compiled;
  for (const Match& match : matches) compiled.push_back(CompiledMatch::Make(match).value());
  return Matcher(std::move(compiled));
}

std::vector<std::uint32_t> FoundTogether(const Matcher& matcher, const Request& request) {
  std::vector<std::uint32_t> found;
  matcher.ForEach(Facts(request), [&](std::uint32_t number) { found.push_back(number); });
  return found;
}

std::vector<std::uint32_t> FoundOneByOne(const Matcher& matcher, const Request& request) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < matcher.size(); ++i) {
    if (matcher[i].Holds(Facts(request))) found.push_back(i);
  }
  return found;
}

RC_GTEST_PROP(Matcher, FindsWhatLookingAtEveryMatchFinds, (std::uint64_t seed)) {
  MatchSampler sampler(seed);
  std::vector<CompiledMatch> matches;
  for (std::size_t i = sampler.Below(60); i > 0; --i) matches.push_back(sampler.NextCompiled());
  const Matcher matcher(std::move(matches));
  for (int i = 0; i < 100; ++i) {
    const auto sample = sampler.NextRequest();
    RC_ASSERT(FoundTogether(matcher, sample.request) == FoundOneByOne(matcher, sample.request));
  }
}

TEST(Matcher, FindsNothingAmongNone) { EXPECT_THAT(FoundTogether(MatcherOf({}), {}), IsEmpty()); }

TEST(Matcher, FindsEachMatchOnceHoweverManyOfItsValuesFit) {
  Match match;
  match.any = {{{"user", {"ann"}}}, {{"path", {"/a", "/*", "/**"}}}, {{"ip", {"10.0.0.0/8"}}}};
  EXPECT_THAT(FoundTogether(MatcherOf({match}), {.ip = "10.0.0.1", .user = "ann", .path = "/a"}),
              ElementsAre(0));
}

TEST(Matcher, FindsThemInTheirOrder) {
  const Matcher matcher = MatcherOf({{{"path", {"/**"}}},
                                     {},
                                     {{"user", {"ann"}}},
                                     {{"path", {"/a"}}},
                                     {{"user", {"bob"}}},
                                     {{"method", {"GET"}}}});
  EXPECT_THAT(FoundTogether(matcher, {.user = "ann", .method = "GET", .path = "/a"}),
              ElementsAre(0, 1, 2, 3, 5));
}

TEST(Matcher, FindsMoreThanThereIsRoomForInPlace) {
  std::vector<Match> matches(1'000);
  for (std::size_t i = 0; i < matches.size(); i += 2) matches[i] = {{"user", {"ann"}}};
  const Matcher matcher = MatcherOf(matches);
  EXPECT_EQ(FoundTogether(matcher, {.user = "ann"}).size(), 1'000u);
  EXPECT_EQ(FoundTogether(matcher, {}).size(), 500u);
}

TEST(Matcher, TellsNamesApartThatLookAlike) {
  const std::string ending(60, 'x');
  std::vector<Match> matches;
  for (const char c : {'a', 'b', 'c'}) {
    const std::string name = "prefix-" + std::string(20, c) + ending;
    matches.push_back({{"header." + name, {"1"}}});
    matches.push_back({{"cookie." + name, {"1"}}});
  }
  matches.push_back({{"cookie.A", {"1"}}});
  matches.push_back({{"cookie.a", {"1"}}});
  const Matcher matcher = MatcherOf(matches);
  const std::string name = "PREFIX-" + std::string(20, 'B') + std::string(60, 'X');
  const std::vector<NamedValue> values = {{name, "1"}, {"A", "1"}};
  EXPECT_THAT(FoundTogether(matcher, {.headers = values, .cookies = values}), ElementsAre(2, 6));
}

TEST(Matcher, TakesMoreNamesThanItHasRoomFor) {
  std::vector<Match> matches;
  std::vector<std::string> names;
  for (int i = 0; i < 2'000; ++i) {
    names.push_back("x-" + std::to_string(i));
    matches.push_back({{"header." + names.back(), {"1"}}});
  }
  const Matcher matcher = MatcherOf(matches);
  std::vector<NamedValue> headers;
  for (const std::string& name : names) headers.push_back({name, "1"});
  EXPECT_EQ(FoundTogether(matcher, {.headers = headers}).size(), 2'000u);
}

// Would take minutes if each of them were looked up or each pattern tried on it.
TEST(Matcher, IsNotHeldUpByLongRequests) {
  std::vector<Match> matches;
  for (int i = 0; i < 1'000; ++i) {
    const std::string n = std::to_string(i);
    matches.push_back({{.attribute = "header.x-a", .wants = AttributeTest::Wants::kPresent},
                       {"user", {"*" + n}}});
    matches.push_back({{"path", {"/a/*/" + n, "/*/a/**/" + n, "/**/" + n}}});
  }
  const Matcher matcher = MatcherOf(matches);
  std::string path;
  for (int i = 0; i < 10'000; ++i) path += "/a";
  const std::vector<NamedValue> headers(10'000, {"X-A", "1"});
  const std::string user(8'192, '1');
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(FoundTogether(matcher, {.user = user, .path = path, .headers = headers}),
                ElementsAre(2, 22, 222));
  }
}

}  // namespace
}  // namespace weir
