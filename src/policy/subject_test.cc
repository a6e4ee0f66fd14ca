#include "policy/subject.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {

struct Part {
  std::string name;
  std::string value{};
  bool hashed = false;

  friend bool operator==(const Part&, const Part&) = default;
  friend auto operator<=>(const Part&, const Part&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Part& part) {
    return out << testing::PrintToString(std::tie(part.name, part.value, part.hashed));
  }
};

using Parts = std::vector<Part>;

namespace {

std::string SubjectOf(const Parts& parts) {
  SubjectWriter writer;
  for (const Part& part : parts) {
    part.hashed ? writer.AddHashed(part.name, part.value) : writer.Add(part.name, part.value);
  }
  return std::string(writer.Finish());
}

// The same, as its description has it.
std::string PlainSubjectOf(const Parts& parts) {
  if (parts.empty()) return "global";
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-";
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto encoded = [&](const std::string& text) {
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      out += kPlain.contains(c) ? std::string{c}
                                : std::string{'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
    return out;
  };
  std::string subject;
  for (const Part& part : parts) {
    if (&part != &parts.front()) subject += '&';
    subject += encoded(part.name) + (part.hashed ? "~=" : "=") + encoded(part.value);
  }
  if (subject.size() <= 96) return subject;
  Hex128Digits hex;
  Sha256Hex128(subject, hex);
  return "~" + std::string(hex.data(), hex.size());
}

bool IsFitForAKey(const std::string& subject) {
  return !subject.empty() && subject.size() <= kMostSubjectBytes &&
         std::ranges::all_of(subject, [](char c) {
           return c > ' ' && c <= '~' && c != '{' && c != '}' && c != ':';
         });
}

TEST(Subject, IsItsPartsWithTheirNames) {
  EXPECT_EQ(SubjectOf({{"user", "acme"}}), "user=acme");
  EXPECT_EQ(SubjectOf({{"user", "acme"}, {"path.project", "42"}}), "user=acme&path.project=42");
}

TEST(Subject, OfAKeyWithoutPartsIsGlobal) { EXPECT_EQ(SubjectOf({}), "global"); }

TEST(Subject, KeepsPlainBytesAndEncodesTheOthers) {
  EXPECT_EQ(SubjectOf({{"user", "azAZ09._@-"}}), "user=azAZ09._@-");
  EXPECT_EQ(SubjectOf({{"user", std::string("\0\n %&=~{}:/\x7f\xff", 13)}}),
            "user=%00%0A%20%25%26%3D%7E%7B%7D%3A%2F%7F%FF");
  EXPECT_EQ(SubjectOf({{"header.x-a&b=c", "1"}}), "header.x-a%26b%3Dc=1");
}

TEST(Subject, EncodesEveryByteWhereverItStandsInAValue) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::string value(20, 'x');
      value[at] = static_cast<char>(byte);
      ASSERT_EQ(SubjectOf({{"n", value}}), PlainSubjectOf({{"n", value}})) << byte << " at " << at;
    }
  }
}

TEST(Subject, OfAnAbsentPartHasNoValue) {
  EXPECT_EQ(SubjectOf({{"user", ""}, {"ip", "::1"}}), "user=&ip=%3A%3A1");
}

TEST(Subject, MarksWhatIsHashed) {
  EXPECT_EQ(SubjectOf({{"api_key", "00ff", true}}), "api_key~=00ff");
}

TEST(Subject, IsShortenedAbove96Bytes) {
  const std::string longest(96 - 2, 'x');
  EXPECT_EQ(SubjectOf({{"n", longest}}), "n=" + longest);
  EXPECT_EQ(SubjectOf({{"n", longest + "x"}}), PlainSubjectOf({{"n", longest + "x"}}));
  EXPECT_THAT(SubjectOf({{"n", longest + "x"}}), testing::MatchesRegex("~[0-9a-f]+"));
  EXPECT_EQ(SubjectOf({{"n", longest + "x"}}).size(), 33u);
}

// The same in every version, or a shared store would count a key twice.
TEST(Subject, IsAlwaysShortenedToTheSame) {
  EXPECT_EQ(SubjectOf({{"user", std::string(200, 'a')}}), "~c8844867298b9df0b7e4a15934038b2f");
}

TEST(Subject, IsRightForEveryLengthAroundTheBuffers) {
  for (const char c : {'x', '%'}) {
    for (std::size_t length = 0; length < 1400; ++length) {
      const Parts parts = {{"n", std::string(length, c)}, {"m", std::string(length / 2, c)}};
      ASSERT_EQ(SubjectOf(parts), PlainSubjectOf(parts)) << length << c;
    }
  }
}

TEST(Subject, MayHaveManyPartsAndLongNames) {
  Parts parts;
  for (int i = 0; i < 150; ++i) {
    parts.push_back({std::string(static_cast<std::size_t>(i), 'n'), std::to_string(i), i % 2 == 0});
    ASSERT_EQ(SubjectOf(parts), PlainSubjectOf(parts)) << i;
  }
}

TEST(Subject, OfMegabytesDependsOnEveryByte) {
  std::string value(std::size_t{4} << 20, '%');
  const std::string subject = SubjectOf({{"user", value}});
  EXPECT_EQ(subject, PlainSubjectOf({{"user", value}}));
  value.back() = '&';
  EXPECT_NE(SubjectOf({{"user", value}}), subject);
}

TEST(Subject, IsTheSameWithANameThatWasEncodedBefore) {
  const std::string name = "header.x{y}";
  const std::string encoded = EncodeForSubject(name);
  for (const std::string& value : {std::string(), std::string("a b"), std::string(600, '%')}) {
    SubjectWriter writer;
    writer.AddEncodedName(encoded, value);
    writer.AddHashedEncodedName(encoded, "00ff");
    EXPECT_EQ(writer.Finish(), SubjectOf({{name, value}, {name, "00ff", true}}));
  }
}

TEST(Subject, DoesNotDependOnWhatWasWrittenBefore) {
  SubjectWriter writer;
  for (const std::size_t before : {0u, 10u, 200u, 5000u}) {
    for (const std::size_t length : {1u, 200u, 5000u}) {
      writer.Begin();
      writer.Add("before", std::string(before, '&'));
      writer.Finish();
      writer.Begin();
      writer.Add("user", std::string(length, '='));
      EXPECT_EQ(writer.Finish(), SubjectOf({{"user", std::string(length, '=')}}));
      writer.Begin();
      EXPECT_EQ(writer.Finish(), "global");
    }
  }
}

// Every one of them against every other.
TEST(Subject, TellsNastyKeysApart) {
  const std::string nul(1, '\0');
  const std::string long_value(100, 'x');
  const Parts too_long = {{"user", long_value}};
  const std::string shortened = SubjectOf(too_long);
  const std::vector<Parts> keys = {
      {},
      {{"global"}},
      {{"", "global"}},
      {{"user", "global"}},
      {{""}},
      {{""}, {""}},
      {{"", "="}},
      {{"="}},
      {{"&"}},
      {{"", "&="}},
      {{"a"}},
      {{"a"}, {"a"}},
      {{"a", "b"}},
      {{"a=b"}},
      {{"a", "b&c=d"}},
      {{"a", "b"}, {"c", "d"}},
      {{"c", "d"}, {"a", "b"}},
      {{"a", "b&c"}, {"d"}},
      {{"a", "b%26c=d"}},
      {{"a", "b%26c%3Dd"}},
      {{"a", "b"}, {"c"}},
      {{"a"}, {"c", "d"}},
      {{"a", "b&c="}},
      {{"a", "&"}},
      {{"a", "%26"}},
      {{"a", "%2526"}},
      {{"a", "%"}},
      {{"a", "%25"}},
      {{"a", nul}},
      {{"a", nul + nul}},
      {{"a", "%00"}},
      {{"a", "0"}},
      {{"a", " "}},
      {{"a", "+"}},
      {{"a", "A"}},
      {{"A", "a"}},
      {{"a", "{b}"}},
      {{"a", "}b{"}},
      {{"a", "ff", true}},
      {{"a", "ff"}},
      {{"a~", "ff"}},
      {{"a~=ff"}},
      {{"a", "~ff"}},
      {{"a", "~=ff"}},
      {{"a", "", true}},
      {{"", "ff", true}},
      {{"~", "ff"}},
      {{"a", "\xc3\xa9"}},
      {{"a", "e\xcc\x81"}},
      {{"a", "\xe9"}},
      {{"user", shortened}},
      {{shortened}},
      {{"", shortened.substr(1), true}},
      {{shortened.substr(1), "", true}},
      too_long,
      {{"user", long_value + "x"}},
      {{"user", long_value}, {"user"}},
      {{"user", long_value, true}},
      {{"user", long_value + "&b=c"}},
      {{"user", long_value}, {"b", "c"}},
      {{"user", long_value + nul}},
  };
  std::map<std::string, Parts> seen;
  for (const Parts& key : keys) {
    const std::string subject = SubjectOf(key);
    const auto [other, fresh] = seen.emplace(subject, key);
    EXPECT_TRUE(fresh) << subject << " is " << testing::PrintToString(key) << " and "
                       << testing::PrintToString(other->second);
    EXPECT_TRUE(IsFitForAKey(subject)) << subject;
    EXPECT_EQ(subject, PlainSubjectOf(key));
  }
}

// --- Whatever clients send ---

rc::Gen<std::string> AnyName() {
  return rc::gen::element<std::string>("user", "ip", "header.x-a", "header.x", "a", "b", "a=b",
                                       "a&b", "~", "", "global", "a%3Db", "path.{id}", "a~");
}

rc::Gen<std::string> AnyValue() {
  const auto hostile = rc::gen::elementOf(std::string("&=%~{}\0ab25DF. :\xff", 18));
  const auto around_the_limit = rc::gen::mapcat(rc::gen::inRange(70, 125), [=](int length) {
    return rc::gen::container<std::string>(static_cast<std::size_t>(length),
                                           rc::gen::elementOf(std::string("a.b@%")));
  });
  const auto short_value = rc::gen::mapcat(rc::gen::inRange(0, 5), [=](int length) {
    return rc::gen::container<std::string>(static_cast<std::size_t>(length), hostile);
  });
  const auto plain = rc::gen::mapcat(rc::gen::inRange(70, 125), [](int length) {
    return rc::gen::just(std::string(static_cast<std::size_t>(length), 'a'));
  });
  return rc::gen::oneOf(short_value, short_value, around_the_limit, plain,
                        rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
                        rc::gen::element<std::string>("a=b", "&b=", "a&b=c", "%26", "~", "global"));
}

rc::Gen<Part> AnyPart() {
  return rc::gen::build<Part>(
      rc::gen::set(&Part::name, AnyName()), rc::gen::set(&Part::value, AnyValue()),
      rc::gen::set(&Part::hashed, rc::gen::weightedElement<bool>({{4, false}, {1, true}})));
}

rc::Gen<Parts> AnyParts() {
  return rc::gen::mapcat(rc::gen::inRange(0, 4), [](int count) {
    return rc::gen::container<Parts>(static_cast<std::size_t>(count), AnyPart());
  });
}

// A key that is nearly the same: what an attacker would try.
Parts NearlyTheSame(Parts parts) {
  if (parts.empty()) return {*AnyPart()};
  const std::size_t i = *rc::gen::inRange<std::size_t>(0, parts.size());
  Part& part = parts[i];
  Part& next = parts[(i + 1) % parts.size()];
  switch (*rc::gen::inRange(0, 9)) {
    case 0:  // Bytes that move over to the next part.
      if (!part.value.empty()) {
        next.value.insert(next.value.begin(), part.value.back());
        part.value.pop_back();
      }
      break;
    case 1:  // The next part as text within this one.
      part.value += "&" + next.name + "=" + next.value;
      if (parts.size() > 1)
        parts.erase(parts.begin() +
                    static_cast<std::ptrdiff_t>(i + 1) % static_cast<std::ptrdiff_t>(parts.size()));
      break;
    case 2:  // The end of the name in the value.
      part.value = "=" + part.value;
      break;
    case 3:
      part.name += "=" + part.value;
      part.value.clear();
      break;
    case 4:
      part.hashed = !part.hashed;
      break;
    case 5:
      part.value = EncodeForSubject(part.value);
      break;
    case 6:
      part.value = SubjectOf(parts);
      break;
    case 7:
      parts.push_back({*AnyName(), ""});
      break;
    default:
      std::swap(part, next);
  }
  return parts;
}

// Keys that one run of a property looks at.
constexpr int kKeysEach = 50;

RC_GTEST_PROP(Subject, IsAsItsDescriptionHasItAndFitForAKey, ()) {
  for (int i = 0; i < kKeysEach; ++i) {
    const Parts parts = *AnyParts();
    const std::string subject = SubjectOf(parts);
    RC_ASSERT(subject == PlainSubjectOf(parts));
    RC_ASSERT(subject == SubjectOf(parts));
    RC_ASSERT(IsFitForAKey(subject));
  }
}

RC_GTEST_PROP(Subject, DiffersForTwoKeysThatDiffer, ()) {
  for (int i = 0; i < kKeysEach; ++i) {
    const Parts one = *AnyParts();
    const Parts other = *AnyParts();
    RC_ASSERT((SubjectOf(one) == SubjectOf(other)) == (one == other));
  }
}

RC_GTEST_PROP(Subject, DiffersForTwoKeysThatAreNearlyTheSame, ()) {
  for (int i = 0; i < kKeysEach; ++i) {
    const Parts one = *AnyParts();
    const Parts other = NearlyTheSame(one);
    RC_ASSERT((SubjectOf(one) == SubjectOf(other)) == (one == other));
  }
}

}  // namespace
}  // namespace weir
