#include "net/resp/command_reader.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "net/byte_buffer.h"
#include "net/resp/writer.h"

namespace weir::resp {
namespace {

using CommandKind = CommandReading::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

struct ReadCommands {
  std::vector<std::vector<std::string>> commands{};
  std::string error{};
  CommandKind end = CommandKind::kIncomplete;
  std::size_t wants = 0;
};

// All commands of a text that comes in pieces of this many bytes.
ReadCommands CommandsInPieces(const std::string& text, std::size_t piece,
                              const CommandBounds& bounds = {}) {
  CommandReader reader;
  std::vector<std::string_view> room(bounds.arguments);
  ReadCommands read;
  std::string input;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    input += text.substr(at, piece);
    while (true) {
      const CommandReading reading = reader.Read(input, room, bounds);
      read.end = reading.kind;
      read.wants = reading.wants;
      if (reading.kind == CommandKind::kIncomplete) break;
      if (reading.kind != CommandKind::kCommand) {
        read.error = ErrorText(reading);
        return read;
      }
      if (reading.arguments > 0) {
        read.commands.emplace_back(room.begin(),
                                   room.begin() + static_cast<std::ptrdiff_t>(reading.arguments));
      }
      input.erase(0, reading.used);
    }
  }
  return read;
}

ReadCommands AllCommands(const std::string& text, const CommandBounds& bounds = {}) {
  return CommandsInPieces(text, text.size(), bounds);
}

TEST(CommandReader, ReadsAnArrayOfTexts) {
  const ReadCommands read = AllCommands("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n");
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre("ECHO", "hello")));
}

TEST(CommandReader, ReadsTextsWithAnythingInThem) {
  const ReadCommands read = AllCommands(std::string("*2\r\n$0\r\n\r\n$6\r\n\r\n\0*$1\r\n", 22));
  EXPECT_THAT(read.commands, ElementsAre(ElementsAre("", std::string("\r\n\0*$1", 6))));
}

TEST(CommandReader, ReadsOneCommandAfterTheOther) {
  const ReadCommands read = AllCommands("*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n");
  EXPECT_THAT(read.commands,
              ElementsAre(ElementsAre("PING"), ElementsAre("PING"), ElementsAre("QUIT")));
}

TEST(CommandReader, PassesOverEmptyCommands) {
  EXPECT_THAT(AllCommands("*0\r\n*-1\r\n\r\n  \r\n\nPING\r\n").commands,
              ElementsAre(ElementsAre("PING")));
}

TEST(CommandReader, ReadsLinesOfWords) {
  EXPECT_THAT(AllCommands("  ECHO \t hello  \r\n").commands,
              ElementsAre(ElementsAre("ECHO", "hello")));
  EXPECT_THAT(AllCommands("ECHO hello\n").commands, ElementsAre(ElementsAre("ECHO", "hello")));
}

TEST(CommandReader, KnowsTheQuotesOfRedis) {
  EXPECT_THAT(AllCommands(R"(SET "a b" 'c d' "" '')"
                          "\r\n")
                  .commands,
              ElementsAre(ElementsAre("SET", "a b", "c d", "", "")));
  EXPECT_THAT(AllCommands(R"(ECHO "\x41\x7a\xZZ\n\r\t\b\a\"\\\q")"
                          "\r\n")
                  .commands,
              ElementsAre(ElementsAre("ECHO", "AzxZZ\n\r\t\b\a\"\\q")));
  EXPECT_THAT(AllCommands(R"(ECHO 'it\'s \n')"
                          "\r\n")
                  .commands,
              ElementsAre(ElementsAre("ECHO", "it's \\n")));
}

TEST(CommandReader, RefusesQuotesWithoutAnEnd) {
  for (const char* line : {"ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"a\"b\r\n", "ECHO \"a\\\r\n"}) {
    EXPECT_EQ(AllCommands(line).error, "Protocol error: unbalanced quotes in request") << line;
  }
}

TEST(CommandReader, SaysWhatIsWrongInTheWordsOfRedis) {
  const std::string count = "Protocol error: invalid multibulk length";
  for (const char* bad :
       {"*x\r\n", "*\r\n", "*1x\r\n", "*01\r\n", "*1\rx", "*99999999999\r\n", "*+1\r\n", "*1\n"}) {
    EXPECT_EQ(AllCommands(bad).error, count) << bad;
  }
  const std::string length = "Protocol error: invalid bulk length";
  for (const char* bad : {"$x\r\n", "$-1\r\n", "$\r\n", "$05\r\n", "$99999999999\r\n", "$4\n"}) {
    EXPECT_EQ(AllCommands("*1\r\n" + std::string(bad)).error, length) << bad;
  }
  EXPECT_EQ(AllCommands("*1\r\nPING\r\n").error, "Protocol error: expected '$', got 'P'");
  EXPECT_EQ(AllCommands("*1\r\n\r\n").error, "Protocol error: expected '$', got ' '");
  for (const char* bad : {"#4\r\nPING\r\n", "#11\r\nCL.THROTTLE\r\n"}) {
    EXPECT_EQ(AllCommands("*1\r\n" + std::string(bad)).error,
              "Protocol error: expected '$', got '#'");
  }
  EXPECT_EQ(AllCommands("*1\r\n$4\r\nPINGxx").error,
            "Protocol error: an argument is not followed by a line end");
}

// The number that a text begins with, as the rules have it: digits without a zero in front, and a
// line end.
std::optional<std::size_t> NumberAt(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || !text.substr(digits).starts_with("\r\n")) return std::nullopt;
  if (text[0] == '0' && digits > 1) return std::nullopt;
  return std::stoul(std::string(text.substr(0, digits)));
}

// Short headers are read four bytes at a time: no four bytes may be taken for what they are not.
TEST(CommandReader, TakesNothingElseForAShortNumber) {
  using namespace std::string_view_literals;
  constexpr std::string_view kBytes = "0159/:\r\n\x0c\x0e\x09\x0b-$*a\0\x80\xff"sv;
  std::string number(4, ' ');
  for (const char first : kBytes) {
    for (const char second : kBytes) {
      for (const char third : kBytes) {
        for (const char fourth : kBytes) {
          number = {first, second, third, fourth};
          const std::optional<std::size_t> expected = NumberAt(number);
          const std::size_t digits = expected ? number.find('\r') : 0;

          // One byte more of a text that is longer than that, unless it is empty.
          const ReadCommands length = AllCommands("*1\r\n$" + number + "x");
          const bool empty = expected == 0U;
          const std::string wrong =
              empty ? "Protocol error: an argument is not followed by a line end"
                    : "Protocol error: invalid bulk length";
          ASSERT_EQ(length.error, expected && !empty ? "" : wrong)
              << testing::PrintToString(number);
          if (expected && !empty) {
            ASSERT_EQ(length.wants, 4 + 1 + digits + 2 + *expected + 2);
          }

          // Only the first of the commands that these may be.
          std::string counted = "*" + number + "x";
          std::array<std::string_view, 200> room;
          const CommandReading count = CommandReader().Read(counted, room, {});
          const bool negative = first == '-' && NumberAt(number.substr(1)).has_value();
          const bool is_count = count.problem != CommandReading::Problem::kCount;
          ASSERT_EQ(is_count, expected || negative) << testing::PrintToString(number);
        }
      }
    }
  }
}

TEST(CommandReader, ReadsEveryShortCountAndLength) {
  for (std::size_t number = 1; number <= 120; ++number) {
    const std::vector<std::string> command(number, std::string(number, 'x'));
    ByteBuffer bytes;
    WriteCommand(bytes, std::vector<std::string_view>(command.begin(), command.end()));
    EXPECT_THAT(AllCommands(std::string(bytes.view())).commands, ElementsAre(command)) << number;
  }
}

TEST(CommandReader, RefusesTooMuchAsSoonAsItIsDeclared) {
  const CommandBounds bounds{.arguments = 8, .bytes = 100};
  EXPECT_EQ(AllCommands("*9\r\n", bounds).end, CommandKind::kTooLarge);
  EXPECT_EQ(AllCommands("*8\r\n$100\r\n", bounds).end, CommandKind::kTooLarge);
  // 4 of the header, 5 of the length, 2 behind the text: 89 is the most.
  EXPECT_EQ(AllCommands("*1\r\n$90\r\n", bounds).end, CommandKind::kTooLarge);
  EXPECT_EQ(AllCommands("*1\r\n$89\r\n", bounds).end, CommandKind::kIncomplete);
  EXPECT_EQ(AllCommands("*1\r\n$89\r\n" + std::string(89, 'x') + "\r\n", bounds).commands.size(),
            1U);
  // What the other arguments need at least counts, too.
  EXPECT_EQ(AllCommands("*8\r\n$48\r\n", bounds).end, CommandKind::kTooLarge);
  EXPECT_EQ(AllCommands("*8\r\n$47\r\n", bounds).end, CommandKind::kIncomplete);
  EXPECT_EQ(AllCommands("*8\r\n", {.arguments = 8, .bytes = 51}).end, CommandKind::kTooLarge);
}

TEST(CommandReader, RefusesLinesThatAreTooLong) {
  const CommandBounds bounds{.arguments = 4, .bytes = 20};
  EXPECT_EQ(AllCommands(std::string(19, 'x'), bounds).end, CommandKind::kIncomplete);
  EXPECT_EQ(AllCommands(std::string(20, 'x'), bounds).end, CommandKind::kTooLarge);
  EXPECT_EQ(AllCommands(std::string(20, 'x') + "\n", bounds).end, CommandKind::kTooLarge);
  EXPECT_EQ(AllCommands(std::string(19, 'x') + "\n", bounds).commands.size(), 1U);
  EXPECT_EQ(AllCommands("a b c d e\n", bounds).end, CommandKind::kTooLarge);
}

TEST(CommandReader, SaysHowManyBytesACommandWillHave) {
  EXPECT_EQ(AllCommands("*2\r\n$4\r\nPI").wants, 4U + 10 + 6);
  EXPECT_EQ(AllCommands("*1\r\n$1000\r\nx").wants, 4U + 7 + 1000 + 2);
}

TEST(CommandReader, DoesNotLookAgainAtWhatItKnows) {
  CommandReader reader;
  std::array<std::string_view, 8> room;
  std::string input = "*2\r\n$3\r\nabc\r\n$100\r\n";
  EXPECT_EQ(reader.Read(input, room, {}).kind, CommandKind::kIncomplete);
  // Neither the count nor the length is read again before there are enough bytes.
  std::string spoilt = std::string(input.size(), '?') + std::string(99, 'y');
  EXPECT_EQ(reader.Read(spoilt, room, {}).kind, CommandKind::kIncomplete);
  input += std::string(100, 'y') + "\r\n";
  const CommandReading reading = reader.Read(input, room, {});
  EXPECT_EQ(reading.kind, CommandKind::kCommand);
  EXPECT_EQ(reading.used, input.size());
  EXPECT_EQ(room[0], "abc");
  EXPECT_EQ(room[1].size(), 100U);
}

TEST(CommandReader, AsksForRoomRatherThanWritingPastIt) {
  CommandReader reader;
  std::array<std::string_view, 8> room;
  const CommandBounds bounds{.arguments = 8};
  std::string array = "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n";
  EXPECT_EQ(reader.Read(array, std::span(room).first(2), bounds).kind, CommandKind::kNoRoom);
  EXPECT_EQ(reader.Read(array, room, bounds).arguments, 3U);
  std::string line = "\"a\\n\" b\r\n";
  EXPECT_EQ(reader.Read(line, std::span(room).first(7), bounds).kind, CommandKind::kNoRoom);
  EXPECT_EQ(reader.Read(line, room, bounds).arguments, 2U);
  EXPECT_EQ(room[0], "a\n");
}

TEST(CommandReader, HoldsACommandToBoundsThatBecameNarrower) {
  CommandReader reader;
  std::array<std::string_view, 8> room;
  std::string input = "*2\r\n$3\r\nabc\r\n$100\r\n";
  EXPECT_EQ(reader.Read(input, room, {}).kind, CommandKind::kIncomplete);
  input += std::string(102, 'y');
  EXPECT_EQ(reader.Read(input, room, {.bytes = 8}).kind, CommandKind::kTooLarge);
}

TEST(CommandReader, ReadsTheSameHoweverTheBytesArePutTogether) {
  const std::string text =
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nhello\r\nworld\r\nPING \"x\\x20y\"\r\n*0\r\n\r\n"
      "*1\r\n$4\r\nQUIT\r\n*1\r\n$x\r\n";
  const ReadCommands whole = AllCommands(text);
  EXPECT_EQ(whole.commands.size(), 3U);
  for (std::size_t piece = 1; piece < text.size(); ++piece) {
    const ReadCommands read = CommandsInPieces(text, piece);
    EXPECT_EQ(read.commands, whole.commands) << piece;
    EXPECT_EQ(read.error, whole.error) << piece;
  }
}

RC_GTEST_PROP(CommandReader, ReadsBackWhatTheWriterWrote,
              (const std::vector<std::vector<std::string>>& commands)) {
  ByteBuffer bytes;
  std::vector<std::vector<std::string>> expected;
  for (const std::vector<std::string>& command : commands) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    WriteCommand(bytes, words);
    if (!command.empty()) expected.push_back(command);
  }
  const auto piece = *rc::gen::inRange<std::size_t>(1, bytes.size() + 2);
  const ReadCommands read = CommandsInPieces(std::string(bytes.view()), piece);
  RC_ASSERT(read.error.empty());
  RC_ASSERT(read.commands == expected);
}

}  // namespace
}  // namespace weir::resp
