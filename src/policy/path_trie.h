// Finds which of many path patterns may fit a path, segment by segment.
//
// A literal segment leads to a node of its own, any other to the one that they share, and what is
// filed at `**` or behind it is found as soon as the path gets there. So what is found may still
// not fit, unless all of the pattern is in the trie; what is not found does not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/candidates.h"
#include "policy/key_table.h"
#include "policy/path.h"

namespace weir {

// Part of a list of numbers of matches.
struct Run {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;

  std::span<const std::uint32_t> Of(std::span<const std::uint32_t> numbers) const noexcept {
    return numbers.subspan(begin, count);
  }
};

// Filled first, then only read; then safe to share.
class PathTrie {
 public:
  // Where to file something under the pattern.
  struct Place {
    std::uint32_t node;
    bool rest;   // At its `**`, rather than where it ends.
    bool exact;  // What is found there fits.
  };
  Place Add(const PathPattern& pattern);
  // Once all are there: what is filed at each place.
  template <typename RunAt>  // Run(std::uint32_t node, bool rest)
  void Finish(const RunAt& run_at) {
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].here = run_at(node, false);
      nodes_[node].rest = run_at(node, true);
    }
    children_ = KeyTable<std::uint32_t>({building_.begin(), building_.end()});
    building_.clear();
  }

  bool empty() const noexcept { return used_ == 0; }

  // `numbers` is what the runs are of.
  void Find(std::string_view path, std::span<const std::uint32_t> numbers,
            Candidates& found) const noexcept;

 private:
  struct Node {
    std::uint32_t any = 0;   // For segments that are not literal; 0 is none.
    bool literals = false;   // Whether there are children for literal ones.
    std::uint32_t next = 0;  // Another child with the same key, or 0.
    std::string literal{};   // The segment that leads here, if it is one.
    Run here{};
    Run rest{};
  };

  std::uint32_t NewNode();
  std::uint32_t ChildToBe(std::uint32_t node, const std::string& segment);
  // 0 if there is none.
  std::uint32_t Child(std::uint32_t node, std::string_view segment) const noexcept;
  void Walk(std::uint32_t node, std::string_view rest, std::span<const std::uint32_t> numbers,
            Candidates& found) const noexcept;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::unordered_map<std::uint64_t, std::uint32_t> building_;  // The first child of each key.
  KeyTable<std::uint32_t> children_;
  std::size_t longest_ = 0;  // Of the literal segments.
  std::size_t used_ = 0;
};

}  // namespace weir
