// The bytes of a YAML text before anybody reads them as YAML: whether they are text at all, and
// which line and column a byte stands in.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "policy/yaml_tree.h"

namespace weir {

// The text without a byte order mark at its start.
std::string_view WithoutByteOrderMark(std::string_view text) noexcept;

// Places of bytes in a text that outlives this. Offsets past the end mean the end.
class YamlSource {
 public:
  explicit YamlSource(std::string_view text);

  // The first thing that keeps the text from being read: its size, an encoding other than UTF-8, a
  // control character, or a directive.
  std::optional<YamlProblem> FirstProblem();

  std::string_view text() const noexcept { return text_; }
  char At(std::size_t offset) const noexcept {
    return offset < text_.size() ? text_[offset] : '\n';
  }

  // Columns count characters, not bytes. Cheap if offsets come roughly in order.
  YamlPlace PlaceOf(std::size_t offset);

  std::size_t LineOf(std::size_t offset) const;     // From 0.
  std::size_t StartOfLine(std::size_t line) const;  // Of the last line if there is none such.
  std::size_t ColumnOf(std::size_t offset) const;   // In bytes, from 0.
  // Whether it is the first thing in its line, with a tab among the blanks before it.
  bool IsIndentedByTab(std::size_t offset) const;

 private:
  std::optional<YamlProblem> FirstBadCharacter();

  std::string_view text_;
  std::vector<std::size_t> lines_{0};  // Where each line starts.
  bool has_tabs_ = false;
  bool ascii_ = true;
  // The last place asked for: so a line of many nodes is not counted again for each.
  std::size_t cursor_ = 0;
  std::size_t cursor_line_ = 0;
  int cursor_column_ = 1;
};

}  // namespace weir
