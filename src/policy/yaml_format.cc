#include "policy/yaml_format.h"

#include <algorithm>
#include <utility>

#include "policy/yaml_layout.h"
#include "policy/yaml_source.h"

namespace weir {
namespace {

bool SameEntry(const YamlNode::Entry& a, const YamlNode::Entry& b);

// Apart from places.
bool SameTree(const YamlNode& a, const YamlNode& b) {
  return a.kind == b.kind && a.text == b.text && a.quoted == b.quoted &&
         std::ranges::equal(a.items, b.items, SameTree) &&
         std::ranges::equal(a.entries, b.entries, SameEntry);
}

bool SameEntry(const YamlNode::Entry& a, const YamlNode::Entry& b) {
  return a.key == b.key && SameTree(a.value, b.value);
}

FormattedYaml Refused(YamlPlace place, std::string message) {
  return {.text = std::nullopt,
          .problems = {{YamlProblem::Kind::kSyntax, place, std::move(message)}}};
}

// Where a line that ends the document stands.
std::optional<std::size_t> FindEndMark(std::string_view text) {
  for (std::size_t at = text.find("..."); at != std::string_view::npos;
       at = text.find("...", at + 1)) {
    const std::string_view behind = text.substr(at + 3, 1);
    const bool alone = behind.empty() || std::string_view(" \t\n").contains(behind[0]);
    if (alone && (at == 0 || text[at - 1] == '\n')) return at;
  }
  return std::nullopt;
}

}  // namespace

FormattedYaml FormatYaml(std::string_view text) {
  YamlReport before = ReadYaml(text);
  if (!before.root) return {.text = std::nullopt, .problems = std::move(before.problems)};

  std::string lines(WithoutByteOrderMark(text));
  std::erase(lines, '\r');
  if (const std::optional<std::size_t> mark = FindEndMark(lines)) {
    return Refused(YamlSource(lines).PlaceOf(*mark),
                   "the end mark \"...\" cannot be formatted; leave it out");
  }
  const std::expected<YamlPage, YamlProblem> page = ReadLayout(lines);
  if (!page) return {.text = std::nullopt, .problems = {page.error()}};
  std::string formatted = WriteLayout(*page);

  // Whatever was overlooked: rather no text than one that says something else.
  const YamlReport after = ReadYaml(formatted);
  const bool same_comments = std::count(lines.begin(), lines.end(), '#') ==
                             std::count(formatted.begin(), formatted.end(), '#');
  if (!after.root || !SameTree(*before.root, *after.root) || !same_comments) {
    return Refused({}, "this cannot be formatted without changing what it says");
  }
  return {.text = std::move(formatted), .problems = {}};
}

}  // namespace weir
