// Texts made to cost much: each must end soon, with a tree or with problems.
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/yaml_tree.h"

namespace weir {
namespace {

using testing::HasSubstr;
using YamlProblemKind = YamlProblem::Kind;

constexpr std::size_t kMega = std::size_t{1} << 20;

std::string Repeated(std::string_view piece, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

// Processor time, so that a busy machine does not fail the test.
struct Timed {
  YamlReport report;
  double seconds;
};
Timed ReadTimed(std::string_view text) {
  const std::clock_t start = std::clock();
  YamlReport report = ReadYaml(text);
  return {std::move(report), static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC};
}

// Sanitizers slow everything down; the bound is there to notice quadratic time.
constexpr double kSoon = 4;

YamlProblemKind OnlyProblemOf(const YamlReport& report) {
  EXPECT_EQ(report.problems.size(), 1U);
  return report.problems.empty() ? YamlProblemKind::kNoDocument : report.problems[0].kind;
}

TEST(YamlHostile, RefusesDeepNestingSoon) {
  std::string by_indentation;
  std::string by_dashes;
  for (std::size_t i = 0; i < 1400; ++i) {
    by_indentation += std::string(i, ' ') + "a:\n";
    by_dashes += std::string(i, ' ') + "-\n";
  }
  for (const std::string& text :
       {Repeated("[", kMega), Repeated("{", kMega), Repeated("- ", kMega), Repeated("? ", kMega),
        Repeated("[{a: ", kMega), Repeated("[\n", kMega), Repeated("[? ", kMega),
        "a: " + Repeated("[", 4 * kMega), by_indentation, by_dashes}) {
    const Timed timed = ReadTimed(text);
    EXPECT_LT(timed.seconds, kSoon) << text.substr(0, 10);
    EXPECT_EQ(OnlyProblemOf(timed.report), YamlProblemKind::kTooLarge) << text.substr(0, 10);
  }
}

TEST(YamlHostile, AllowsExactlyTheLevelsOfTheBound) {
  const std::size_t levels = kMaxYamlDepth;
  EXPECT_TRUE(ReadYaml(std::string(levels, '[') + std::string(levels, ']')).root.has_value());
  EXPECT_FALSE(
      ReadYaml(std::string(levels + 1, '[') + std::string(levels + 1, ']')).root.has_value());
  const std::string half = std::string(levels / 2, '[') + std::string(levels / 2, ']');
  EXPECT_TRUE(ReadYaml("- &a " + std::string(levels / 2 - 1, '[') +
                       std::string(levels / 2 - 1, ']') + "\n- " + std::string(levels / 2, '[') +
                       "*a" + std::string(levels / 2, ']'))
                  .root.has_value());
  EXPECT_EQ(OnlyProblemOf(ReadYaml("- &a " + half + "\n- " + std::string(levels / 2, '[') + "*a" +
                                   std::string(levels / 2, ']'))),
            YamlProblemKind::kTooLarge);
}

TEST(YamlHostile, EndsSoonWhateverIsRepeated) {
  const std::vector<std::string> pieces = {
      "- ",      ": ",      "&a ",        "*a ",      "! ",     "!",       "%TAG a b\n",
      "---\n",   "...\n",   "- \n",       "a:\n",     "\"x\" ", "'",       "\"",
      "''",      "x ",      "\t",         "\n",       " ",      "#",       "#\n",
      "a\n b\n", "a\n\n\n", ", ",         "[],",      "{},",    "- - a\n", "\xC3\xA4 ",
      "|\n",     ">\n",     "- |\n  x\n", "- &a b\n", "? a\n",  "\r\n",    "a: b\n"};
  for (const std::string& piece : pieces) {
    EXPECT_LT(ReadTimed(Repeated(piece, kMega / 2)).seconds, kSoon) << piece;
    for (const char* start : {"[", "{", "a: |\n  ", "\"", "a: ", "- >\n\n "}) {
      const Timed timed = ReadTimed(start + Repeated(piece, kMega / 16));
      EXPECT_LT(timed.seconds, kSoon) << start << piece;
    }
  }
}

// The parser does not get past this comma: it would find one empty document after the other.
TEST(YamlHostile, StopsAtTheSecondDocument) {
  const Timed timed = ReadTimed("\n...\n, a\n");
  EXPECT_EQ(OnlyProblemOf(timed.report), YamlProblemKind::kSeveral);
  EXPECT_LT(timed.seconds, 0.05);
}

TEST(YamlHostile, ReadsLongListsOnOneLine) {
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i) text += "\xC3\xA4, ";
  const Timed timed = ReadTimed(text + "]");
  EXPECT_LT(timed.seconds, kSoon);
  ASSERT_TRUE(timed.report.root.has_value());
  EXPECT_EQ(timed.report.root->items.size(), 300'000U);
  EXPECT_EQ(timed.report.root->items.back().place.column, 2 + 299'999 * 3);
}

TEST(YamlHostile, RefusesAPieceThatIsTooLong) {
  const Timed timed = ReadTimed("a: 1\nb:\n  - [" + Repeated("x, ", 8 * kMega) + "]\n");
  EXPECT_LT(timed.seconds, kSoon);
  EXPECT_EQ(OnlyProblemOf(timed.report), YamlProblemKind::kTooLarge);
  EXPECT_EQ(timed.report.problems[0].place.line, 3);  // The last thing before it: the list.
  EXPECT_EQ(timed.report.problems[0].place.column, 3);
}

TEST(YamlHostile, RefusesATextThatIsTooLong) {
  EXPECT_EQ(OnlyProblemOf(ReadTimed(std::string(kMaxYamlBytes + 1, '#')).report),
            YamlProblemKind::kTooLarge);
}

TEST(YamlHostile, RefusesABombOfAliasesWithoutBuildingIt) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
    for (int j = 1; j < 10; ++j) text += ", " + alias;
    text += "]\n";
  }
  const Timed timed = ReadTimed(text);
  EXPECT_EQ(OnlyProblemOf(timed.report), YamlProblemKind::kAlias);
  EXPECT_THAT(timed.report.problems[0].message, HasSubstr("aliases"));
  EXPECT_LT(timed.seconds, 0.05);
}

TEST(YamlHostile, RefusesALongTextRepeatedByAliases) {
  std::string text = "- &a " + std::string(kMega, 'x') + "\n";
  for (int i = 0; i < 1000; ++i) text += "- *a\n";
  EXPECT_EQ(OnlyProblemOf(ReadTimed(text).report), YamlProblemKind::kAlias);
}

// A document with something of everything.
constexpr std::string_view kSample =
    "# head\n---\na: &x { k: 'v', \"l\\u00e4\": [1, 2] }  # c\nb:\n  - *x\n  - |+\n    text\n\n"
    "  - >-\n    folded\n    more\n  -\n  - plain\n    goes on\nc: ~\n? d\n: e\nf: \"\xC3\xA4\"\r\n"
    "g: !tag x\ng: 2\n<<: *x\n...\n";

TEST(YamlHostile, EndsOnEveryTruncation) {
  for (std::size_t size = 0; size <= kSample.size(); ++size) {
    const YamlReport report = ReadYaml(kSample.substr(0, size));
    EXPECT_EQ(report.root.has_value(), report.problems.empty()) << size;
  }
}

TEST(YamlHostile, EndsOnTextsChangedAtRandom) {
  constexpr std::string_view kBytes = "[]{},:?-&*!|>'\"%#@` \t\n\r~<ax0\\.\xC3\xA4";
  std::mt19937 random(20240601);
  for (int round = 0; round < 20'000; ++round) {
    std::string text(kSample.substr(0, random() % kSample.size() + 1));
    for (std::size_t i = random() % 8 + 1; i > 0; --i) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, random() % 4);
        text += 'x';
      } else {
        text.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
    }
    const YamlReport report = ReadYaml(text);
    EXPECT_EQ(report.root.has_value(), report.problems.empty()) << text;
  }
}

}  // namespace
}  // namespace weir
