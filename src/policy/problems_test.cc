#include "policy/problems.h"

#include <fstream>
#include <set>

#include <gtest/gtest.h>

namespace weir {
namespace {

YamlNode Tree(std::string_view text) {
  YamlReport report = ReadYaml(text);
  EXPECT_TRUE(report.root.has_value());
  return report.root ? *std::move(report.root) : YamlNode{};
}

TEST(ProblemCodes, AreInTheTableOnceAndAscending) {
  const auto codes = AllProblemCodes();
  ASSERT_FALSE(codes.empty());
  for (std::size_t i = 1; i < codes.size(); ++i) {
    EXPECT_LT(codes[i - 1].code, codes[i].code) << NameOf(codes[i].code);
  }
  // One by one, so that a code that is added here and forgotten there is noticed.
  const std::set<std::string> names = [&] {
    std::set<std::string> all;
    for (const CodeMeaning& code : codes) all.insert(NameOf(code.code));
    return all;
  }();
  for (int i = 1; i <= 18; ++i) {
    EXPECT_TRUE(names.contains("E" + std::to_string(1000 + i).substr(1))) << i;
  }
  for (int i = 101; i <= 127; ++i) EXPECT_TRUE(names.contains("E" + std::to_string(i))) << i;
  for (int i = 101; i <= 113; ++i) EXPECT_TRUE(names.contains("W" + std::to_string(i))) << i;
  EXPECT_EQ(names.size(), 18U + 28U + 13U);
}

TEST(ProblemCodes, HaveASentenceOfMeaningAndOneOfRemedy) {
  for (const CodeMeaning& code : AllProblemCodes()) {
    for (const std::string_view text : {code.meaning, code.remedy}) {
      ASSERT_FALSE(text.empty()) << NameOf(code.code);
      EXPECT_TRUE(text.ends_with('.')) << text;
      EXPECT_EQ(text.find("  "), std::string_view::npos) << text;
      EXPECT_EQ(text.find('|'), std::string_view::npos) << text << ": would break the table";
    }
  }
}

TEST(ProblemCodes, AreNamedByWhatTheyAre) {
  EXPECT_EQ(NameOf(ProblemCode::kNotYaml), "E001");
  EXPECT_EQ(NameOf(ProblemCode::kUnknownKey), "E010");
  EXPECT_EQ(NameOf(ProblemCode::kBadLimit), "E101");
  EXPECT_EQ(NameOf(ProblemCode::kBoundaryBurst), "W101");
  EXPECT_EQ(NameOf(ProblemCode::kIdleSetting), "W113");
}

// | E001 | The text is not YAML. | Mend ... |
std::string RowOf(const CodeMeaning& code) {
  return "| " + NameOf(code.code) + " | " + std::string(code.meaning) + " | " +
         std::string(code.remedy) + " |";
}

TEST(ProblemCodes, AreTheRowsOfTheDocument) {
  // Beside this file, so that the document need not be copied anywhere.
  const std::string here = __FILE__;
  const std::string path =
      here.substr(0, here.find("src/policy/problems_test.cc")) + "docs/policy-problems.md";
  std::ifstream file(path);
  ASSERT_TRUE(file.is_open()) << path;
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| E") || line.starts_with("| W")) rows.push_back(line);
  }
  std::vector<std::string> expected;
  for (const CodeMeaning& code : AllProblemCodes()) expected.push_back(RowOf(code));
  std::string all;
  for (const std::string& row : expected) all += row + "\n";
  EXPECT_EQ(rows, expected) << "The rows should be:\n" << all;
}

TEST(Where, IsWrittenAsAPath) {
  const Where top;
  const Where rules(top, "rules");
  const Where rule(rules, std::size_t{2});
  const Where match(rule, "match");
  const Where path(match, "path");
  EXPECT_EQ(top.ToString(), "");
  EXPECT_EQ(rules.ToString(), "rules");
  EXPECT_EQ(rule.ToString(), "rules[2]");
  EXPECT_EQ(path.ToString(), "rules[2].match.path");
}

TEST(Where, FindsValuesAndKeys) {
  const YamlNode tree = Tree("rules:\n  - name: a\n    match: { path: /x }\n");
  const Where top;
  const Where rules(top, "rules");
  const Where rule(rules, std::size_t{0});
  const Where name(rule, "name");
  const Where match(rule, "match");
  const Where path(match, "path");
  const auto value = Where::Point::kValue;
  const auto key = Where::Point::kKey;
  EXPECT_EQ(name.Find(tree, value), (YamlPlace{2, 11}));
  EXPECT_EQ(name.Find(tree, key), (YamlPlace{2, 5}));
  EXPECT_EQ(path.Find(tree, value), (YamlPlace{3, 20}));
  EXPECT_EQ(rule.Find(tree, value), (YamlPlace{2, 5}));
  // A map or a list is where its key is: that is where people look.
  EXPECT_EQ(match.Find(tree, value), (YamlPlace{3, 5}));
  EXPECT_EQ(rules.Find(tree, value), (YamlPlace{1, 1}));
}

TEST(Where, OfSomethingThatIsNotThereIsTheInnermostThatIs) {
  const YamlNode tree = Tree("a: 1\nrules:\n  - name: x\n");
  const Where top;
  const Where rules(top, "rules");
  const Where rule(rules, std::size_t{0});
  const Where limit(rule, "limit");
  const Where tier(limit, "tier");
  EXPECT_EQ(tier.Find(tree, Where::Point::kValue), (YamlPlace{3, 5}));
  EXPECT_EQ(tier.FindNode(tree), nullptr);
  const Where other(rules, std::size_t{7});
  EXPECT_EQ(other.Find(tree, Where::Point::kValue), (YamlPlace{2, 1}));
  ASSERT_NE(rule.FindNode(tree), nullptr);
  EXPECT_EQ(rule.FindNode(tree)->entries.size(), 1U);
}

TEST(ProblemList, SortsByPlaceAndOwnFileFirst) {
  ProblemList list("weir.yaml");
  list.AddAt(ProblemCode::kBadLimit, "a.csv", {.line = 1, .column = 1}, "", "in a file");
  list.AddAt(ProblemCode::kUnknownKey, "weir.yaml", {.line = 9, .column = 3}, "", "late");
  list.AddAt(ProblemCode::kCovered, "weir.yaml", {.line = 2, .column = 8}, "", "right");
  list.AddAt(ProblemCode::kBadName, "weir.yaml", {.line = 2, .column = 3}, "", "left");
  EXPECT_EQ(list.errors(), 3U);
  std::vector<std::string> messages;
  for (const Problem& problem : list.Take()) messages.push_back(problem.message);
  EXPECT_EQ(messages, (std::vector<std::string>{"left", "right", "late", "in a file"}));
}

TEST(ProblemList, AdviceIsNoError) {
  ProblemList list("weir.yaml");
  const Where top;
  list.Add(ProblemCode::kNoRules, top, "nothing");
  EXPECT_FALSE(list.has_errors());
  EXPECT_FALSE(list.HasErrorWithin(top));
  const std::vector<Problem> problems = list.Take();
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].severity, Severity::kAdvice);
}

TEST(ProblemList, KnowsWhatIsWithinAPlace) {
  ProblemList list("");
  const Where top;
  const Where limit(top, "limit");
  const Where limits(top, "limits");
  const Where tier(limit, "tier");
  list.Add(ProblemCode::kUnknownKey, Where(limits, "x"), "");
  EXPECT_FALSE(list.HasErrorWithin(limit));
  EXPECT_TRUE(list.HasErrorWithin(limits));
  list.Add(ProblemCode::kUnknownKey, tier, "");
  EXPECT_TRUE(list.HasErrorWithin(limit));
  EXPECT_TRUE(list.HasErrorWithin(tier));
  EXPECT_FALSE(list.HasErrorWithin(Where(tier, "deeper")));
}

TEST(Problem, SaysWhereItIsInTheFormThatEditorsKnow) {
  Problem problem;
  problem.code = "E101";
  problem.message = "no";
  EXPECT_EQ(problem.ToString(), "E101 no");
  problem.where = "rules[0].limit";
  EXPECT_EQ(problem.ToString(), "rules[0].limit: E101 no");
  problem.line = 3;
  problem.column = 7;
  EXPECT_EQ(problem.ToString(), "3:7: E101 no");
  problem.file = "weir.yaml";
  EXPECT_EQ(problem.ToString(), "weir.yaml:3:7: E101 no");
  problem.line = 0;
  EXPECT_EQ(problem.ToString(), "weir.yaml: E101 no");
}

TEST(Problems, AreToldUpToAThousandAndThenThatThereAreMore) {
  std::string yaml;
  for (int i = 0; i < 20'000; ++i) yaml += "k" + std::to_string(i) + ": 1\n";
  const PolicyReport report = Policy::Parse(yaml, "weir.yaml");
  EXPECT_FALSE(report.policy);
  ASSERT_EQ(report.problems.size(), 1'001U);
  EXPECT_EQ(report.problems.back().code, "E008");
  EXPECT_EQ(report.problems.back().line, 1'001);
}

}  // namespace
}  // namespace weir
