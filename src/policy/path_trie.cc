#include "policy/path_trie.h"

#include <algorithm>

#include "policy/text_hash.h"

namespace weir {
namespace {

// Two segments with the same key would share a node, which finds too much and never too little.
std::uint64_t KeyOf(std::uint32_t node, std::string_view segment) {
  return HashOf(segment) + node * 0x9e3779b97f4a7c15;  // Sets neighbours far apart.
}

}  // namespace

std::uint32_t PathTrie::NewNode() {
  nodes_.emplace_back();
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

PathTrie::Place PathTrie::Add(const PathPattern& pattern) {
  using Kind = PathPattern::SegmentKind;
  ++used_;
  std::uint32_t node = 0;
  for (const auto& [kind, text] : pattern.segments()) {
    if (kind == Kind::kRest) return {node, true};
    std::uint32_t child = 0;
    if (kind == Kind::kLiteral) {
      nodes_[node].literals = true;
      longest_ = std::max(longest_, text.size());
      std::uint32_t& known = building_[KeyOf(node, text)];
      if (known == 0) known = NewNode();
      child = known;
    } else {
      if (nodes_[node].any == 0) {
        const std::uint32_t any = NewNode();
        nodes_[node].any = any;
      }
      child = nodes_[node].any;
    }
    node = child;
  }
  return {node, false};
}

void PathTrie::Find(std::string_view path, std::span<const std::uint32_t> numbers,
                    Candidates& found) const noexcept {
  Walk(0, path == "/" ? "" : path, numbers, found);
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
    if (at.literals && segment.size() <= longest_) {
      const std::uint32_t* const child = children_.Find(KeyOf(node, segment));
      if (child != nullptr) {
        if (at.any == 0) {
          node = *child;
          continue;
        }
        Walk(*child, rest, numbers, found);
      }
    }
    if (at.any == 0) return;
    node = at.any;
  }
}

}  // namespace weir
