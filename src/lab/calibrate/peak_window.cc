#include "lab/calibrate/peak_window.h"

namespace weir::lab {

std::uint32_t RunPool::Add(const Run& run) {
  if (free_ == kNone) {
    runs_.push_back(run);
    return static_cast<std::uint32_t>(runs_.size() - 1);
  }
  const std::uint32_t place = free_;
  free_ = runs_[place].next;
  --freed_;
  runs_[place] = run;
  return place;
}

void RunPool::Free(std::uint32_t run) noexcept {
  runs_[run].next = free_;
  free_ = run;
  ++freed_;
}

void PeakWindow::StartRun(std::uint32_t tick, RunPool& pool) {
  if (newest_.count > 0) {
    newest_.next = RunPool::kNone;
    const std::uint32_t place = pool.Add(newest_);
    if (oldest_ == RunPool::kNone) {
      oldest_ = place;
      oldest_start_ = newest_.start;
    } else {
      pool[last_].next = place;
    }
    last_ = place;
  }
  newest_ = {};
  newest_.start = tick;
  newest_.count = 1;
}

std::uint32_t PeakWindow::Expire(std::uint32_t tick, RunPool& pool) noexcept {
  while (oldest_ != RunPool::kNone) {
    const RunPool::Run run = pool[oldest_];
    const std::uint32_t age = tick - run.start;
    if (age < kTicks) return 0;
    // Of the ticks from its first request to its last, so many are out, the first included.
    const std::uint32_t out = age - kTicks + 1;
    if (out <= run.length) {
      return static_cast<std::uint32_t>(std::uint64_t{run.count} * out / (run.length + 1U));
    }
    count_ -= run.count;
    pool.Free(oldest_);
    oldest_ = run.next;
    if (oldest_ == RunPool::kNone) {
      last_ = RunPool::kNone;
    } else {
      oldest_start_ = pool[oldest_].start;
    }
  }
  return 0;
}

void PeakWindow::Forget(RunPool& pool) noexcept {
  while (oldest_ != RunPool::kNone) {
    const std::uint32_t next = pool[oldest_].next;
    pool.Free(oldest_);
    oldest_ = next;
  }
  last_ = RunPool::kNone;
  newest_ = {};
  count_ = 0;
}

}  // namespace weir::lab
