// A YAML text as it is written: every scalar with its quotes and lines, every comment at what it
// belongs to. What it means is the business of the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/yaml_tree.h"

namespace weir {

// A comment with its "#", or a blank line.
struct YamlRemark {
  std::string text{};      // Empty for a blank line, and for no remark.
  std::size_t column = 0;  // In characters, from 0.

  bool empty() const noexcept { return text.empty(); }
};
using YamlRemarks = std::vector<YamlRemark>;

struct YamlLayout {
  enum class Form : std::uint8_t {
    kEmpty,
    kScalar,       // Plain, in quotes, or an alias.
    kBlockScalar,  // | or >
    kBlockMap,
    kBlockList,
    kFlowMap,   // { }
    kFlowList,  // [ ]
    kFlowPair,  // A single "key: value" in a kFlowList.
  };
  struct Part;

  Form form = Form::kEmpty;
  std::string anchor{};  // With its "&".
  // kScalar: as written, but without what indents the second and further lines. kBlockScalar: the
  // line of the indicator, then the content without what indents it.
  std::vector<std::string> lines{};
  std::vector<Part> parts;
  YamlRemark opening{};  // Behind an opening bracket.
  YamlRemarks after{};   // Behind the last part, on lines of their own.
};

// An entry of a map, an item of a list, or the document.
struct YamlLayout::Part {
  YamlRemarks before{};  // On lines of their own.
  std::string key{};
  YamlLayout value{};
  YamlRemark trailing{};  // At the end of the line: of the key, if the value is a block.
  YamlRemarks below{};    // kEmpty: where the value would be.
};

struct YamlPage {
  YamlRemarks header{};  // Before "---".
  bool marked = false;   // Has "---".
  YamlRemark marked_trailing{};
  YamlLayout::Part root{};
  YamlRemarks footer{};
};

// Of a text that reads as a tree, with LF as line ends. A problem if it is written in a way that is
// not handled.
std::expected<YamlPage, YamlProblem> ReadLayout(std::string_view text);

// In the form that is the same for all.
std::string WriteLayout(const YamlPage& page);

}  // namespace weir
