#include "net/resp/reply_reader.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/resp/writer.h"

namespace weir::resp {
namespace {

using ItemKind = ReplyItem::Kind;
using testing::ElementsAre;

struct ReadReplies {
  std::vector<std::string> items{};  // As Describe has them.
  std::string error{};
  std::size_t wants = 0;
};

std::string Describe(const ReplyItem& item) {
  std::string text = std::string(item.depth, '.');
  switch (item.kind) {
    case ItemKind::kSimple:
      text += "+" + std::string(item.text);
      break;
    case ItemKind::kError:
      text += "-" + std::string(item.text);
      break;
    case ItemKind::kInteger:
      text += std::to_string(item.integer);
      break;
    case ItemKind::kBulk:
      text += "'" + std::string(item.text) + "'";
      break;
    case ItemKind::kNull:
      text += "null";
      break;
    case ItemKind::kBoolean:
      text += item.integer == 1 ? "true" : "false";
      break;
    case ItemKind::kDouble:
      text += std::isnan(item.number) ? "nan" : std::to_string(item.number);
      break;
    case ItemKind::kBigNumber:
      text += "(" + std::string(item.text);
      break;
    case ItemKind::kVerbatim:
      text += "=" + std::string(item.text);
      break;
    case ItemKind::kArray:
      text += "array " + std::to_string(item.count);
      break;
    case ItemKind::kMap:
      text += "map " + std::to_string(item.count);
      break;
    case ItemKind::kSet:
      text += "set " + std::to_string(item.count);
      break;
    case ItemKind::kPush:
      text += "push " + std::to_string(item.count);
      break;
    case ItemKind::kAttribute:
      text += "attribute " + std::to_string(item.count);
      break;
  }
  return text + (item.ends_reply ? "!" : "");
}

ReadReplies RepliesInPieces(const std::string& text, std::size_t piece,
                            const ReplyBounds& bounds = {}) {
  ReplyReader reader(bounds);
  ReadReplies read;
  std::string input;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    input += text.substr(at, piece);
    while (true) {
      const ReplyReading reading = reader.Read(input);
      read.wants = reading.wants;
      if (reading.kind == ReplyReading::Kind::kIncomplete) break;
      if (reading.kind == ReplyReading::Kind::kMalformed) {
        read.error = reading.error;
        return read;
      }
      read.items.push_back(Describe(reading.item));
      input.erase(0, reading.used);
    }
  }
  return read;
}

ReadReplies AllReplies(const std::string& text, const ReplyBounds& bounds = {}) {
  return RepliesInPieces(text, text.size(), bounds);
}

TEST(ReplyReader, ReadsEverySimpleType) {
  EXPECT_THAT(
      AllReplies("+OK\r\n-ERR bad\r\n:-12\r\n:+5\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n"
                 "#t\r\n#f\r\n(3492890328409238509324850943850943825024385\r\n"
                 "!7\r\nERR x\r\n\r\n=8\r\ntxt:text\r\n")
          .items,
      ElementsAre("+OK!", "-ERR bad!", "-12!", "5!", "'hello'!", "''!", "null!", "null!", "null!",
                  "true!", "false!", "(3492890328409238509324850943850943825024385!", "-ERR x\r\n!",
                  "=txt:text!"));
}

TEST(ReplyReader, ReadsDoubles) {
  EXPECT_THAT(AllReplies(",1.5\r\n,-2\r\n,+3e2\r\n,inf\r\n,-inf\r\n,nan\r\n").items,
              ElementsAre("1.500000!", "-2.000000!", "300.000000!", "inf!", "-inf!", "nan!"));
}

TEST(ReplyReader, ReadsGroupsWithinGroups) {
  EXPECT_THAT(AllReplies("*2\r\n*1\r\n:1\r\n%1\r\n+k\r\n~2\r\n:2\r\n:3\r\n:4\r\n").items,
              ElementsAre("array 2", ".array 1", "..1", ".map 2", "..+k", "..set 2", "...2",
                          "...3!", "4!"));
  EXPECT_THAT(AllReplies("*0\r\n*2\r\n*0\r\n%0\r\n").items,
              ElementsAre("array 0!", "array 2", ".array 0", ".map 0!"));
}

TEST(ReplyReader, CountsNoAttributeAmongTheItems) {
  EXPECT_THAT(
      AllReplies("|1\r\n+ttl\r\n:3\r\n*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:2\r\n|0\r\n:3\r\n").items,
      ElementsAre("attribute 2", ".+ttl", ".3", "array 2", ".attribute 2", "..+a", "..array 1",
                  "...1", ".2", ".attribute 0", ".3!"));
}

TEST(ReplyReader, TellsPushesApart) {
  EXPECT_THAT(AllReplies(">2\r\n+message\r\n:1\r\n:2\r\n").items,
              ElementsAre("push 2", ".+message", ".1!", "2!"));
  EXPECT_EQ(AllReplies("*1\r\n>1\r\n:1\r\n").error, "a push within a reply");
}

TEST(ReplyReader, RefusesStreamedTypes) {
  for (const char* streamed : {"$?\r\n", "*?\r\n", "%?\r\n", ";4\r\n", ".\r\n"}) {
    EXPECT_EQ(AllReplies(streamed).error, "streamed types are not supported") << streamed;
  }
}

TEST(ReplyReader, RefusesWhatIsNoReply) {
  for (const char* bad : {"x",
                          "HTTP/1.1 400\r\n",
                          ":\r\n",
                          ":1x\r\n",
                          ":+-1\r\n",
                          ":9223372036854775808\r\n",
                          "$-2\r\n",
                          "$x\r\n",
                          "*-2\r\n",
                          "%-1\r\n",
                          "#x\r\n",
                          "_x\r\n",
                          ",\r\n",
                          ",1x\r\n",
                          ",infinity\r\n",
                          "(12a\r\n",
                          "(\r\n",
                          "=3\r\ntxt\r\n",
                          "=4\r\ntext\r\n",
                          "$1\r\nab\r\n",
                          "+a\rb\r\n",
                          "+a\n",
                          "\r\n"}) {
    EXPECT_NE(AllReplies(bad).error, "") << bad;
    EXPECT_TRUE(AllReplies(bad).items.empty()) << bad;
  }
}

TEST(ReplyReader, RefusesTooMuchAsSoonAsItIsDeclared) {
  const ReplyBounds bounds{.depth = 2, .items = 4, .bytes = 10};
  EXPECT_NE(AllReplies("$11\r\n", bounds).error, "");
  EXPECT_EQ(AllReplies("$10\r\n", bounds).error, "");
  EXPECT_NE(AllReplies("*5\r\n", bounds).error, "");
  EXPECT_NE(AllReplies("%3\r\n", bounds).error, "");
  EXPECT_NE(AllReplies("*9223372036854775807\r\n", bounds).error, "");
  EXPECT_NE(AllReplies("%9223372036854775807\r\n", bounds).error, "");
  EXPECT_EQ(AllReplies("*4\r\n", bounds).error, "");
  EXPECT_NE(AllReplies("*2\r\n*3\r\n", bounds).error, "");  // All depths together.
  EXPECT_NE(AllReplies("*1\r\n*1\r\n*1\r\n", bounds).error, "");
  EXPECT_NE(AllReplies("+" + std::string(100, 'x'), bounds).error, "");
  EXPECT_NE(AllReplies(":" + std::string(100, '1')).error, "");
  // The next reply may have as many again.
  EXPECT_EQ(AllReplies("*3\r\n:1\r\n:2\r\n:3\r\n*3\r\n:1\r\n:2\r\n:3\r\n", bounds).error, "");
  std::string attributes;
  for (int i = 0; i < 10; ++i) attributes += "|0\r\n";
  EXPECT_NE(AllReplies(attributes, bounds).error, "");
}

TEST(ReplyReader, SaysHowManyBytesAreMissing) {
  EXPECT_EQ(AllReplies("$1000\r\nx").wants, 7U + 1000 + 2);
  EXPECT_EQ(AllReplies("+O").wants, 3U);
}

TEST(ReplyReader, ReadsTheSameHoweverTheBytesArePutTogether) {
  const std::string text =
      "*2\r\n*1\r\n:1\r\n%1\r\n+k\r\n~2\r\n:2\r\n:3\r\n$12\r\nhello\r\nworld\r\n,1.5\r\n|1\r\n+"
      "a\r\n"
      "_\r\n=8\r\ntxt:text\r\n>1\r\n(12\r\n-ERR x\r\n:x\r\n";
  const ReadReplies whole = AllReplies(text);
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    const ReadReplies read = RepliesInPieces(text, piece);
    EXPECT_EQ(read.items, whole.items) << piece;
    EXPECT_EQ(read.error, whole.error) << piece;
  }
}

std::string Written(Version version) {
  ByteBuffer out;
  ReplyWriter writer(out, version);
  writer.Simple("fine\r\nand\tgood");
  writer.Error("ERR no\ngood");
  writer.Integer(std::numeric_limits<std::int64_t>::min());
  writer.Integer(99);
  writer.Bulk("a\r\nb");
  writer.Null();
  writer.Boolean(true);
  writer.Double(0.1);
  writer.Double(-std::numeric_limits<double>::infinity());
  writer.Map(1);
  writer.Bulk("");
  writer.Set(1);
  writer.Push(0);
  return std::string(out.view());
}

TEST(ReplyWriter, WritesEveryTypeOfResp3) {
  EXPECT_EQ(Written(Version::kResp3),
            "+fine  and good\r\n-ERR no good\r\n:-9223372036854775808\r\n:99\r\n$4\r\na\r\nb\r\n"
            "_\r\n#t\r\n,0.1\r\n,-inf\r\n%1\r\n$0\r\n\r\n~1\r\n>0\r\n");
}

TEST(ReplyWriter, SpeaksOldWordsToThoseWhoKnowNoOthers) {
  EXPECT_EQ(Written(Version::kResp2),
            "+fine  and good\r\n-ERR no good\r\n:-9223372036854775808\r\n:99\r\n$4\r\na\r\nb\r\n"
            "$-1\r\n:1\r\n$3\r\n0.1\r\n$4\r\n-inf\r\n*2\r\n$0\r\n\r\n*1\r\n*0\r\n");
}

TEST(PutDecimal, WritesEveryNumber) {
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{9}, std::int64_t{10}, std::int64_t{99}, std::int64_t{100},
        std::int64_t{-1}, std::int64_t{-10}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    char digits[kMostDecimalBytes];
    EXPECT_EQ(std::string(digits, PutDecimal(digits, number)), std::to_string(number));
  }
}

}  // namespace
}  // namespace weir::resp
