// The most requests of a client within any stretch of time of one length, in little memory.
//
// Requests that follow each other closely are kept as one run: when the first and the last came,
// and how many there were. A run that is half out of the window counts by half. So what is found
// lies between the exact peaks for windows that are shorter and longer by the longest run there may
// be, which is a thousandth of a second or minute, 1/128 of an hour and 1/64 of a day. A client
// needs 12 bytes for each run in the window, and none once it has been away for that long.
#pragma once

#include <cstdint>
#include <vector>

#include <weir/time.h>

namespace weir::lab {

// Runs of all clients, in lists. Freed ones are used again.
class RunPool {
 public:
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  static constexpr std::uint32_t kMostInRun = (1U << 24) - 1;

  struct Run {
    std::uint32_t start = 0;  // Ticks.
    std::uint32_t next = kNone;
    std::uint32_t length : 8 = 0;  // Ticks from the first to the last.
    std::uint32_t count : 24 = 0;
  };

  std::uint32_t Add(const Run& run);
  void Free(std::uint32_t run) noexcept;
  Run& operator[](std::uint32_t run) noexcept { return runs_[run]; }
  const Run& operator[](std::uint32_t run) const noexcept { return runs_[run]; }

  std::size_t used() const noexcept { return runs_.size() - freed_; }
  bool full() const noexcept { return free_ == kNone; }  // The next one needs more memory.
  std::size_t bytes() const noexcept { return runs_.capacity() * sizeof(Run); }

 private:
  std::vector<Run> runs_;
  std::uint32_t free_ = kNone;
  std::size_t freed_ = 0;
};

// For one client and one length of time. Times are ticks, of which the length has kTicks; they may
// wrap around, as long as those who call see to it that a client that was away for longer than the
// length is forgotten first.
class PeakWindow {
 public:
  // A whole number of nanoseconds each, whatever the length is.
  static constexpr std::uint32_t kTicks = 4000;

  // One more request, not earlier than the one before. `longest_run` in ticks, at most 255.
  void Add(std::uint32_t tick, std::uint32_t longest_run, RunPool& pool) {
    if (newest_.count > 0 && tick - newest_.start <= longest_run &&
        newest_.count < RunPool::kMostInRun) {
      newest_.length = (tick - newest_.start) & 0xff;
      ++newest_.count;
    } else {
      StartRun(tick, pool);
    }
    ++count_;
    const bool all_within = oldest_ == RunPool::kNone || tick - oldest_start_ < kTicks;
    const std::uint32_t partly_out = all_within ? 0 : Expire(tick, pool);
    Note(count_ - partly_out);
  }
  // Nothing of it matters any more but the peak.
  void Forget(RunPool& pool) noexcept;

  std::uint32_t peak() const noexcept { return peak_; }

 private:
  void Note(std::uint32_t count) noexcept {
    if (count > peak_) peak_ = count;
  }
  void StartRun(std::uint32_t tick, RunPool& pool);
  // Drops the runs that are out; of the one that is so in part, how many are.
  std::uint32_t Expire(std::uint32_t tick, RunPool& pool) noexcept;

  std::uint32_t count_ = 0;  // Of all runs.
  std::uint32_t peak_ = 0;
  RunPool::Run newest_{};  // Here, as it is the one that is needed for most requests.
  std::uint32_t oldest_ = RunPool::kNone;  // Those before it.
  std::uint32_t last_ = RunPool::kNone;
  std::uint32_t oldest_start_ = 0;
};

}  // namespace weir::lab
