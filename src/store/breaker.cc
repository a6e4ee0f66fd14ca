#include "store/breaker.h"

#include <algorithm>
#include <random>

#include "base/mix.h"

namespace weir {
namespace {

constexpr std::uint32_t kFewestCalls = 20;
constexpr std::uint32_t kMostTimedOut = 5;
constexpr std::uint32_t kMostRefused = 3;
constexpr Duration kCellTime = std::chrono::milliseconds(100);
constexpr Duration kShortestProbePause = std::chrono::milliseconds(500);
constexpr Duration kLongestProbePause = std::chrono::seconds(1);
// How soon after its recovery a failure counts as a relapse, and what is added to the pause then.
constexpr Duration kRelapse = std::chrono::seconds(1);
constexpr Duration kRelapsePause = std::chrono::milliseconds(500);

// A cell: its number in 24 bits, which lasts for 19 days, calls in 20 and bad calls in 20.
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 24) - 1;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << 20) - 1;
constexpr std::uint64_t NumberOf(std::uint64_t word) noexcept { return word >> 40; }
constexpr std::uint64_t CallsOf(std::uint64_t word) noexcept { return (word >> 20) & kCountMask; }
constexpr std::uint64_t BadOf(std::uint64_t word) noexcept { return word & kCountMask; }
constexpr std::uint64_t MakeCell(std::uint64_t number, std::uint64_t calls,
                                 std::uint64_t bad) noexcept {
  return number << 40 | calls << 20 | bad;
}

std::uint64_t CellAt(SteadyTime now) noexcept {
  return static_cast<std::uint64_t>(now.time_since_epoch() / kCellTime) & kNumberMask;
}

std::uint64_t RandomSeed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

Breaker::Breaker(const Options& options) noexcept
    : options_(options), random_(options.seed == 0 ? RandomSeed() : options.seed) {}

bool Breaker::IsBad(Outcome outcome, Duration took) const noexcept {
  return outcome != Outcome::kAnswered || took > options_.slow;
}

void Breaker::Note(Outcome outcome, Duration took, SteadyTime now, std::uint32_t calls) noexcept {
  if (!IsClosed() || calls == 0) return;
  const bool bad = IsBad(outcome, took);
  const std::uint64_t cell = CellAt(now);
  Count(cell, calls, bad);
  if (outcome == Outcome::kAnswered) {
    // Looked at first: a word that nobody writes is cheap to share.
    if (timed_out_.load(std::memory_order_relaxed) != 0) timed_out_ = 0;
    if (refused_.load(std::memory_order_relaxed) != 0) refused_ = 0;
  }
  bool enough = false;
  if (outcome == Outcome::kTimedOut) enough = timed_out_.fetch_add(calls) + calls >= kMostTimedOut;
  if (outcome == Outcome::kRefused) enough = refused_.fetch_add(calls) + calls >= kMostRefused;
  if (bad) last_bad_.store(cell + 1, std::memory_order_relaxed);
  if (enough || IsWorthOpening(cell)) Open(now);
}

void Breaker::Count(std::uint64_t cell, std::uint32_t calls, bool bad) noexcept {
  std::atomic<std::uint64_t>& word = cells_[cell % kCells];
  std::uint64_t before = word.load(std::memory_order_relaxed);
  std::uint64_t after = 0;
  do {
    const std::uint64_t held = NumberOf(before) == cell ? before : 0;
    std::uint64_t all = CallsOf(held) + calls;
    std::uint64_t failed = BadOf(held) + (bad ? calls : 0);
    // What matters is the proportion.
    while (all > kCountMask) {
      all /= 2;
      failed /= 2;
    }
    after = MakeCell(cell, all, failed);
  } while (!word.compare_exchange_weak(before, after, std::memory_order_relaxed));
}

bool Breaker::IsWorthOpening(std::uint64_t cell) const noexcept {
  const auto is_recent = [&](std::uint64_t number) {
    return ((cell - number) & kNumberMask) < kCells;
  };
  const std::uint64_t last_bad = last_bad_.load(std::memory_order_relaxed);
  if (last_bad == 0 || !is_recent(last_bad - 1)) return false;
  std::uint64_t calls = 0;
  std::uint64_t bad = 0;
  for (const std::atomic<std::uint64_t>& each : cells_) {
    const std::uint64_t word = each.load(std::memory_order_relaxed);
    if (!is_recent(NumberOf(word))) continue;
    calls += CallsOf(word);
    bad += BadOf(word);
  }
  return calls >= kFewestCalls && 2 * bad >= calls;
}

void Breaker::Open(SteadyTime now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!IsClosed()) return;
  const bool relapse = closed_at_ != SteadyTime::min() && now - closed_at_ < kRelapse;
  probe_at_ = now + DrawPause() + (relapse ? kRelapsePause : Duration(0));
  openings_.fetch_add(1, std::memory_order_relaxed);
  open_.store(true, std::memory_order_release);
}

Duration Breaker::DrawPause() noexcept {
  random_ = Mix(random_);
  const auto span = static_cast<std::uint64_t>((kLongestProbePause - kShortestProbePause).count());
  return kShortestProbePause + Duration(static_cast<std::int64_t>(random_ % (span + 1)));
}

bool Breaker::TakeProbe(SteadyTime now) noexcept {
  if (IsClosed()) return false;
  const std::scoped_lock lock(mutex_);
  if (IsClosed()) return false;
  // Further ahead than any pause: the clock was set back.
  const bool damaged = probe_at_ - now > kLongestProbePause + kRelapsePause;
  if (now < probe_at_ && !damaged) return false;
  probe_at_ = now + DrawPause();
  return true;
}

void Breaker::NoteProbe(bool succeeded, SteadyTime now) noexcept {
  const std::scoped_lock lock(mutex_);
  if (IsClosed()) return;
  if (!succeeded) {
    probe_at_ = now + DrawPause();
    return;
  }
  for (std::atomic<std::uint64_t>& cell : cells_) cell.store(0, std::memory_order_relaxed);
  last_bad_ = 0;
  timed_out_ = 0;
  refused_ = 0;
  closed_at_ = now;
  open_.store(false, std::memory_order_release);
}

Duration Breaker::UntilProbe(SteadyTime now) const noexcept {
  if (IsClosed()) return Duration(0);
  const std::scoped_lock lock(mutex_);
  const Duration left = probe_at_ - now;
  return left > kLongestProbePause + kRelapsePause ? Duration(0) : std::max(left, Duration(0));
}

}  // namespace weir
