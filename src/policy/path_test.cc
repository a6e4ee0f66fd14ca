#include "policy/path.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using std::string_literals::operator""s;

std::string Normal(const std::string& raw) {
  // Exactly as large as it must be, so that a sanitizer sees whoever needs more.
  std::vector<char> buffer(raw.size() + 1);
  return std::string(NormalizePath(raw, buffer));
}

struct NormalizedPath {
  std::string raw;
  std::string normal;
};

TEST(NormalizePath, BringsEveryWayToWriteAPathIntoOneForm) {
  const std::vector<NormalizedPath> rows = {
      {"", ""},
      {"/", "/"},
      {"/auth/login", "/auth/login"},
      // Slashes.
      {"//auth///login", "/auth/login"},
      {"/auth/login/", "/auth/login"},
      {"/auth/login///", "/auth/login"},
      {"//", "/"},
      {"////", "/"},
      {"auth/login", "/auth/login"},
      {"a/", "/a"},
      // Query and fragment.
      {"/auth/login?x", "/auth/login"},
      {"/auth/login?", "/auth/login"},
      {"/auth/login/?x=/y/../z", "/auth/login"},
      {"/auth/login#f", "/auth/login"},
      {"/auth/login#f?x", "/auth/login"},
      {"/auth/login/#", "/auth/login"},
      {"/?x", "/"},
      {"?x", "/"},
      {"#", "/"},
      {"/a%3Fb?c", "/a%3Fb"},
      {"/a%23b#c", "/a%23b"},
      // Dot segments.
      {"/auth/./login", "/auth/login"},
      {"/auth/./x/../login", "/auth/login"},
      {"/auth/x//../login", "/auth/login"},
      {"/auth/login/.", "/auth/login"},
      {"/auth/login/x/..", "/auth/login"},
      {"/auth/login/./?x", "/auth/login"},
      {"/auth/login/..?x", "/auth"},
      {"/./auth/login", "/auth/login"},
      {".", "/"},
      {"..", "/"},
      {"/..", "/"},
      {"/../../auth", "/auth"},
      {"/a/b/../../../c", "/c"},
      {"../a", "/a"},
      {"/%2e%2e/", "/"},
      {"/auth/%2E/login", "/auth/login"},
      {"/auth/x/.%2e/login", "/auth/login"},
      {"/auth/x/%2E./login", "/auth/login"},
      {"/.well-known/x", "/.well-known/x"},
      {"/...", "/..."},
      {"/..a/.b./c..", "/..a/.b./c.."},
      // Escapes.
      {"/auth/%6cogin", "/auth/login"},
      {"/auth/%6Cogin", "/auth/login"},
      {"/%61%75%74%68/login", "/auth/login"},
      {"/%41-%2D%5f%7E", "/A--_~"},
      {"/a/%2F/b", "/a/%2F/b"},
      {"/a/%2f/b", "/a/%2F/b"},
      {"/a%2f..%2fb", "/a%2F..%2Fb"},
      {"/a%252Fb", "/a%252Fb"},
      {"/a%2561", "/a%2561"},
      {"/v1/things%3asearch", "/v1/things:search"},
      {"/ann%40example.org", "/ann@example.org"},
      {"/a%2C%3B%3D%2B%24%26%27%28%29%21%2A", "/a,;=+$&'()!*"},
      {"/caf%c3%a9", "/caf\xc3\xa9"},
      {"/a%20b", "/a b"},
      {"/a%00%0a%7f", "/a%00%0A%7F"},
      // What begins no escape.
      {"/%", "/%"},
      {"/%zz", "/%zz"},
      {"/%6", "/%6"},
      {"/%/61", "/%/61"},
      {"/%%61%3a", "/%%61:"},
      {"/%%361", "/%%361"},
      {"/%6%31", "/%6%31"},
      {"/%6%7a", "/%6z"},
      {"/%6?1", "/%6"},
      // Other bytes stay.
      {"/a\0b"s, "/a\0b"s},
      {"/\xff\xfe/\xc3\xa9", "/\xff\xfe/\xc3\xa9"},
      {"/auth;v=1/login;x=../y", "/auth;v=1/login;x=../y"},
      {"/a\\b", "/a\\b"},
      {"/A/b", "/A/b"},
      // Not the form of a path.
      {"*", "/*"},
      {"http://example.org/auth/login?x", "/auth/login"},
      {"HTTPS://u:p@example.org:8080//auth/./login/", "/auth/login"},
      {"http://example.org", "/"},
      {"http://example.org?x=/y", "/"},
      {"http://example.org#/y", "/"},
      {"/http://example.org/a", "/http:/example.org/a"},
      {"1://example.org/a", "/1:/example.org/a"},
      {"a/b://c/d", "/a/b:/c/d"},
      {"example.org:443", "/example.org:443"},
  };
  for (const NormalizedPath& row : rows) EXPECT_EQ(Normal(row.raw), row.normal) << row.raw;
}

TEST(NormalizePath, LeavesAPathInPlaceThatHasItsFormAlready) {
  for (const std::string raw :
       {"/", "/a", "/auth/login", "/a%2Fb", "/%zz", "/a/?x", "/a#", "/a/"}) {
    EXPECT_EQ(NormalizePath(raw, {}).data(), raw.data()) << raw;
  }
}

TEST(NormalizePath, TakesPathsOfManySegments) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "/a/./b/../";
  const std::string normal = Normal(deep);
  EXPECT_EQ(normal.size(), 200'000u);
  std::string up = deep;
  for (int i = 0; i < 100'000; ++i) up += "/..";
  EXPECT_EQ(Normal(up), "/");
}

// Text of characters that mean something in paths.
rc::Gen<std::string> TextOf(const std::string& alphabet) {
  return rc::gen::container<std::string>(rc::gen::elementOf(alphabet));
}

RC_GTEST_PROP(NormalizePath, ChangesNothingTheSecondTime, ()) {
  const std::string raw = *TextOf("//%%.236aAfF?#:h*");
  const std::string once = Normal(raw);
  RC_ASSERT(Normal(once) == once);
}

RC_GTEST_PROP(NormalizePath, LeavesNothingThatCouldBeWrittenOtherwise, ()) {
  const std::vector<std::string> pieces = {"/",   "/",   ".",   "a", "%2e",
                                           "%2F", "%2f", "%61", "?", "#"};
  std::string raw = "/";
  for (const std::string& piece :
       *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces))) {
    raw += piece;
  }
  const std::string path = Normal(raw);
  RC_ASSERT(path.starts_with('/'));
  RC_ASSERT(path == "/" || !path.ends_with('/'));
  const std::string closed = path == "/" ? path : path + "/";
  for (const char* never : {"//", "/./", "/../", "?", "#", "%2e", "%2E", "%2f", "%61"}) {
    RC_ASSERT(closed.find(never) == std::string::npos);
  }
}

RC_GTEST_PROP(NormalizePath, DoesNotSeeWhetherACharacterIsEscaped, ()) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string plain = "/";
  std::string escaped = "/";
  for (const char c : *TextOf("/..abZ09-_~:@!$&'()*+,;=\x80\xff")) {
    plain += c;
    if (c != '/' && *rc::gen::arbitrary<bool>()) {
      escaped += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 0xf]};
    } else {
      escaped += c;
    }
  }
  RC_ASSERT(Normal(escaped) == Normal(plain));
}

TEST(FitsGlob, TakesAStarForAnyRunOfCharacters) {
  EXPECT_TRUE(FitsGlob("", ""));
  EXPECT_TRUE(FitsGlob("*", ""));
  EXPECT_TRUE(FitsGlob("*", "abc"));
  EXPECT_TRUE(FitsGlob("a*", "a"));
  EXPECT_TRUE(FitsGlob("*.example.com", "www.example.com"));
  EXPECT_TRUE(FitsGlob("a*b*c", "a--b-b--c"));
  EXPECT_TRUE(FitsGlob("**", "x"));
  EXPECT_TRUE(FitsGlob("*aab", "aaaab"));
  EXPECT_FALSE(FitsGlob("", "a"));
  EXPECT_FALSE(FitsGlob("a", ""));
  EXPECT_FALSE(FitsGlob("a*", "ba"));
  EXPECT_FALSE(FitsGlob("*.example.com", "example.com"));
  EXPECT_FALSE(FitsGlob("a*b", "abc"));
}

bool FitsSlowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*') {
    return !text.empty() && pattern.front() == text.front() &&
           FitsSlowly(pattern.substr(1), text.substr(1));
  }
  return FitsSlowly(pattern.substr(1), text) ||
         (!text.empty() && FitsSlowly(pattern, text.substr(1)));
}

RC_GTEST_PROP(FitsGlob, AgreesWithTryingEveryWay, ()) {
  const std::string pattern = (*TextOf("ab**")).substr(0, 8);
  const std::string text = (*TextOf("ab")).substr(0, 12);
  RC_ASSERT(FitsGlob(pattern, text) == FitsSlowly(pattern, text));
}

TEST(FitsGlob, DoesNotRunAwayOnManyStars) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(FitsGlob(pattern + "*b", std::string(8'192, 'a')));
}

}  // namespace
}  // namespace weir
