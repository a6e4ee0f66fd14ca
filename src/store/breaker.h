// Whether a server is worth asking. When it fails or is slow too often, nobody asks for a while, so
// that requests are answered at once and the server has time to recover; then one probe at a time
// finds out whether it has.
//
//   opens    at half or more of 20 or more calls failed or slow within a second, at 5 time-outs
//            without an answer in between, or at 3 refused connections
//   probes   every 0.5 to 1 s, at random; a server that fails again within a second of its recovery
//            is left alone for a second first, so that one that flaps does not make it flutter
//   closes   when a probe succeeds
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include <weir/time.h>

namespace weir {

// One for each server and process. Thread-safe. While all is well a note takes no lock.
class Breaker {
 public:
  enum class Outcome : std::uint8_t {
    kAnswered,
    kFailed,    // The server said that it cannot, or the connection broke.
    kTimedOut,  // Nothing came in time.
    kRefused,   // No connection could be made.
  };

  struct Options {
    Duration slow = std::chrono::milliseconds(25);  // An answer that takes longer counts as failed.
    std::uint64_t seed = 0;                         // Of the times between probes; 0: random.
  };
  explicit Breaker(const Options& options) noexcept;

  // Whether calls should be made.
  bool IsClosed() const noexcept { return !open_.load(std::memory_order_acquire); }

  // What became of calls, of a connection attempt, or of a probe. While it is open this changes
  // nothing: what was under way when it opened says nothing new.
  void Note(Outcome outcome, Duration took, SteadyTime now, std::uint32_t calls = 1) noexcept;

  // While it is open: true for one caller when the time for a probe has come. Who is told so makes
  // one call, and says what became of it by NoteProbe. One who never does keeps nobody from the
  // next probe.
  bool TakeProbe(SteadyTime now) noexcept;
  void NoteProbe(bool succeeded, SteadyTime now) noexcept;
  // How long until TakeProbe is worth a try; zero if it is closed.
  Duration UntilProbe(SteadyTime now) const noexcept;

  // How often it has opened.
  std::uint64_t openings() const noexcept { return openings_.load(std::memory_order_relaxed); }

 private:
  // A second, a tenth at a time. A cell holds its number, how many calls ended then and how many of
  // them badly, in one word.
  static constexpr std::size_t kCells = 10;
  using Cells = std::array<std::atomic<std::uint64_t>, kCells>;

  bool IsBad(Outcome outcome, Duration took) const noexcept;
  void Count(std::uint64_t cell, std::uint32_t calls, bool bad) noexcept;
  bool IsWorthOpening(std::uint64_t cell) const noexcept;
  void Open(SteadyTime now) noexcept;
  // Needs the mutex.
  Duration DrawPause() noexcept;

  const Options options_;
  std::atomic<bool> open_{false};
  std::atomic<std::uint64_t> openings_{0};
  Cells cells_{};
  std::atomic<std::uint64_t> last_bad_{0};  // The cell of the latest call that ended badly, plus 1.
  std::atomic<std::uint32_t> timed_out_{0};  // Since the last answer.
  std::atomic<std::uint32_t> refused_{0};    // Likewise.

  mutable std::mutex mutex_;  // For what is below.
  std::uint64_t random_;
  SteadyTime probe_at_{};
  SteadyTime closed_at_ = SteadyTime::min();
};

}  // namespace weir
