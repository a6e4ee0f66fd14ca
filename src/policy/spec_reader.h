// Reads the nodes of a YAML tree into plain data, noting every problem on the way.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_ranges.h"
#include "policy/policy_words.h"
#include "policy/problems.h"
#include "policy/yaml_tree.h"

namespace weir {

class SpecReader;

// A node and where it stands.
struct Spot {
  const YamlNode& node;
  const Where& where;
};

// A key of a map, and what reads its value into an object.
template <typename Object>
struct Field {
  std::string_view key;
  void (*read)(SpecReader& reader, const Spot& spot, Object& object);
};

// Each Read leaves its target as it was if the value is wrong.
class SpecReader {
 public:
  explicit SpecReader(ProblemList& problems) : problems_(problems) {}

  template <typename Object, std::size_t size>
  void ReadMap(const Spot& spot, const std::array<Field<Object>, size>& fields, Object& object) {
    if (!IsMap(spot)) return;
    for (const YamlNode::Entry& entry : spot.node.entries) {
      const Where where(spot.where, entry.key);
      const auto found =
          std::ranges::find(fields, std::string_view(entry.key), &Field<Object>::key);
      if (found != fields.end()) {
        found->read(*this, {entry.value, where}, object);
      } else {
        std::array<std::string_view, size> keys;
        std::ranges::transform(fields, keys.begin(), &Field<Object>::key);
        UnknownKey(where, entry.key, keys);
      }
    }
  }

  // Calls `read(spot)` for each item of a list; a single value counts as a list of one.
  template <typename Read>
  void ReadEach(const Spot& spot, Read&& read) {
    if (spot.node.kind != YamlNode::Kind::kList) return read(spot);
    for (std::size_t i = 0; i < spot.node.items.size(); ++i) {
      const Where where(spot.where, i);
      read(Spot{spot.node.items[i], where});
    }
  }

  template <typename Meaning, std::size_t size>
  void ReadWord(const Spot& spot, const std::array<Word<Meaning>, size>& words, Meaning& meaning) {
    std::string text;
    if (!ReadText(spot, text)) return;
    if (const std::optional<Meaning> found = MeaningOf(text, words)) {
      meaning = *found;
      return;
    }
    std::array<std::string_view, size> allowed;
    std::ranges::transform(words, allowed.begin(), &Word<Meaning>::text);
    UnknownWord(spot.where, text, allowed);
  }

  bool ReadText(const Spot& spot, std::string& text);
  void ReadTexts(const Spot& spot, std::vector<std::string>& texts);
  void ReadBool(const Spot& spot, bool& value);
  void ReadCount(const Spot& spot, std::int64_t& value, const Range<std::int64_t>& range);
  void ReadInt(const Spot& spot, int& value, const Range<int>& range);
  void ReadSize(const Spot& spot, std::int64_t& bytes, const Range<std::int64_t>& range);
  void ReadLength(const Spot& spot, Duration& length, const Range<Duration>& range);

  bool IsMap(const Spot& spot);
  void Report(ProblemCode code, const Where& where, std::string message) {
    problems_.Add(code, where, std::move(message));
  }
  void UnknownKey(const Where& where, std::string_view key,
                  std::span<const std::string_view> allowed);
  void UnknownWord(const Where& where, std::string_view word,
                   std::span<const std::string_view> allowed);

 private:
  ProblemList& problems_;
};

// What a problem calls a node: "a map", "a list", "nothing", "the text "x"".
std::string Describe(const YamlNode& node);

// The one of `allowed` that was probably meant, or nothing. Upper and lower case are the same.
std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> allowed);

}  // namespace weir
