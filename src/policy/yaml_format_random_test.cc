// Random documents, written as untidily as YAML allows: formatting must keep what they say and
// every comment, and formatting again must change nothing. A failure prints the seed of its
// document.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "policy/yaml_format.h"

namespace weir {
namespace {

class UntidyWriter {
 public:
  explicit UntidyWriter(unsigned seed) : random_(seed) {}

  std::string Write() {
    if (OneIn(4)) Remarks(0, 0);
    if (OneIn(8)) text_ += "---" + MaybeComment() + "\n";
    switch (Below(8)) {
      case 0:
        text_ += Scalar() + MaybeComment() + "\n";
        break;
      case 1:
        text_ += Flow(3) + MaybeComment() + "\n";
        break;
      case 2:
        List(3, Below(3), false);
        break;
      default:
        Map(4, Below(3), false);
    }
    if (OneIn(3)) Remarks(0, after_block_ ? 0 : 6);
    if (OneIn(8)) text_.pop_back();
    return text_;
  }

  int comments() const { return comments_; }

 private:
  std::size_t Below(std::size_t bound) { return random_() % bound; }
  bool OneIn(std::size_t count) { return Below(count) == 0; }
  static std::string Spaces(std::size_t count) { return std::string(count, ' '); }

  std::string Comment() {
    return "#c" + std::to_string(comments_++) + (OneIn(3) ? " it's: [x" : "");
  }
  std::string MaybeComment() {
    if (!OneIn(4)) return OneIn(6) ? "  " : "";
    return Spaces(1 + Below(4)) + Comment();
  }

  // Blank lines and comments, from column 0 to `deepest`.
  void Remarks(std::size_t column, std::size_t deepest) {
    for (std::size_t i = Below(4); i > 0; --i) {
      if (OneIn(2)) {
        text_ += OneIn(4) ? "  \n" : "\n";
      } else {
        text_ += Spaces(OneIn(2) ? column : Below(deepest + 1)) + Comment() + "\n";
      }
    }
  }
  // Within a block, where a scalar before it must not swallow them.
  void BlockRemarks(std::size_t column) { Remarks(column, after_block_ ? column : column + 6); }

  std::string Plain() {
    static const char* const kTexts[] = {"x",        "two words", "a#b",  "100/min burst 50",
                                         "10:20",    "/api/**",   "it's", "-1",
                                         "\xC3\xA4", "~",         "null", "x-y_z",
                                         "a - b",    "v1.2",      "*not", "::1"};
    const std::string text = kTexts[Below(std::size(kTexts))];
    return text == "*not" ? "text" : text;
  }
  std::string Quoted() {
    static const char* const kTexts[] = {"'# no'",   "\"x # y\"",  "'it''s'",  "\"a\\\"b\"", "''",
                                         "\"a: b\"", "'[x], {y}'", "\"\\\\\"", "'- '"};
    return kTexts[Below(std::size(kTexts))];
  }
  std::string Scalar() { return OneIn(3) ? Quoted() : Plain(); }
  std::string Key() {
    const std::string number = std::to_string(keys_++);
    switch (Below(6)) {
      case 0:
        return "'k " + number + "'";
      case 1:
        return "\"k#" + number + "\"";
      case 2:
        return "two words " + number;
      default:
        return "k" + number;
    }
  }

  std::string FlowGap() {
    switch (Below(12)) {
      case 0:
        return "\n  ";
      case 1:
        return " " + Comment() + "\n ";
      case 2:
        return "\n\n " + Comment() + "\n\n   ";
      case 3:
        return "   ";
      default:
        return OneIn(2) ? " " : "";
    }
  }

  std::string FlowValue(std::size_t depth) {
    if (depth > 0 && OneIn(4)) return Flow(depth - 1);
    if (OneIn(12)) return "words\n  over lines";
    if (OneIn(12)) return "'words\n\n  over lines'";
    return OneIn(3) ? std::string("ab") : Scalar();
  }

  std::string Flow(std::size_t depth) {
    const bool map = OneIn(2);
    std::string text = map ? "{" : "[";
    const std::size_t count = Below(OneIn(5) ? 20 : 4);
    for (std::size_t i = 0; i < count; ++i) {
      text += FlowGap();
      const bool alone = map && OneIn(8);  // A key without a value must be followed by a comma.
      if (alone) {
        text += Key();
      } else if (map) {
        text += Key() + (OneIn(6) ? " : " : ": ") + FlowGap() + FlowValue(depth) + FlowGap();
      } else {
        text += (OneIn(10) ? Key() + ": " : "") + FlowValue(depth) + FlowGap();
      }
      if (alone || i + 1 < count || OneIn(5)) text += ",";
    }
    return text + FlowGap() + (map ? "}" : "]");
  }

  // Behind a colon or a dash at `column`.
  void Value(std::size_t depth, std::size_t column, bool in_map) {
    after_block_ = false;
    const std::size_t kind = Below(depth > 0 ? 12 : 7);
    std::string anchor;
    // yaml-cpp misreads scalars of several lines behind an anchor in a list.
    const bool several_lines = kind == 1 || kind == 3 || kind == 4;
    if (kind != 2 && (in_map || !several_lines) && OneIn(8)) {
      anchor = " &a" + std::to_string(anchors_++);
      text_ += anchor;
    }
    switch (kind) {
      case 0:
        text_ += Spaces(1 + Below(2)) + Flow(2) + MaybeComment() + "\n";
        break;
      case 1:
        BlockScalar(column);
        break;
      case 2:
        if (complete_ > 0 && OneIn(2)) text_ += " *a" + std::to_string(Below(complete_));
        text_ += MaybeComment() + "\n";
        return;
      case 3:
        LowerScalar(column);
        break;
      case 4:
        text_ += " over\n" + Spaces(column + 1 + Below(4)) + "lines" +
                 (OneIn(3) ? "\n\n" + Spaces(column + 2) + "more" : "") + MaybeComment() + "\n";
        break;
      case 5:
      case 6:
        text_ += Spaces(1 + Below(3)) + Scalar() + MaybeComment() + "\n";
        break;
      default:
        Nested(depth - 1, column, in_map, anchor.empty());
    }
    if (!anchor.empty() && complete_ + 1 == anchors_) complete_ = anchors_;
  }

  // A value on the line below its key.
  void LowerScalar(std::size_t column) {
    text_ += MaybeComment() + "\n";
    if (OneIn(2)) Remarks(column + 1, column + 5);
    text_ +=
        Spaces(column + 1 + Below(3)) + (OneIn(3) ? Flow(1) : Scalar()) + MaybeComment() + "\n";
  }

  void BlockScalar(std::size_t column) {
    const std::size_t indent = 1 + Below(4);
    const bool given = OneIn(3);
    text_ += OneIn(2) ? " |" : " >";
    if (given) text_ += std::to_string(indent);
    if (OneIn(2)) text_ += OneIn(2) ? "+" : "-";
    text_ += MaybeComment() + "\n";
    const std::string margin = Spaces(column + indent);
    if (OneIn(4)) text_ += "\n";
    if (given && OneIn(2)) text_ += margin + "  deeper first\n";
    for (std::size_t i = Below(4); i > 0; --i) {
      text_ += margin + "# text\n";
      if (OneIn(3)) text_ += OneIn(2) ? "\n" : "\n\n";
      if (OneIn(3)) text_ += margin + "  deeper: [\n";
    }
    after_block_ = true;
  }

  void Nested(std::size_t depth, std::size_t column, bool in_map, bool may_share_line) {
    const bool map = OneIn(2);
    if (!in_map && may_share_line && !OneIn(4)) {
      const std::size_t gap = 1 + Below(3);
      text_ += Spaces(gap);
      if (map) {
        Map(depth, column + 1 + gap, true);
      } else {
        List(depth, column + 1 + gap, true);
      }
      return;
    }
    text_ += MaybeComment() + "\n";
    if (map) {
      Map(depth, column + 1 + Below(5), false);
    } else {
      List(depth, column + (in_map && OneIn(3) ? 0 : 1 + Below(5)), false);
    }
  }

  void Map(std::size_t depth, std::size_t column, bool on_line) {
    for (std::size_t i = 0, count = 1 + Below(4); i < count; ++i) {
      if (i > 0 || !on_line) {
        BlockRemarks(column);
        text_ += Spaces(column);
      }
      text_ += Key() + (OneIn(8) ? " :" : ":");
      Value(depth, column, true);
    }
    if (OneIn(4)) BlockRemarks(column);
  }

  void List(std::size_t depth, std::size_t column, bool on_line) {
    for (std::size_t i = 0, count = 1 + Below(4); i < count; ++i) {
      if (i > 0 || !on_line) {
        BlockRemarks(column);
        text_ += Spaces(column);
      }
      text_ += "-";
      Value(depth, column, false);
    }
    if (OneIn(4)) BlockRemarks(column);
  }

  std::mt19937 random_;
  std::string text_{};
  int comments_ = 0;
  int keys_ = 0;
  std::size_t anchors_ = 0;
  std::size_t complete_ = 0;  // Anchors below this number may be meant by aliases.
  bool after_block_ = false;
};

bool SameTree(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted ||
      a.items.size() != b.items.size() || a.entries.size() != b.entries.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!SameTree(a.items[i], b.items[i])) return false;
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].key != b.entries[i].key) return false;
    if (!SameTree(a.entries[i].value, b.entries[i].value)) return false;
  }
  return true;
}

int CountOf(const std::string& text, const std::string& comment) {
  int count = 0;
  for (std::size_t at = text.find(comment); at != text.npos; at = text.find(comment, at + 1)) {
    const char next = at + comment.size() < text.size() ? text[at + comment.size()] : '\n';
    if (next == ' ' || next == '\n') ++count;
  }
  return count;
}

constexpr unsigned kTexts = 1500;

TEST(YamlFormatRandom, KeepsTheTreeAndAllCommentsAndIsStable) {
  for (unsigned seed = 1; seed <= kTexts; ++seed) {
    UntidyWriter writer(seed);
    const std::string text = writer.Write();
    const YamlReport before = ReadYaml(text);
    ASSERT_TRUE(before.root.has_value())
        << "seed " << seed << " at " << before.problems[0].place.line << ": "
        << before.problems[0].message << "\n"
        << text;
    const FormattedYaml formatted = FormatYaml(text);
    ASSERT_TRUE(formatted.text.has_value())
        << "seed " << seed << ": " << formatted.problems[0].message << "\n"
        << text;
    const YamlReport after = ReadYaml(*formatted.text);
    ASSERT_TRUE(after.root.has_value()) << "seed " << seed;
    ASSERT_TRUE(SameTree(*before.root, *after.root)) << "seed " << seed;
    for (int i = 0; i < writer.comments(); ++i) {
      ASSERT_EQ(CountOf(*formatted.text, "#c" + std::to_string(i)), 1)
          << "seed " << seed << " comment " << i << "\n"
          << text << "\n----\n"
          << *formatted.text;
    }
    const FormattedYaml again = FormatYaml(*formatted.text);
    ASSERT_TRUE(again.text.has_value()) << "seed " << seed;
    ASSERT_EQ(*again.text, *formatted.text) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace weir
