#include "policy/yaml_tree.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using YamlProblemKind = YamlProblem::Kind;

std::string Said(YamlPlace place) {
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

// The tree on one line: "{a@1:1=[x@2:3 'quoted'@2:6]@1:4}@1:1".
std::string Dump(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      text = "~";
      break;
    case YamlNode::Kind::kScalar:
      text = node.quoted ? "'" + node.text + "'" : node.text;
      break;
    case YamlNode::Kind::kList:
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : " ") + Dump(item);
      text = "[" + text + "]";
      break;
    case YamlNode::Kind::kMap:
      for (const YamlNode::Entry& entry : node.entries) {
        text += (text.empty() ? "" : " ") + entry.key + "@" + Said(entry.place) + "=" +
                Dump(entry.value);
      }
      text = "{" + text + "}";
      break;
  }
  return text + "@" + Said(node.place);
}

std::string TreeOf(std::string_view text) {
  const YamlReport report = ReadYaml(text);
  for (const YamlProblem& problem : report.problems) {
    ADD_FAILURE() << Said(problem.place) << " " << problem.message;
  }
  return report.root ? Dump(*report.root) : "none";
}

// "place kind" of every problem; see the order of the kinds.
std::vector<std::string> ProblemsOf(std::string_view text) {
  const char* const names[] = {"syntax",    "none",  "several", "tag",     "key",
                               "duplicate", "alias", "large",   "encoding"};
  const YamlReport report = ReadYaml(text);
  EXPECT_EQ(report.root.has_value(), report.problems.empty());
  std::vector<std::string> said;
  for (const YamlProblem& problem : report.problems) {
    EXPECT_FALSE(problem.message.empty());
    said.push_back(Said(problem.place) + " " + names[static_cast<std::size_t>(problem.kind)]);
  }
  return said;
}

std::string MessageOf(std::string_view text) {
  const YamlReport report = ReadYaml(text);
  return report.problems.empty() ? "none" : report.problems[0].message;
}

TEST(YamlTree, KnowsTheOrderAndPlacesOfKeysAndValues) {
  EXPECT_EQ(TreeOf("b: 1\na:  two words\n"), "{b@1:1=1@1:4 a@2:1=two words@2:5}@1:1");
  EXPECT_EQ(TreeOf("a:\n  b:\n    c: d\n"), "{a@1:1={b@2:3={c@3:5=d@3:8}@3:5}@2:3}@1:1");
}

TEST(YamlTree, KnowsThePlacesOfListItems) {
  EXPECT_EQ(TreeOf("a:\n  - x\n  - k: v\n    l: w\nb:\n- y\n"),
            "{a@1:1=[x@2:5 {k@3:5=v@3:8 l@4:5=w@4:8}@3:5]@2:3 b@5:1=[y@6:3]@6:1}@1:1");
}

TEST(YamlTree, KnowsPlacesInBrackets) {
  EXPECT_EQ(TreeOf("a: { k: v, l: [1, 2] }\n"),
            "{a@1:1={k@1:6=v@1:9 l@1:12=[1@1:16 2@1:19]@1:15}@1:4}@1:1");
  EXPECT_EQ(TreeOf("[a,\n b]"), "[a@1:2 b@2:2]@1:1");
}

TEST(YamlTree, TellsQuotedTextFromPlain) {
  EXPECT_EQ(TreeOf("- 'a'\n- \"b\"\n- c\n- 'null'\n- |\n  d\n- >-\n  e\n  f\n"),
            "['a'@1:3 'b'@2:3 c@3:3 'null'@4:3 'd\n'@5:3 'e f'@7:3]@1:1");
}

TEST(YamlTree, ReadsNothingAndTheWordsForItAsNull) {
  EXPECT_EQ(TreeOf("a: ~\nb: null\nc: Null\n"), "{a@1:1=~@1:4 b@2:1=~@2:4 c@3:1=~@3:4}@1:1");
  EXPECT_EQ(TreeOf("~"), "~@1:1");
}

TEST(YamlTree, PutsAnEmptyValueAtItsKeyAndAnEmptyItemAtItsDash) {
  EXPECT_EQ(TreeOf("a:\nb:\n\n# c\n\nc: 1\nd:"),
            "{a@1:1=~@1:1 b@2:1=~@2:1 c@6:1=1@6:4 d@7:1=~@7:1}@1:1");
  EXPECT_EQ(TreeOf("a:\n  -\n  # - x\n\n  - y\n  -   # z\n'null': z"),
            "{a@1:1=[~@2:3 y@5:5 ~@6:3]@2:3 null@7:1=z@7:9}@1:1");
  EXPECT_EQ(TreeOf("- -\n  - x\n-\n"), "[[~@1:3 x@2:5]@1:3 ~@3:1]@1:1");
  EXPECT_EQ(TreeOf("{a, b: , c: ~}"), "{a@1:2=~@1:2 b@1:5=~@1:5 c@1:10=~@1:13}@1:1");
}

TEST(YamlTree, FindsAKeyOrNothing) {
  const YamlReport report = ReadYaml("a: 1\nb: 2\n");
  ASSERT_TRUE(report.root.has_value());
  ASSERT_NE(report.root->Find("b"), nullptr);
  EXPECT_EQ(report.root->Find("b")->text, "2");
  EXPECT_EQ(report.root->Find("c"), nullptr);
}

TEST(YamlTree, CountsColumnsInCharacters) {
  EXPECT_EQ(TreeOf("ä: { ö: ü, € : \"🚦\" }"), "{ä@1:1={ö@1:6=ü@1:9 €@1:12='🚦'@1:16}@1:4}@1:1");
}

TEST(YamlTree, TakesAByteOrderMarkAndBothLineEnds) {
  EXPECT_EQ(TreeOf("\xEF\xBB\xBF"
                   "a: 1\r\nb:\r\n  - 2\r\n  - |\r\n    x\r\n    y\r\n"),
            "{a@1:1=1@1:4 b@2:1=[2@3:5 'x\ny\n'@4:5]@3:3}@1:1");
}

TEST(YamlTree, TakesTheMarksOfOneDocument) {
  EXPECT_EQ(TreeOf("---\na: 1\n...\n"), "{a@2:1=1@2:4}@2:1");
}

TEST(YamlTree, ReplacesAliasesByWhatTheyStandFor) {
  EXPECT_EQ(TreeOf("a: &x [1, {k: v}]\nb: *x\nc: &y text\nd: [*y, *x]\n"),
            "{a@1:1=[1@1:8 {k@1:12=v@1:15}@1:11]@1:4 "
            "b@2:1=[1@1:8 {k@1:12=v@1:15}@1:11]@2:4 c@3:1=text@3:4 "
            "d@4:1=[text@4:5 [1@1:8 {k@1:12=v@1:15}@1:11]@4:9]@4:4}@1:1");
}

TEST(YamlTree, ReplacesAliasesWithinWhatAnAliasStandsFor) {
  EXPECT_EQ(TreeOf("- &a 1\n- &b [*a, *a]\n- &c {k: *b}\n- *c\n- &a 2\n- *a\n- &n\n- *n\n"),
            "[1@1:3 [1@2:7 1@2:11]@2:3 {k@3:7=[1@2:7 1@2:11]@3:10}@3:3 "
            "{k@3:7=[1@2:7 1@2:11]@3:10}@4:3 2@5:3 2@6:3 ~@7:3 ~@8:3]@1:1");
}

TEST(YamlTree, SaysThatThereIsNoDocument) {
  for (const char* text : {"", "\n\n", "# only this\n", "---\n", "\xEF\xBB\xBF", "---\n...\n"}) {
    EXPECT_THAT(ProblemsOf(text), ElementsAre(HasSubstr("none"))) << text;
  }
}

TEST(YamlTree, RefusesASecondDocument) {
  EXPECT_THAT(ProblemsOf("a: 1\n---\nb: 2\n"), ElementsAre("2:1 several"));
  EXPECT_THAT(ProblemsOf("a: 1\n...\nb: 2\n"), ElementsAre("3:1 several"));
  EXPECT_THAT(ProblemsOf("a: 1\na: 1\n---\nb: 2\n"), ElementsAre("2:1 duplicate", "3:1 several"));
}

TEST(YamlTree, RefusesTags) {
  EXPECT_THAT(ProblemsOf("a: !foo 1\nb: !!python/object:os.system {}\nc: ! x\nd: !!str\n"
                         "e: !<tag:x> [1]\nf: &k ! 'x'\ng: 'x'\n"),
              ElementsAre("1:4 tag", "2:4 tag", "3:4 tag", "4:4 tag", "5:4 tag", "6:4 tag"));
}

TEST(YamlTree, RefusesKeysThatAreNoPlainText) {
  EXPECT_THAT(ProblemsOf("[a]: 1\n"), ElementsAre("1:1 key"));
  EXPECT_THAT(ProblemsOf("{a: b}: 1\n"), ElementsAre("1:1 key"));
  EXPECT_THAT(ProblemsOf("? - a\n  - b\n: 1\n"), ElementsAre("1:3 key"));
  EXPECT_THAT(ProblemsOf("~: 1\n"), ElementsAre("1:1 key"));
  EXPECT_THAT(ProblemsOf("a: 1\nnull: 1\n: 2\n"), ElementsAre("2:1 key", "3:1 key"));
  EXPECT_THAT(ProblemsOf("a: &x b\n*x : 1\n"), ElementsAre("2:1 key"));
  EXPECT_THAT(ProblemsOf("a:\n  &x b: 1\n  c: *x\n"), ElementsAre("2:3 key"));
  EXPECT_THAT(ProblemsOf("[&a x]: 1\nb: *a\n"), ElementsAre("1:1 key"));
}

TEST(YamlTree, RefusesMergeKeysAndSaysWhatToDo) {
  const char* text = "a: &x {k: 1}\nb:\n  <<: *x\n";
  EXPECT_THAT(ProblemsOf(text), ElementsAre("3:3 key"));
  EXPECT_THAT(MessageOf(text), HasSubstr("write the keys out"));
  EXPECT_EQ(TreeOf("'<<': 1"), "{<<@1:1=1@1:7}@1:1");
}

TEST(YamlTree, NamesTheFirstPlaceOfADuplicateKey) {
  const char* text = "a: 1\nb: {x: 1, x: 2}\na: 2\n'a': 3\n";
  EXPECT_THAT(ProblemsOf(text), ElementsAre("2:11 duplicate", "3:1 duplicate", "4:1 duplicate"));
  const YamlReport report = ReadYaml(text);
  EXPECT_THAT(report.problems[0].message, HasSubstr("\"x\" is there already at line 2, column 5"));
  EXPECT_THAT(report.problems[2].message, HasSubstr("\"a\" is there already at line 1, column 1"));
}

TEST(YamlTree, FindsDuplicatesInLargeMaps) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(ProblemsOf(text), IsEmpty());
  text += "k7: 1\nk500: 1\nk7: 1\n";
  EXPECT_THAT(ProblemsOf(text),
              ElementsAre("1001:1 duplicate", "1002:1 duplicate", "1003:1 duplicate"));
}

TEST(YamlTree, CollectsProblemsUpToABound) {
  EXPECT_THAT(ProblemsOf("a: !x 1\na: 2\n<<: 3\nb: [\n"),
              ElementsAre("1:4 tag", "2:1 duplicate", "3:1 key", "5:1 syntax"));
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "- !x " + std::to_string(i) + "\n";
  EXPECT_EQ(ReadYaml(text).problems.size(), kMaxYamlProblems);
}

TEST(YamlTree, RefusesAliasesToNothingAndToThemselves) {
  EXPECT_THAT(ProblemsOf("a: *x\n"), ElementsAre("1:4 alias"));
  EXPECT_THAT(ProblemsOf("a: &x [1, *x]\n"), ElementsAre("1:11 alias"));
  EXPECT_THAT(ProblemsOf("&x a: *x\n"), ElementsAre("1:1 key"));
  EXPECT_THAT(ProblemsOf("a: &x\n  b: *x\n"), ElementsAre("2:6 alias"));
}

TEST(YamlTree, PointsAtWhatIsNotYaml) {
  EXPECT_THAT(ProblemsOf("a: 1\nb 2\nc: 3\n"), ElementsAre("3:2 syntax"));
  EXPECT_THAT(ProblemsOf("a: b: c\n"), ElementsAre("1:5 syntax"));
  EXPECT_THAT(ProblemsOf("a: [1, 2\nb: 3\n"), ElementsAre(HasSubstr("syntax")));
  EXPECT_THAT(ProblemsOf("a: [1}\n"), ElementsAre("1:6 syntax"));
  EXPECT_THAT(ProblemsOf("a: @b\n"), ElementsAre("1:4 syntax"));
  EXPECT_THAT(ProblemsOf("a: 1\n b: 2\n"), ElementsAre("2:3 syntax"));
  EXPECT_THAT(ProblemsOf("a: 1\nb\n"), ElementsAre("2:1 syntax"));
  EXPECT_THAT(ProblemsOf("a: 1\nb"), ElementsAre("2:1 syntax"));
  EXPECT_THAT(ProblemsOf("- a\nb: 1\n"), ElementsAre("2:1 syntax"));
  EXPECT_THAT(ProblemsOf("[a]\n[b]\n"), ElementsAre("2:1 syntax"));
  EXPECT_THAT(ProblemsOf("a: \"\\q\"\n"), ElementsAre(HasSubstr("syntax")));
}

TEST(YamlTree, PointsAtTheQuoteThatIsNotClosed) {
  EXPECT_THAT(ProblemsOf("a: 'it''s'\nb: x # \"\nc: [\"d\", \"e]\nf: 1\n"),
              ElementsAre("3:10 syntax"));
  EXPECT_THAT(ProblemsOf("a: 'b\nc: d\n"), ElementsAre("1:4 syntax"));
  EXPECT_THAT(ProblemsOf("a: &x 'b\n"), ElementsAre("1:7 syntax"));
  EXPECT_THAT(MessageOf("a: 'b\nc: d\n"), HasSubstr("quote is not closed"));
}

TEST(YamlTree, AsksForSpacesWhereATabIndents) {
  for (const char* text : {"a:\n\tb: 1\n", "a:\n\t- b\n", "- a\n\t- b\n", "a:\n  b: 1\n\tc: 2\n",
                           "a:\n\tb\n", "a:\n  b: 1\n  \tc: 2\n"}) {
    EXPECT_THAT(ProblemsOf(text), ElementsAre(HasSubstr("syntax"))) << text;
    EXPECT_THAT(MessageOf(text), HasSubstr("use spaces")) << text;
  }
  EXPECT_EQ(TreeOf("a:\t1\t# x\nb: [\n\t2]\nc: |\n  x\n  \ty\n"),
            "{a@1:1=1@1:4 b@2:1=[2@3:2]@2:4 c@4:1='x\n\ty\n'@4:4}@1:1");
}

TEST(YamlTree, WantsAValueIndentedFurtherThanItsKey) {
  EXPECT_THAT(ProblemsOf("a:\nb\n"), ElementsAre("2:1 syntax"));
  EXPECT_THAT(ProblemsOf("a:\n  b:\n  [c]\n"), ElementsAre("3:3 syntax"));
  EXPECT_EQ(TreeOf("? a\n: b\n"), "{a@1:3=b@2:3}@1:1");
}

TEST(YamlTree, RefusesDirectivesWhichTheParserWouldSkip) {
  EXPECT_THAT(ProblemsOf("%YAML 1.2\n---\na: 1\n"), ElementsAre("1:1 syntax"));
  EXPECT_THAT(ProblemsOf("a: 1\n%b: 2\n"), ElementsAre("2:1 syntax"));
}

TEST(YamlTree, RefusesWhatIsNotUtf8) {
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80",
                          "\xF5\x80\x80\x80", "\xF0\x80\x80\x80", "\xE0\x80\x80", "\xFF"}) {
    EXPECT_THAT(ProblemsOf("a: 1\nä: " + std::string(bad)), ElementsAre("2:4 encoding"));
  }
  EXPECT_THAT(ProblemsOf(std::string("a\0: 1", 5)), ElementsAre("1:2 encoding"));
}

TEST(YamlTree, RefusesControlCharacters) {
  for (const char* bad : {"\x01", "\x04", "\x1B", "\x7F", "\xC2\x85", "\r"}) {
    EXPECT_THAT(ProblemsOf("a: x" + std::string(bad) + "y\n"), ElementsAre("1:5 encoding"));
  }
  EXPECT_THAT(MessageOf("a: \x1B"), HasSubstr("U+001B"));
  EXPECT_EQ(TreeOf("a: \"\\e\""), "{a@1:1='\x1B'@1:4}@1:1");
}

TEST(YamlTree, RefusesWhatIsBehindALongCommentRatherThanLeavingItOut) {
  std::string text = "a: 1\n";
  while (text.size() < 3 * kMaxYamlPieceBytes / 2) text += "# nothing to see here, move along\n";
  const YamlReport report = ReadYaml(text + "b: 2\n");
  ASSERT_EQ(report.problems.size(), 1U);
  EXPECT_EQ(report.problems[0].kind, YamlProblem::Kind::kTooLarge);
  EXPECT_FALSE(report.root);
}

}  // namespace
}  // namespace weir
