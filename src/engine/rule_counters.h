// How often each rule decided what. They outlive the policies: a rule is known by its name.
//
// On the way of every request, so no two threads write to the same place: each has a cell with a
// row for every rule, which it alone raises, by a load and a store. Only threads beyond the first
// 64 share one, and raise it by an atomic addition.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "telemetry/thread_number.h"

namespace weir {

struct RuleCount;

// Thread-safe.
class RuleCounters {
 public:
  // The rule called "" is what met no rule, with outcomes of its own.
  enum class Outcome : std::uint8_t { kAllowed, kDenied, kShadowDenied };
  enum class Unruled : std::uint8_t { kAllowList, kDenyList, kNoRule };
  static constexpr std::size_t kMostNames = 1'000;

  RuleCounters();

  // The row of a rule; the same whenever it is called by this name. The name must stay as long as
  // this.
  std::uint32_t RowOf(std::string_view name);

  // What this thread counts in. Not to be handed to another.
  class Cell {
   public:
    void Add(std::uint32_t row, Outcome outcome) const noexcept {
      Raise(row, static_cast<std::size_t>(outcome));
    }
    void Add(Unruled outcome) const noexcept { Raise(0, static_cast<std::size_t>(outcome)); }

   private:
    friend class RuleCounters;
    Cell(std::uint64_t* counts, bool shared) noexcept : counts_(counts), shared_(shared) {}
    void Raise(std::size_t row, std::size_t column) const noexcept {
      const std::atomic_ref<std::uint64_t> count(counts_[row * kColumns + column]);
      if (shared_) [[unlikely]] {
        count.fetch_add(1, std::memory_order_relaxed);
      } else {
        count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      }
    }

    std::uint64_t* counts_;
    bool shared_;
  };
  Cell OfThisThread() noexcept {
    const std::size_t number = ThreadNumber::OfThisThread();
    return {counts_.get() + number * kCellSize, number == ThreadNumber::kNumbers};
  }

  // Those above zero.
  std::vector<RuleCount> Read() const;

 private:
  static constexpr std::size_t kColumns = 4;  // One is not used: a row is never split by a line.
  static constexpr std::uint32_t kOtherRow = kMostNames + 1;
  static constexpr std::size_t kRows = kMostNames + 2;
  static constexpr std::size_t kCellSize = kRows * kColumns;
  static constexpr std::size_t kCells = ThreadNumber::kNumbers + 1;

  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  std::uint64_t Sum(std::size_t row, std::size_t column) const noexcept;

  // From the C heap, which leaves the pages of cells that nobody uses untouched.
  std::unique_ptr<std::uint64_t[], Free> counts_;
  mutable std::mutex mutex_;  // For the names.
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> rows_;
};

}  // namespace weir
