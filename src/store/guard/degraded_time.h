// When the store is taken for broken: from the first failure on, until a call succeeds and none has
// failed for a second. While some servers of a store fail and others do not, it stays broken; and
// so that a store that flaps does not flood the log, a degraded time lasts a second at least.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include <weir/time.h>

namespace weir {

// The questions are for any thread, and cheap while all is well. Begin and End are for one thread
// at a time.
class DegradedTime {
 public:
  static constexpr Duration kCalm = std::chrono::seconds(1);

  bool IsOn() const noexcept { return on_.load(std::memory_order_acquire); }
  Duration Lasted(SteadyTime now) const noexcept;

  // True if a degraded time should begin.
  bool NoteFailure(SteadyTime now) noexcept;
  // True if it should end.
  bool NoteSuccess(SteadyTime now) noexcept;

  // False if it is on already.
  bool Begin(SteadyTime now) noexcept;
  // How long it lasted; none if it was over already, or something failed meanwhile.
  std::optional<Duration> End(SteadyTime now) noexcept;

  // How many there were, this one included.
  std::uint64_t times() const noexcept { return times_.load(std::memory_order_relaxed); }

 private:
  bool IsCalm(SteadyTime now) const noexcept;

  std::atomic<bool> on_{false};
  std::atomic<SteadyTime> began_{SteadyTime{}};
  std::atomic<SteadyTime> failed_{SteadyTime{}};  // Last.
  std::atomic<std::uint64_t> times_{0};
};

}  // namespace weir
