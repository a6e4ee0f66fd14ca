// Windows that follow the calendar: the local days, weeks, months or years of a time zone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <weir/limit.h>
#include <weir/result.h>
#include <weir/time.h>

#include "limit/zone.h"

namespace weir {

// Thread-safe. A window begins with the first midnight of its first day: where the clock is set
// forward over midnight that is the first instant after it, and where the clock is set back and
// shows midnight twice it is the earlier one. So windows never overlap and leave no gap.
class Calendar {
 public:
  struct Window {
    WallTime start;
    WallTime end;  // The first instant that is no longer part of it.
  };

  // `week_start` matters to weeks only.
  static Result<std::shared_ptr<const Calendar>> Make(CalendarPeriod period,
                                                      const std::string& zone,
                                                      std::chrono::weekday week_start);

  // The window that `at` is in. Times before 1970 are in the first window of 1970, times after
  // 2200 in the last one of 2200. Never locks or allocates; asking again for the same window costs
  // one load.
  Window WindowAt(WallTime at) const noexcept;

  // The time in the years from 1970 to 2200 that is nearest to `at`: windows are known for these.
  static WallTime Nearest(WallTime at) noexcept;

 private:
  // A window in whole seconds, and as one word, so that it can be read and replaced at once:
  // the end in seconds since 1968 in the upper 38 bits, the length in seconds in the lower 26.
  struct Span {
    std::chrono::sys_seconds start;
    std::chrono::sys_seconds end;

    static Span FromWord(std::uint64_t word) noexcept;
    std::uint64_t ToWord() const noexcept;
    bool Holds(std::chrono::sys_seconds at) const noexcept { return start <= at && at < end; }
  };

  Calendar(CalendarPeriod period, Zone zone, std::chrono::weekday week_start);

  Span SpanAt(std::chrono::sys_seconds at) const noexcept;
  std::chrono::local_days FirstDay(std::chrono::local_days day) const noexcept;
  std::chrono::local_days NextFirstDay(std::chrono::local_days first_day) const noexcept;

  const CalendarPeriod period_;
  const std::chrono::weekday week_start_;
  const Zone zone_;
  mutable std::atomic<std::uint64_t> latest_{0};  // The window that was asked for last.
};

}  // namespace weir
