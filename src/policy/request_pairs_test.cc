#include "policy/request_pairs.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

std::string Written(const NamedValue& pair) {
  return std::string(pair.name) + "=" + std::string(pair.value) + "|";
}

std::string Cookies(std::string_view header) {
  std::string written;
  CookieReader reader(header);
  while (const auto cookie = reader.Next()) written += Written(*cookie);
  return written;
}

std::string Query(std::string_view query) {
  std::string written;
  std::vector<char> buffer(query.size());
  QueryReader reader(query, buffer);
  while (const auto pair = reader.Next()) written += Written(*pair);
  return written;
}

TEST(CookieReader, ReadsNamesAndValues) {
  EXPECT_EQ(Cookies("a=1; b=2"), "a=1|b=2|");
  EXPECT_EQ(Cookies("a=1;b=2;"), "a=1|b=2|");
  EXPECT_EQ(Cookies(" a = 1 ;\tb=2 "), "a=1|b=2|");
  EXPECT_EQ(Cookies("a=1; a=2"), "a=1|a=2|");
  EXPECT_EQ(Cookies("a=b=c"), "a=b=c|");
  EXPECT_EQ(Cookies("a="), "a=|");
  EXPECT_EQ(Cookies("a=%41+b"), "a=%41+b|") << "cookies are not encoded";
}

TEST(CookieReader, LeavesOutWhatHasNoName) {
  EXPECT_EQ(Cookies(""), "");
  EXPECT_EQ(Cookies(";;; ;"), "");
  EXPECT_EQ(Cookies("abc; a=1"), "a=1|");
  EXPECT_EQ(Cookies("=x; a=1"), "a=1|");
}

TEST(CookieReader, TakesAValueInQuotesForTheSameWithoutThem) {
  EXPECT_EQ(Cookies("a=\"1\"; b=2"), "a=1|b=2|");
  EXPECT_EQ(Cookies("a=\"\""), "a=|");
  EXPECT_EQ(Cookies("a=\"; b=\"x"), "a=\"|b=\"x|");
}

TEST(QueryOf, IsWhatStandsBehindTheQuestionMark) {
  EXPECT_EQ(QueryOf("/a?b=1&c=2"), "b=1&c=2");
  EXPECT_EQ(QueryOf("/a?b?c"), "b?c");
  EXPECT_EQ(QueryOf("/a?b#c?d"), "b");
  EXPECT_EQ(QueryOf("/a#b?c"), "");
  EXPECT_EQ(QueryOf("/a?"), "");
  EXPECT_EQ(QueryOf("/a"), "");
  EXPECT_EQ(QueryOf(""), "");
}

TEST(QueryReader, ReadsNamesAndValues) {
  EXPECT_EQ(Query("a=1&b=2"), "a=1|b=2|");
  EXPECT_EQ(Query("a=1&&b=2&"), "a=1|b=2|");
  EXPECT_EQ(Query("a&b=&=c&a=2"), "a=|b=|a=2|");
  EXPECT_EQ(Query("a=b=c;d"), "a=b=c;d|");
  EXPECT_EQ(Query(""), "");
}

TEST(QueryReader, DecodesEscapesAndPlus) {
  EXPECT_EQ(Query("a+b=c+d"), "a b=c d|");
  EXPECT_EQ(Query("%61%2B=%3d%3D&b=%26"), "a+===|b=&|");
  EXPECT_EQ(Query("a=%00"), "a=\0|"sv);
  EXPECT_EQ(Query("a=%e4%B8%ad"), "a=\xe4\xb8\xad|");
}

TEST(QueryReader, LeavesWhatIsNoEscape) {
  EXPECT_EQ(Query("a=%"), "a=%|");
  EXPECT_EQ(Query("a=%4"), "a=%4|");
  EXPECT_EQ(Query("a=%zz%4g%%41"), "a=%zz%4g%A|");
  EXPECT_EQ(Query("a=100%&b=1"), "a=100%|b=1|");
}

// Every byte as an escape, a plus or itself, as far as it may stand so.
std::string Encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain && *rc::gen::arbitrary<bool>()) {
      encoded += c;
    } else if (c == ' ' && *rc::gen::arbitrary<bool>()) {
      encoded += '+';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      encoded += "0123456789abcdef"[byte >> 4];
      encoded += "0123456789ABCDEF"[byte & 15];
    }
  }
  return encoded;
}

RC_GTEST_PROP(QueryReader, GivesBackWhatWasEncoded, ()) {
  std::string query;
  std::string expected;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    const auto name = *rc::gen::nonEmpty(rc::gen::arbitrary<std::string>());
    const auto value = *rc::gen::arbitrary<std::string>();
    query += (i > 0 ? "&" : "") + Encoded(name) + "=" + Encoded(value);
    expected += Written({name, value});
  }
  RC_ASSERT(Query(query) == expected);
}

RC_GTEST_PROP(QueryReader, NeedsNoMoreRoomThanTheQuery, ()) {
  const auto query = *rc::gen::container<std::string>(rc::gen::elementOf("%+&=4a"s));
  RC_ASSERT(Query(query).size() <= 3 * query.size() + 3);
}

}  // namespace
}  // namespace weir
