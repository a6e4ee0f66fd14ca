#include "net/protobuf/wire.h"

#include <rapidcheck.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::string_literals;

// What a reader makes of a message: "field:value" for every field it stops at.
std::vector<std::string> Read(std::string_view message, bool* broken = nullptr) {
  std::vector<std::string> fields;
  ProtobufReader reader(message);
  while (reader.Next()) {
    const std::string name = std::to_string(reader.field()) + ":";
    if (reader.type() == WireType::kBytes) {
      fields.push_back(name + std::string(reader.bytes()));
    } else if (reader.type() == WireType::kStartGroup) {
      fields.push_back(name + "group");
    } else {
      fields.push_back(name + std::to_string(reader.number()));
    }
  }
  if (broken != nullptr) *broken = reader.is_broken();
  return fields;
}

bool IsBroken(std::string_view message) {
  bool broken = false;
  Read(message, &broken);
  return broken;
}

std::string Written(const auto& write) {
  ByteBuffer out;
  ProtobufWriter writer(out);
  write(writer);
  return std::string(out.view());
}

TEST(ProtobufReader, ReadsNumbersAndTextsInTheirOrder) {
  EXPECT_EQ(Read("\x08\x96\x01\x12\x03"
                 "abc"
                 "\x08\x00"s),
            (std::vector<std::string>{"1:150", "2:abc", "1:0"}));
}

TEST(ProtobufReader, ReadsFixedNumbers) {
  EXPECT_EQ(Read("\x0d\x01\x02\x03\x04\x11\x01\x00\x00\x00\x00\x00\x00\x80"s),
            (std::vector<std::string>{"1:67305985", "2:9223372036854775809"}));
}

TEST(ProtobufReader, PassesOverGroupsWithAllThatIsInThem) {
  // 3 { 4: 7, 5 { 6: "x" } } 1: 1
  EXPECT_EQ(Read("\x1b\x20\x07\x2b\x32\x01x\x2c\x1c\x08\x01"s),
            (std::vector<std::string>{"3:group", "1:1"}));
}

TEST(ProtobufReader, TellsWhatIsNoMessage) {
  EXPECT_TRUE(IsBroken("\x08"s)) << "no value";
  EXPECT_TRUE(IsBroken("\x08\x80"s)) << "half a number";
  EXPECT_TRUE(IsBroken("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s)) << "too long a number";
  EXPECT_TRUE(
      IsBroken("\x12\x04"
               "abc"s))
      << "text that ends early";
  EXPECT_TRUE(IsBroken("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s)) << "a huge length";
  EXPECT_TRUE(IsBroken("\x00\x01"s)) << "field 0";
  EXPECT_TRUE(IsBroken("\x0e\x01"s)) << "type 6";
  EXPECT_TRUE(IsBroken("\x0f\x01"s)) << "type 7";
  EXPECT_TRUE(IsBroken("\x0c"s)) << "the end of no group";
  EXPECT_TRUE(IsBroken("\x1b\x24"s)) << "the end of another group";
  EXPECT_TRUE(IsBroken("\x1b\x20\x07"s)) << "a group without end";
  EXPECT_TRUE(IsBroken("\x88\x80\x80\x80\x80\x00\x01"s)) << "a tag of six bytes";
  EXPECT_TRUE(IsBroken(std::string(200, '\x1b'))) << "too many groups in each other";
  EXPECT_FALSE(IsBroken(""));
}

TEST(ProtobufReader, StopsAtWhatIsBrokenAndStaysThere) {
  const std::string message =
      "\x08\x01\x12\x05"
      "a"s;
  ProtobufReader reader(message);
  EXPECT_TRUE(reader.Next());
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.is_broken());
}

TEST(ProtobufWriter, LeavesOutWhatIsNothing) {
  EXPECT_EQ(Written([](ProtobufWriter& writer) {
              writer.Number(1, 0);
              writer.Bytes(2, "");
            }),
            "");
  EXPECT_EQ(Written([](ProtobufWriter& writer) {
              writer.WantedNumber(1, 0);
              writer.WantedBytes(2, "");
            }),
            "\x08\x00\x12\x00"s);
}

TEST(ProtobufWriter, WritesMessagesInMessagesOfAnyLength) {
  for (const std::size_t size : {0U, 1U, 127U, 128U, 300U, 16'383U, 16'384U, 100'000U}) {
    const std::string text(size, 'x');
    const std::string message = Written([&](ProtobufWriter& writer) {
      const auto outer = writer.Begin(1);
      const auto inner = writer.Begin(2);
      writer.WantedBytes(3, text);
      writer.End(inner);
      writer.Number(4, 5);
      writer.End(outer);
    });
    ProtobufReader outer(message);
    ASSERT_TRUE(outer.Next()) << size;
    ProtobufReader inner(outer.bytes());
    ASSERT_TRUE(inner.Next()) << size;
    EXPECT_EQ(Read(inner.bytes()), (std::vector<std::string>{"3:" + text})) << size;
    ASSERT_TRUE(inner.Next());
    EXPECT_EQ(inner.number(), 5U);
    EXPECT_FALSE(outer.Next());
    EXPECT_FALSE(outer.is_broken());
  }
}

TEST(ProtobufWriter, IsReadBack) {
  rc::check([](std::vector<std::pair<std::uint64_t, std::string>> values) {
    std::vector<std::string> expected;
    const std::string message = Written([&](ProtobufWriter& writer) {
      std::uint32_t field = 1;
      for (const auto& [number, text] : values) {
        expected.push_back(std::to_string(field) + ":" + std::to_string(number));
        writer.WantedNumber(field++, number);
        expected.push_back(std::to_string(field) + ":" + text);
        writer.WantedBytes(field++, text);
      }
    });
    RC_ASSERT(Read(message) == expected);
  });
}

TEST(IsUtf8, TakesWhatTheStandardDoes) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain text that is longer than a word"));
  EXPECT_TRUE(IsUtf8("K\xc3\xb6ln, \xe2\x82\xac, \xf0\x9f\x8c\x8a"));
  EXPECT_TRUE(IsUtf8("\xf4\x8f\xbf\xbf"));
  EXPECT_TRUE(IsUtf8("\0"s));
}

TEST(IsUtf8, TakesNothingElse) {
  for (const std::string_view wrong :
       {"\x80", "\xc3", "a\xff", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x8c", "12345678\xc3"}) {
    EXPECT_FALSE(IsUtf8(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace weir
