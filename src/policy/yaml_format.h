// One form for all YAML texts: what `weir fmt` does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/yaml_tree.h"

namespace weir {

// The text in one form: two spaces per level, one blank line at most, comments kept where they
// belong, values as they were written. Reads as the same document, and formatting it again changes
// nothing. Problems instead of a text if it is no such document, or is written in a way that this
// does not handle: keys with "?", the end mark "...", empty items in brackets.
struct FormattedYaml {
  std::optional<std::string> text{};
  std::vector<YamlProblem> problems{};
};
FormattedYaml FormatYaml(std::string_view text);

}  // namespace weir
