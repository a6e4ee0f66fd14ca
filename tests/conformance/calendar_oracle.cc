// Local midnights by walking the C library's idea of local time, quarter hour by quarter hour:
// every zone's clock has been set on whole quarters since 1972.
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "oracle.h"

namespace weir::conformance {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

tm Local(const std::string& zone, time_t at) {
  static std::string current;
  if (current != zone) {
    setenv("TZ", (":" + zone).c_str(), 1);
    tzset();
    current = zone;
  }
  tm local{};
  localtime_r(&at, &local);
  return local;
}

sys_days LocalDay(const std::string& zone, time_t at) {
  const tm local = Local(zone, at);
  return sys_days(std::chrono::year(local.tm_year + 1900) /
                  std::chrono::month(static_cast<unsigned>(local.tm_mon + 1)) /
                  std::chrono::day(static_cast<unsigned>(local.tm_mday)));
}

// The first instant whose local date is `day` or later: of a doubled midnight the earlier, after a
// missing one the first that exists.
time_t FirstInstant(const std::string& zone, sys_days day) {
  static std::map<std::pair<std::string, sys_days>, time_t> known;
  const auto [entry, is_new] = known.try_emplace({zone, day});
  if (is_new) {
    const time_t utc = std::chrono::seconds(day.time_since_epoch()).count();
    entry->second = utc - 27 * 3600;
    while (LocalDay(zone, entry->second) < day) entry->second += 15 * 60;
  }
  return entry->second;
}

// Whether a period begins with that day.
bool Begins(const LimitSpec& spec, sys_days day) {
  const std::chrono::year_month_day date(day);
  switch (spec.calendar) {
    case CalendarPeriod::kWeek:
      return std::chrono::weekday(day) == spec.week_start;
    case CalendarPeriod::kMonth:
      return date.day() == std::chrono::day(1);
    case CalendarPeriod::kYear:
      return date.day() == std::chrono::day(1) && date.month() == std::chrono::January;
    default:
      return true;
  }
}

}  // namespace

WallTime CalendarEnd(const LimitSpec& spec, WallTime wall) {
  const time_t now = std::chrono::floor<std::chrono::seconds>(wall).time_since_epoch().count();
  for (sys_days day = LocalDay(spec.zone, now);; day += days(1)) {
    if (!Begins(spec, day)) continue;
    const time_t begin = FirstInstant(spec.zone, day);
    if (begin > now) return WallTime(std::chrono::seconds(begin));
  }
}

}  // namespace weir::conformance
