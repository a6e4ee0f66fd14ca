// What the scenarios have in common: a small memory table, and keys whose place in it is known.
#pragma once

#include <array>
#include <map>
#include <string>

#include "interleaving/scheduled_atomics.h"
#include "store/memory/table.h"

namespace weir::interleaving {

inline constexpr Ticks kNow(1'000);
inline constexpr std::int64_t kInterval = 10;  // What a unit takes to come back.

// Keys whose home is the first or the second half of any table.
constexpr std::uint64_t Low(std::uint64_t n) { return n; }
constexpr std::uint64_t High(std::uint64_t n) { return std::uint64_t{1} << 63 | n; }

// Keys all over the table.
constexpr std::uint64_t Spread(std::uint64_t n) { return (n + 1) * 0x9e3779b97f4a7c15; }

struct SmallShape {
  static constexpr std::size_t kMaxReach = 1;
  static constexpr std::size_t kReachAtCap = 1;
  static constexpr int kStripeBits = 1;
  static constexpr std::size_t kLinesMovedAtOnce = 1;
};

// Lines that several stripes share, and keys further from home.
struct FarReachingShape {
  static constexpr std::size_t kMaxReach = 2;
  static constexpr std::size_t kReachAtCap = 2;
  static constexpr int kStripeBits = 2;
  static constexpr std::size_t kLinesMovedAtOnce = 1;
};

// A table and a ledger of what it admitted.
template <Bug kBug, typename Shape = SmallShape>
class Subject {
 public:
  using SmallTable = Table<0, ScheduledAtomics<kBug>, Shape>;

  explicit Subject(bool may_grow, std::size_t lines = 1)
      : budget_(may_grow ? std::size_t{1} << 20 : 0),
        table_(budget_, {.first_lines = lines, .grace = Ticks(0)}) {}

  bool Charge(std::uint64_t key, std::int64_t burst, std::int64_t cost = 1) {
    bool allowed = false;
    table_.Update(key, kNow, [&](std::uint64_t word) {
      const std::int64_t level = LevelOf(word) + cost * kInterval;
      allowed = level <= burst * kInterval;
      return allowed ? MakeWord(kNow + Ticks(level)) : word | kDeniedBit;
    });
    if (allowed) admitted_[key] += cost;
    return allowed;
  }

  // Both or neither, each against its own burst.
  bool ChargeBoth(std::uint64_t low_key, std::int64_t low_burst, std::uint64_t high_key,
                  std::int64_t high_burst) {
    const auto low = table_.Lock(low_key, kNow, CallerHolds::kNothing);
    const auto high = table_.Lock(high_key, kNow, CallerHolds::kSlots);
    const std::int64_t low_level = LevelOf(low.word) + kInterval;
    const std::int64_t high_level = LevelOf(high.word) + kInterval;
    const bool pass = low_level <= low_burst * kInterval && high_level <= high_burst * kInterval;
    if (pass) {
      ++admitted_[low_key];
      ++admitted_[high_key];
    }
    table_.Unlock(low, pass ? MakeWord(kNow + Ticks(low_level)) : low.word);
    table_.Unlock(high, pass ? MakeWord(kNow + Ticks(high_level)) : high.word);
    return pass;
  }

  // The same the short way, as far as nobody interferes; the keys in any order.
  bool TryBoth(std::uint64_t one_key, std::int64_t one_burst, std::uint64_t other_key,
               std::int64_t other_burst) {
    const std::array<typename SmallTable::Seen, 2> seen = {table_.See(one_key),
                                                           table_.See(other_key)};
    const auto [one, other] = seen;
    const auto long_way = [&] {
      return one_key < other_key ? ChargeBoth(one_key, one_burst, other_key, other_burst)
                                 : ChargeBoth(other_key, other_burst, one_key, one_burst);
    };
    if (one.slot == nullptr || other.slot == nullptr) return long_way();
    const std::int64_t one_level = LevelOf(one.word) + kInterval;
    const std::int64_t other_level = LevelOf(other.word) + kInterval;
    if (one_level > one_burst * kInterval || other_level > other_burst * kInterval) {
      return SmallTable::IsAsSeen(one) && SmallTable::IsAsSeen(other) ? false : long_way();
    }
    const std::array<std::uint64_t, 2> words = {MakeWord(kNow + Ticks(one_level)),
                                                MakeWord(kNow + Ticks(other_level))};
    if (!SmallTable::TryStoreAll(seen, words)) return long_way();
    ++admitted_[one_key];
    ++admitted_[other_key];
    return true;
  }

  // Into an array of so many lines.
  void ShrinkTo(std::size_t lines, std::size_t live) {
    const std::size_t bytes = (lines + Shape::kMaxReach) * SmallTable::kLineBytes + lines;
    table_.ShrinkTo({.bytes = bytes, .live = live}, kNow);
  }
  std::size_t bytes() const { return table_.bytes(); }
  std::size_t counted_bytes() const { return budget_.used(); }

  std::int64_t Level(std::uint64_t key) {
    std::int64_t level = 0;
    table_.Update(key, kNow, [&](std::uint64_t word) {
      level = LevelOf(word);
      return word;
    });
    return level;
  }

  // Whether the table holds for every key exactly what was admitted; with evictions, no more.
  std::string Audit(bool evictions) {
    for (const auto& [key, cost] : admitted_) {
      const std::int64_t level = Level(key);
      const std::int64_t owed = cost * kInterval;
      if (level > owed) return "a key was charged for what another took";
      if (level < owed && !evictions) return "a charge was lost";
    }
    return "";
  }

 private:
  static std::int64_t LevelOf(std::uint64_t word) {
    return std::max<std::int64_t>(0, (FreshAt(word) - kNow).count());
  }

  ByteBudget budget_;
  SmallTable table_;
  std::map<std::uint64_t, std::int64_t> admitted_;
};

}  // namespace weir::interleaving
