// A YAML document as a tree that knows where everything was written.
//
// Only what a policy needs: one document, no tags, anchors and aliases within bounds, every key of
// a map a plain text and there once. yaml-cpp does the reading; this is the only place that sees
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

struct YamlPlace {
  int line = 1;  // From 1, as people and editors count.
  int column = 1;
};

struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  YamlPlace place{};
  std::string text{};   // kScalar.
  bool quoted = false;  // kScalar: so it is text even if it reads like a number or a word.
  std::vector<YamlNode> items{};  // kList.
  std::vector<Entry> entries{};   // kMap, in their order.

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

YamlReport ReadYaml(std::string_view text);

// The text in one form: two spaces per level, one blank line at most, comments kept where they
// belong, values as they were written. Reads as the same document, and formatting it again changes
// nothing. Problems instead of a text if it is no such document.
struct FormattedYaml {
  std::optional<std::string> text{};
  std::vector<YamlProblem> problems{};
};
FormattedYaml FormatYaml(std::string_view text);

}  // namespace weir
