// Builds the tree of a YAML text from what a parser says it found, and keeps the bounds: levels,
// nodes, and what aliases stand for. Knows nothing of the parser.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/yaml_source.h"
#include "policy/yaml_tree.h"

namespace weir {

// What the parser tells of every node.
struct YamlMark {
  std::size_t offset = 0;
  std::size_t anchor = 0;  // 0 is none; else a number given to one node only.
  bool tagged = false;
  bool flow = false;  // A collection in brackets.
};

class YamlBuilder {
 public:
  explicit YamlBuilder(YamlSource& source) : source_(source) {}

  void AddNull(const YamlMark& mark);
  void AddScalar(const YamlMark& mark, std::string text, bool quoted);
  void AddAlias(std::size_t offset, std::size_t anchor);
  void Open(const YamlMark& mark, YamlNode::Kind kind);
  void Close();

  void Report(YamlProblem::Kind kind, YamlPlace place, std::string message);

  // Nothing more is worth reading: a bound was passed, or there are too many problems.
  bool stopped() const noexcept { return stopped_; }

  // The tree with all aliases replaced, or the problems in the order of their places.
  YamlReport Finish();

 private:
  // A collection that is not complete.
  struct Frame {
    YamlNode node;
    bool flow = false;
    std::size_t column = 0;  // In bytes, of its keys or dashes; kNoColumn if that is not known.
    std::size_t anchor = 0;
    std::size_t nodes_before = 0;
    std::size_t bytes_before = 0;
    std::size_t deepest = 0;  // Levels of the tree down to its deepest collection.
    bool has_key = false;     // kMap: `key` is read, its value is not.
    std::string key{};
    YamlPlace key_place{};
    std::size_t key_offset = 0;
  };
  // Which child to take at each level from the root on. Holds while collections grow.
  using Path = std::vector<std::size_t>;
  struct Anchor {
    Path path;
    std::size_t nodes = 0;
    std::size_t bytes = 0;
    std::size_t levels = 0;
    bool complete = false;
  };
  struct Alias {
    Path path;
    std::size_t anchor;
    YamlPlace place;
  };
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  bool Admit(const YamlMark& mark);
  bool AwaitsKey() const noexcept;
  void AddNode(const YamlMark& mark, YamlNode node);
  void AddKey(const YamlMark& mark, YamlNode key);
  void CheckIndentation(std::size_t offset, bool block_list);
  void CheckColon(std::size_t offset);
  void CheckDuplicates(const YamlNode& map);
  void ReportDuplicate(const YamlNode::Entry& first, const YamlNode::Entry& again);
  bool IsWrittenNull(std::size_t offset) const;
  YamlPlace PlaceOfNull(std::size_t offset);
  std::optional<std::size_t> FindDash(std::size_t before, std::size_t column) const;
  Path NextPath() const;
  YamlNode* At(const Path& path);
  void Count(std::size_t nodes, std::size_t bytes, YamlPlace place);
  void ReplaceAliases();

  YamlSource& source_;
  std::vector<Frame> open_{};
  std::optional<YamlNode> root_{};
  bool root_is_empty_ = false;
  std::unordered_map<std::size_t, Anchor> anchors_{};
  std::vector<Alias> aliases_{};
  std::vector<YamlProblem> problems_{};
  std::size_t nodes_ = 0;  // With what aliases stand for.
  std::size_t bytes_ = 0;  // Of texts and keys, with what aliases stand for.
  std::size_t copied_nodes_ = 0;
  std::size_t copied_bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace weir
