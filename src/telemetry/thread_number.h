// A small number for each thread, so that it can have a cell of its own wherever threads would
// otherwise get in each other's way.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir {

class ThreadNumber {
 public:
  ThreadNumber(const ThreadNumber&) = delete;
  ThreadNumber& operator=(const ThreadNumber&) = delete;

  static constexpr std::size_t kNumbers = 64;

  // Below kNumbers and this thread's alone, or kNumbers, which all threads share that came when no
  // number was left. A number is given again when its thread has ended, and whoever gets it sees
  // what the one before has written.
  static std::size_t OfThisThread() noexcept {
    thread_local const ThreadNumber kMine;
    return kMine.number_;
  }

 private:
  ThreadNumber() noexcept {
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    do {
      number_ = static_cast<std::size_t>(std::countr_one(taken));
    } while (number_ < kNumbers &&
             !taken_.compare_exchange_weak(taken, taken | std::uint64_t{1} << number_,
                                           std::memory_order_acquire, std::memory_order_relaxed));
  }
  ~ThreadNumber() {
    if (number_ == kNumbers) return;
    taken_.fetch_and(~(std::uint64_t{1} << number_), std::memory_order_release);
  }

  // NOLINTNEXTLINE(readability-identifier-naming): a member all the same.
  static inline std::atomic<std::uint64_t> taken_{0};  // One bit for each number.

  std::size_t number_ = kNumbers;
};

}  // namespace weir
