#include "store/guard/degraded_time.h"

#include <algorithm>

namespace weir {

Duration DegradedTime::Lasted(SteadyTime now) const noexcept {
  if (!IsOn()) return Duration(0);
  return std::max(Duration(0), now - began_.load(std::memory_order_relaxed));
}

bool DegradedTime::NoteFailure(SteadyTime now) noexcept {
  failed_.store(now, std::memory_order_relaxed);
  return !IsOn();
}

bool DegradedTime::NoteSuccess(SteadyTime now) noexcept {
  if (!IsOn()) [[likely]]
    return false;
  // The last failure is in times to come: the clock was set back.
  if (failed_.load(std::memory_order_relaxed) - now > kCalm) failed_.store(now);
  return IsCalm(now);
}

bool DegradedTime::IsCalm(SteadyTime now) const noexcept {
  return now - failed_.load(std::memory_order_relaxed) >= kCalm;
}

bool DegradedTime::Begin(SteadyTime now) noexcept {
  if (IsOn()) return false;
  began_.store(now, std::memory_order_relaxed);
  times_.fetch_add(1, std::memory_order_relaxed);
  on_.store(true, std::memory_order_release);
  return true;
}

std::optional<Duration> DegradedTime::End(SteadyTime now) noexcept {
  if (!IsOn() || !IsCalm(now)) return std::nullopt;
  const Duration lasted = Lasted(now);
  on_.store(false, std::memory_order_release);
  return lasted;
}

}  // namespace weir
