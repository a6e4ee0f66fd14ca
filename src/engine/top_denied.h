// The keys that are denied most, in a bounded amount of memory whatever the keys are.
//
// A sketch after Metwally et al., "Space-Saving": each cell keeps the counts of some keys. One that
// is not among them takes the place of the least of those, and goes on from its count, which is
// then the most that it may be too high by. So of N denials in a cell of k keys, every key with
// more than N / k is there, and no count is too low. Threads have different cells; on reading they
// are put together, and both promises hold for the sums.
//
// What was counted fades: every minute all counts are halved, rounded down, and at zero a key is no
// longer shown. So a key that is denied at a steady rate shows some two minutes of it, and one that
// stopped an hour ago shows nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include <weir/time.h>

#include "policy/subject.h"

namespace weir {

struct DeniedKey;

// What was denied. The name of the rule must stay for good, the key is copied.
struct DeniedCharge {
  std::uint64_t hash = 0;  // Of both.
  std::string_view rule{};
  std::string_view key{};  // Cut off after kMostSubjectBytes.
};

// One part of it. Not thread-safe.
class DeniedCell {
 public:
  static constexpr std::size_t kKeys = 512;
  static constexpr Duration kHalfLife = std::chrono::minutes(1);

  struct Entry {
    std::uint64_t hash;
    std::uint64_t count;
    std::uint64_t error;  // The most that the count is too high by.
    std::string_view rule;
    std::uint16_t place;  // In the heap.
    std::uint16_t next;   // With the same home, or kNone.
    std::uint8_t key_size;
    std::array<char, kMostSubjectBytes> key;

    std::string_view key_text() const noexcept { return {key.data(), key_size}; }
  };

  explicit DeniedCell(SteadyTime start) noexcept;

  void Add(const DeniedCharge& denied, SteadyTime now) noexcept;
  // Halves what was counted before, as often as is due.
  void Age(SteadyTime now) noexcept;

  std::span<const Entry> entries() const noexcept { return std::span(entries_).first(size_); }
  // What a key that is not here may have been denied at most.
  std::uint64_t least() const noexcept { return size_ < kKeys ? 0 : entries_[heap_[0]].count; }

 private:
  static constexpr std::uint16_t kNone = 0xffff;
  static constexpr std::size_t kHomes = 1'024;

  static std::size_t HomeOf(std::uint64_t hash) noexcept { return hash % kHomes; }
  std::uint16_t Find(std::uint64_t hash) const noexcept;
  void Unlink(std::uint16_t number) noexcept;
  void Write(std::uint16_t number, const DeniedCharge& denied) noexcept;
  void SiftUp(std::size_t place) noexcept;
  void SiftDown(std::size_t place) noexcept;
  void Put(std::size_t place, std::uint16_t number) noexcept {
    heap_[place] = number;
    entries_[number].place = static_cast<std::uint16_t>(place);
  }

  SteadyTime aged_at_;
  std::size_t size_ = 0;
  std::array<std::uint16_t, kKeys> heap_;    // Numbers of entries, the least count first.
  std::array<std::uint16_t, kHomes> homes_;  // The first entry of each, or kNone.
  std::array<Entry, kKeys> entries_;
};

// Thread-safe.
class DenialSketch {
 public:
  explicit DenialSketch(SteadyTime start);

  void Add(const DeniedCharge& denied, SteadyTime now) noexcept;
  // The first first; of equals the one with the smaller error.
  std::vector<DeniedKey> Read(std::size_t most, SteadyTime now) const;

 private:
  static constexpr std::size_t kCells = 8;
  struct alignas(64) Cell {
    explicit Cell(SteadyTime start) noexcept : counts(start) {}
    std::mutex mutex;
    DeniedCell counts;
  };

  std::vector<std::unique_ptr<Cell>> cells_;
};

}  // namespace weir
