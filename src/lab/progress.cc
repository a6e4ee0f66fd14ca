#include "lab/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "lab/report.h"
#include "lab/seconds.h"

namespace weir::lab {
namespace {

constexpr Duration kFirstWrite = std::chrono::milliseconds(500);  // Short work needs no line.
constexpr Duration kWriteEvery = std::chrono::milliseconds(200);
constexpr int kBarWidth = 24;

std::string Bar(double part) {
  const int full = static_cast<int>(part * kBarWidth);
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < full ? "█" : "░";
  return bar;
}

}  // namespace

Progress::Progress(Options options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : SystemClock::Shared()),
      began_(clock_.Read().steady),
      next_write_(kFirstWrite.count()) {}

Progress::~Progress() { Clear(); }

void Progress::Advance(std::uint64_t things, std::uint64_t share) noexcept {
  things_.fetch_add(things, std::memory_order_relaxed);
  share_.fetch_add(share, std::memory_order_relaxed);
  if (options_.out == nullptr) return;
  const SteadyTime now = clock_.Read().steady;
  std::int64_t due = next_write_.load(std::memory_order_relaxed);
  const std::int64_t passed = (now - began_).count();
  // Whoever moves the time of the next writing on is the one who writes.
  if (passed < due || !next_write_.compare_exchange_strong(due, passed + kWriteEvery.count()))
    return;
  Write(now);
}

void Progress::Write(SteadyTime now) noexcept {
  const double seconds = SecondsIn(now - began_);
  const auto things = static_cast<double>(things_.load());
  const auto total = static_cast<double>(total_.load());
  const double part = total > 0 ? std::min(1.0, static_cast<double>(share_.load()) / total) : 0;
  std::string line = "\r\x1b[2K";
  if (total > 0) {
    char percent[16];
    std::snprintf(percent, sizeof percent, " %3.0f %%  ", part * 100);
    line += Bar(part) + percent;
  }
  line += WriteValue(things, Unit::kCount) + " " + options_.what + ", " +
          WriteValue(things / seconds, Unit::kRate);
  if (part > 0.001) line += ", " + WriteValue(seconds / part - seconds, Unit::kSeconds) + " left";
  *options_.out << line << std::flush;
  is_shown_ = true;
}

void Progress::Clear() noexcept {
  if (is_shown_.exchange(false)) *options_.out << "\r\x1b[2K" << std::flush;
}

}  // namespace weir::lab
