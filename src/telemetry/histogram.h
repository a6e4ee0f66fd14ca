// How long things took: counts by powers of two and their halves, for one thread to write and
// others to read. Recording costs a nanosecond.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <weir/time.h>

namespace weir {

class Histogram {
 public:
  // Bucket n holds what is at most Bound(n) and above Bound(n - 1): 256 ns, 384 ns, 512 ns, ... up
  // to 12.9 s. The last one holds everything above.
  static constexpr std::size_t kBuckets = 53;
  static constexpr std::uint64_t Bound(std::size_t bucket) noexcept {
    const std::uint64_t power = std::uint64_t{256} << (bucket / 2);
    return bucket % 2 == 0 ? power : power + power / 2;
  }

  // `times` times the same. By the one thread that writes.
  void Record(Duration time, std::uint64_t times = 1) noexcept {
    const auto length = static_cast<std::uint64_t>(time.count() < 0 ? 0 : time.count());
    Raise(counts_[BucketOf(length)], times);
    Raise(sum_, length * times);
  }

  std::uint64_t count(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  std::uint64_t sum_nanoseconds() const noexcept { return sum_.load(std::memory_order_relaxed); }

  static constexpr std::size_t BucketOf(std::uint64_t length) noexcept {
    if (length <= 256) return 0;
    // `power` is the largest power of two below `length`.
    const std::size_t exponent = static_cast<std::size_t>(std::bit_width(length - 1)) - 1;
    const std::uint64_t power = std::uint64_t{1} << exponent;
    const std::size_t bucket = (exponent - 8) * 2 + (length <= power + power / 2 ? 1 : 2);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }

 private:
  static void Raise(std::atomic<std::uint64_t>& value, std::uint64_t by) noexcept {
    value.store(value.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace weir
