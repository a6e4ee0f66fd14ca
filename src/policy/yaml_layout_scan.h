// The pieces a YAML layout is made of, taken from a text one after the other: scalars as written,
// comments, keys, and collections in brackets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/blanks.h"
#include "policy/yaml_layout.h"

namespace weir {

constexpr bool IsBlankOrBreak(char c) noexcept { return IsBlank(c) || c == '\n'; }
constexpr bool IsFlowMark(char c) noexcept {
  return c == ',' || c == '[' || c == ']' || c == '{' || c == '}';
}

struct KeySpan {
  std::string text;
  std::size_t size;  // With the colon.
};
struct BlockHeader {
  std::string text;  // "|" or ">", perhaps with "+" or "-".
  int indent = 0;    // As written; 0 if not.
  bool keep = false;
};
struct BlockContent {
  std::vector<std::string> lines{};
  bool open_ended = false;  // The text ends within its last line.
};

// A place in a text, which outlives this. Once something fails it is at the end of the text.
class LayoutScan {
 public:
  explicit LayoutScan(std::string_view text) : text_(text) {}

  bool AtEnd() const noexcept { return at_ >= text_.size(); }
  char Peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n';
  }
  std::string_view rest() const noexcept { return text_.substr(at_); }
  bool AtLineEnd() const noexcept { return Peek() == '\n'; }
  bool AtDash() const noexcept;
  bool AtQuestionMark() const noexcept;  // Of a key that is written apart from its colon.
  std::size_t Column() const;            // In bytes, from 0.

  void Skip(std::size_t bytes) { at_ = std::min(at_ + bytes, text_.size()); }
  void SkipBlanks();

  // The comment at the end of the line, if any; fails if something else is there. Then at the start
  // of the next line.
  YamlRemark FinishLine();
  // Lines that hold nothing or a comment, from the start of a line on. Of several blank lines one.
  void CollectRemarks(YamlRemarks& remarks);

  std::string TakeName();  // Of an anchor, with its "&".
  std::optional<KeySpan> FindKey() const;
  std::vector<std::string> TakeQuoted();
  std::vector<std::string> TakePlain(int parent_column);
  BlockHeader TakeBlockHeader();
  BlockContent TakeBlockContent(int parent_column, const BlockHeader& header);
  void ReadFlow(YamlLayout& flow);

  void Fail(std::string message);
  const std::optional<YamlProblem>& problem() const noexcept { return problem_; }

 private:
  struct Remarks {
    YamlRemark same_line{};
    YamlRemarks below{};
  };
  YamlRemark TakeComment();
  Remarks TakeFlowRemarks();
  void ReadFlowPart(YamlLayout::Part& part, bool in_map);
  void ReadFlowNode(YamlLayout::Part& part);
  void TakeFlowAnchor(YamlLayout::Part& part);
  std::vector<std::string> TakeFlowPlain();
  std::size_t EndOfQuoted(std::size_t start) const;
  bool EndsFlowPlain() const noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<YamlProblem> problem_{};
};

}  // namespace weir
