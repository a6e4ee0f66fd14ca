// A YAML document as a tree that knows where everything was written.
//
// Only what a policy needs: one document, no tags, anchors and aliases within bounds, every key of
// a map a plain text and there once. yaml-cpp does the reading; this is the only place that sees
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct YamlPlace {
  int line = 1;  // From 1, as people and editors count.
  int column = 1;

  friend bool operator==(const YamlPlace&, const YamlPlace&) = default;
};

struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  YamlPlace
      place{};  // An empty value has the place of its key; an alias its own, not the anchor's.
  std::string text{};   // kScalar.
  bool quoted = false;  // kScalar: text even if it reads like a number. Also of | and > blocks.
  std::vector<YamlNode> items{};  // kList.
  std::vector<Entry> entries;     // kMap, in their order.

  const YamlNode* Find(std::string_view key) const noexcept;
};

struct YamlNode::Entry {
  std::string key;
  YamlPlace place;  // Of the key.
  YamlNode value;
};

struct YamlProblem {
  // One for each way in which a text can fail to be such a document; see the table of codes.
  enum class Kind : std::uint8_t {
    kSyntax,      // Not YAML.
    kNoDocument,  // Nothing but blanks and comments.
    kSeveral,     // More than one document.
    kTag,         // !something
    kKey,         // A map whose key is no plain text.
    kDuplicateKey,
    kAlias,     // An alias to itself or to nothing, or too much text by aliases.
    kTooLarge,  // Too many bytes, nodes or levels.
    kEncoding,  // Not UTF-8, or control characters.
  };
  Kind kind;
  YamlPlace place;
  std::string message;  // What is wrong and what to do.
};

struct YamlReport {
  std::optional<YamlNode> root{};  // Only if there is no problem.
  std::vector<YamlProblem> problems{};
};

inline constexpr std::size_t kMaxYamlBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxYamlNodes = 4'000'000;  // Aliases count as what they stand for.
inline constexpr int kMaxYamlDepth = 32;
// What all aliases together may add, so that a short text cannot grow into a large tree.
inline constexpr std::size_t kMaxYamlCopiedNodes = 500'000;
inline constexpr std::size_t kMaxYamlCopiedBytes = std::size_t{16} << 20;
// A piece that has to be read to its end before anything is known of it: a text, or a collection
// in brackets.
inline constexpr std::size_t kMaxYamlPieceBytes = std::size_t{2} << 20;
// Reading stops after so many problems.
inline constexpr std::size_t kMaxYamlProblems = 100;

// All problems that can be found at once, in the order of their places. Never throws.
YamlReport ReadYaml(std::string_view text);

}  // namespace weir
