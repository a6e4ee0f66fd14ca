// A flat table from 64-bit keys, which are hashes already, to something small. Made once, then only
// read: keys come from the policy, so nobody outside can make them collide.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace weir {

// Immutable once made; safe to share.
template <typename Value>
class KeyTable {
 public:
  KeyTable() = default;
  // Each key once. 0 and 1 are the same key.
  explicit KeyTable(const std::vector<std::pair<std::uint64_t, Value>>& entries)
      : slots_(entries.empty() ? 0 : std::bit_ceil(2 * entries.size())) {
    for (const auto& [key, value] : entries) {
      std::size_t at = key & (slots_.size() - 1);
      while (slots_[at].key != kUnused) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {.key = Used(key), .value = value};
    }
  }

  bool empty() const noexcept { return slots_.empty(); }

  const Value* Find(std::uint64_t key) const noexcept {
    if (slots_.empty()) return nullptr;
    std::size_t at = key & (slots_.size() - 1);
    for (; slots_[at].key != kUnused; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].key == Used(key)) return &slots_[at].value;
    }
    return nullptr;
  }

 private:
  static constexpr std::uint64_t kUnused = 0;
  static constexpr std::uint64_t Used(std::uint64_t key) { return key == kUnused ? 1 : key; }

  struct Slot {
    std::uint64_t key = kUnused;
    Value value{};
  };
  std::vector<Slot> slots_;  // A power of two, at most half of them used.
};

}  // namespace weir
