// Finds which of many matches may hold for a request, without looking at the others.
//
// Every match is filed under one of its conditions, or under what each of its alternatives needs:
// whichever the fewest others share. A request looks up only what it has.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "policy/candidates.h"
#include "policy/compiled_match.h"
#include "policy/facts.h"
#include "policy/key_table.h"
#include "policy/path_trie.h"

namespace weir {

// Immutable once made; safe to share. Does not refer to the matches.
class MatchIndex {
 public:
  explicit MatchIndex(std::span<const CompiledMatch> matches);

  // Adds the number of every match that holds, and of some that do not.
  void Find(const Facts& facts, Candidates& found) const noexcept;

  // Which of the match's own conditions is sure to hold if it is found, or kNone.
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  std::uint32_t SureOf(std::uint32_t match) const noexcept { return sure_[match]; }

 private:
  class Builder;

  // An attribute that something is filed under.
  struct Entry {
    Attribute attribute;
    std::uint64_t seed;
    std::uint64_t sizes = 0;  // The bits of the sizes of values that something is filed under.
    Run present{};            // Under its being there.
    std::uint32_t next = 0;   // The entry with the same hash of its name, from 1.
  };
  // Attributes of one kind that have names.
  struct NameTable {
    std::vector<Entry> entries{};
    KeyTable<std::uint32_t> first{};  // By HashOfName; from 1.
    std::uint64_t sizes = 0;          // The bits of the sizes of the names.
  };
  struct RangeLength {
    bool v4;
    int prefix;
    std::uint64_t seed;
  };

  // One bit for each size of a text; those from 63 share one. Most texts are told from those that
  // are looked for by their size alone.
  static constexpr std::uint64_t SizeBit(std::string_view text) noexcept {
    return std::uint64_t{1} << std::min<std::size_t>(text.size(), 63);
  }

  void AddValue(const Entry& entry, std::string_view value, Candidates& found) const noexcept;
  void AddUnder(std::uint64_t key, Candidates& found) const noexcept;
  void FindByPath(std::string_view path, Candidates& found) const noexcept;
  void FindByAddress(const IpAddress& address, Candidates& found) const noexcept;
  void FindByNames(const NameTable& table, bool any_case, std::span<const NamedValue> values,
                   Candidates& found) const noexcept;
  static const Entry* EntryOf(const NameTable& table, bool any_case,
                              std::string_view name) noexcept;

  std::vector<std::uint32_t> numbers_;  // What runs are of.
  // By the key of an anchor. Only of those whose matches are looked at again: the keys have no
  // secret, so a client can choose a value that leads to any of them.
  KeyTable<Run> runs_;
  Run always_{};              // Matches without an anchor.
  std::vector<Entry> plain_;  // Attributes without names, except ip.
  Run has_ip_{};
  std::vector<RangeLength> ranges_;
  PathTrie trie_;
  bool last_segments_ = false;
  NameTable headers_, cookies_, query_, descriptors_;
  std::vector<std::uint32_t> sure_;  // By match.
};

}  // namespace weir
