// Whether a server is worth asking. When it fails or is slow too often, nobody asks for a while, so
// that requests are answered at once and the server has time to recover; then one probe at a time
// finds out whether it has.
//
//   opens    at half or more of 20 or more calls failed or slow within a second, at 5 time-outs in
//   a
//            row, or at 3 refused connections in a row
//   probes   every 0.5 to 1 s, at random
//   closes   when a probe succeeds
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <weir/time.h>

namespace weir {

// One for each server and process. Thread-safe.
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

  // What became of calls, of a connection attempt, or of a probe.
  void Note(Outcome outcome, Duration took, SteadyTime now, std::uint32_t calls = 1) noexcept;

  // While it is open: true for one caller when the time for a probe has come. Who is told so makes
  // one call, and says what became of it by NoteProbe.
  bool TakeProbe(SteadyTime now) noexcept;
  void NoteProbe(bool succeeded, SteadyTime now) noexcept;
  // How long until TakeProbe is worth a try; zero if it is closed.
  Duration UntilProbe(SteadyTime now) const noexcept;

  // How often it has opened.
  std::uint64_t openings() const noexcept { return openings_.load(std::memory_order_relaxed); }

 private:
  const Options options_;
  std::atomic<bool> open_{false};
  std::atomic<std::uint64_t> openings_{0};
  mutable std::mutex mutex_;
};

}  // namespace weir
