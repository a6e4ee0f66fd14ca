#include "policy/path_trie.h"

#include <algorithm>
#include <utility>

#include "policy/text_hash.h"

namespace weir {
namespace {

std::uint64_t KeyOf(std::uint32_t node, std::string_view segment) {
  return HashOf(segment) + node * 0x9e3779b97f4a7c15;  // Sets neighbours far apart.
}

}  // namespace

std::uint32_t PathTrie::NewNode() {
  nodes_.emplace_back();
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t PathTrie::ChildToBe(std::uint32_t node, const std::string& segment) {
  nodes_[node].literals = true;
  longest_ = std::max(longest_, segment.size());
  std::uint32_t& first = building_[KeyOf(node, segment)];
  for (std::uint32_t child = first; child != 0; child = nodes_[child].next) {
    if (nodes_[child].literal == segment) return child;
  }
  const std::uint32_t child = NewNode();
  nodes_[child].literal = segment;
  nodes_[child].next = std::exchange(first, child);
  return child;
}

PathTrie::Place PathTrie::Add(const PathPattern& pattern) {
  using Kind = PathPattern::SegmentKind;
  ++used_;
  const auto& segments = pattern.segments();
  std::uint32_t node = 0;
  bool exact = true;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto& [kind, text] = segments[i];
    if (kind == Kind::kRest) return {node, true, exact && i + 1 == segments.size()};
    if (kind == Kind::kLiteral) {
      node = ChildToBe(node, text);
      continue;
    }
    exact = exact && kind == Kind::kAny;
    if (nodes_[node].any == 0) {
      const std::uint32_t any = NewNode();
      nodes_[node].any = any;
    }
    node = nodes_[node].any;
  }
  return {node, false, exact};
}

void PathTrie::Find(std::string_view path, std::span<const std::uint32_t> numbers,
                    Candidates& found) const noexcept {
  Walk(0, path == "/" ? "" : path, numbers, found);
}

std::uint32_t PathTrie::Child(std::uint32_t node, std::string_view segment) const noexcept {
  if (!nodes_[node].literals || segment.size() > longest_) return 0;
  const std::uint32_t* const first = children_.Find(KeyOf(node, segment));
  std::uint32_t child = first == nullptr ? 0 : *first;
  while (child != 0 && nodes_[child].literal != segment) child = nodes_[child].next;
  return child;
}

// As deep as the longest pattern at most, and at most once to every node.
void PathTrie::Walk(std::uint32_t node, std::string_view rest,
                    std::span<const std::uint32_t> numbers, Candidates& found) const noexcept {
  while (true) {
    const Node& at = nodes_[node];
    if (at.rest.count != 0) found.Add(at.rest.Of(numbers));
    if (rest.empty()) {
      found.Add(at.here.Of(numbers));
      return;
    }
    if (!at.literals && at.any == 0) return;
    const std::string_view segment = TakeSegment(rest);
    const std::uint32_t child = Child(node, segment);
    if (child != 0 && at.any != 0) Walk(child, rest, numbers, found);
    node = at.any != 0 ? at.any : child;
    if (node == 0) return;
  }
}

}  // namespace weir
