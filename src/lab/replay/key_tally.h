// How often each key was asked about, and how often it was denied: exact, in 16 bytes a key. The
// texts of keys are kept only for those that may be among the most denied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace weir::lab {

struct TalliedKey {
  std::uint32_t rule = 0;
  std::string key{};
  std::uint64_t requests = 0;
  std::uint64_t denied = 0;
};

class KeyTally {
 public:
  KeyTally();

  // So that the memory is there when it is counted.
  void Prefetch(std::uint64_t key) const noexcept { __builtin_prefetch(&slots_[Home(key)], 1); }
  void CountRequest(std::uint64_t key) { ++SlotOf(key).requests; }

  struct Denial {
    bool is_first = false;    // Of this key.
    bool wants_name = false;  // Call Name: it may be among the first.
  };
  Denial CountDenial(std::uint64_t key);
  void Name(std::uint64_t key, std::uint32_t rule, std::string text);

  // Those denied most, up to kMostNamed; of equals the one whose text comes first.
  static constexpr std::size_t kMostNamed = 1'000;
  std::vector<TalliedKey> Top(std::size_t most) const;

  std::size_t keys() const noexcept { return used_; }

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: nothing.
    std::uint32_t requests = 0;
    std::uint32_t denied = 0;
  };
  struct Text {
    std::uint32_t rule = 0;
    std::string text{};
  };
  static constexpr int kFirstBits = 12;
  static constexpr std::size_t kMostTexts = 4 * kMostNamed;

  std::size_t Home(std::uint64_t key) const noexcept {
    // Keys are hashes already.
    return static_cast<std::size_t>(key >> shift_);
  }
  Slot& SlotOf(std::uint64_t key);
  const Slot& Find(std::uint64_t key) const;
  void Grow();
  void ForgetTexts();

  std::vector<Slot> slots_;
  int shift_ = 64 - kFirstBits;
  std::size_t used_ = 0;
  std::unordered_map<std::uint64_t, Text> texts_;
  // Keys with no more denials than this are not among the first kMostNamed.
  std::uint32_t floor_ = 0;
};

}  // namespace weir::lab
