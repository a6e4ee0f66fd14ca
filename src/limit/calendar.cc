#include "limit/calendar.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

using std::chrono::days;
using std::chrono::January;
using std::chrono::local_days;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr sys_seconds kEarliest = sys_days(year(1970) / January / 1);
constexpr sys_seconds kLatest = sys_days(year(2201) / January / 1);  // No longer part of it.

// Before every end of a window, so that what is stored is positive.
constexpr sys_seconds kWordOrigin = sys_days(year(1968) / January / 1);
constexpr int kLengthBits = 26;  // Two years.

}  // namespace

Calendar::Span Calendar::Span::FromWord(std::uint64_t word) noexcept {
  const sys_seconds end = kWordOrigin + seconds(word >> kLengthBits);
  return {.start = end - seconds(word & ((1U << kLengthBits) - 1)), .end = end};
}

std::uint64_t Calendar::Span::ToWord() const noexcept {
  const auto since_origin = static_cast<std::uint64_t>((end - kWordOrigin).count());
  const auto length = static_cast<std::uint64_t>((end - start).count());
  return since_origin << kLengthBits | length;
}

Result<std::shared_ptr<const Calendar>> Calendar::Make(CalendarPeriod period,
                                                       const std::string& zone,
                                                       std::chrono::weekday week_start) {
  if (period == CalendarPeriod::kNone) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                 "calendar: none is not a period; write day, week, month or year"});
  }
  if (!week_start.ok()) {
    return std::unexpected(
        Error{ErrorCode::kInvalidArgument, "week_start: not a weekday; write Monday to Sunday"});
  }
  Result<Zone> loaded = Zone::Load(zone);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  return std::shared_ptr<const Calendar>(new Calendar(period, *std::move(loaded), week_start));
}

Calendar::Calendar(CalendarPeriod period, Zone zone, std::chrono::weekday week_start)
    : period_(period), week_start_(week_start), zone_(std::move(zone)) {}

WallTime Calendar::Nearest(WallTime at) noexcept {
  return std::clamp(at, WallTime(kEarliest), WallTime(kLatest) - Duration(1));
}

Calendar::Window Calendar::WindowAt(WallTime at) const noexcept {
  const auto second = std::chrono::floor<seconds>(Nearest(at));
  // The word is all there is to the cache, so relaxed order is enough.
  Span span = Span::FromWord(latest_.load(std::memory_order_relaxed));
  if (!span.Holds(second)) {
    span = SpanAt(second);
    latest_.store(span.ToWord(), std::memory_order_relaxed);
  }
  return {.start = span.start, .end = span.end};
}

Calendar::Span Calendar::SpanAt(sys_seconds at) const noexcept {
  const auto start_of = [this](local_days day) { return zone_.FirstInstantAt(day); };
  local_days first_day = FirstDay(std::chrono::floor<days>(zone_.LocalAt(at)));
  local_days next = NextFirstDay(first_day);
  // A clock set back from just after midnight shows the old day again, in the new day's window.
  while (start_of(next) <= at) first_day = std::exchange(next, NextFirstDay(next));
  return {.start = start_of(first_day), .end = start_of(next)};
}

local_days Calendar::FirstDay(local_days day) const noexcept {
  const year_month_day date(day);
  switch (period_) {
    case CalendarPeriod::kWeek:
      return day - (std::chrono::weekday(day) - week_start_);
    case CalendarPeriod::kMonth:
      return local_days(date.year() / date.month() / 1);
    case CalendarPeriod::kYear:
      return local_days(date.year() / January / 1);
    default:
      return day;
  }
}

local_days Calendar::NextFirstDay(local_days first_day) const noexcept {
  const year_month_day date(first_day);
  switch (period_) {
    case CalendarPeriod::kWeek:
      return first_day + days(7);
    case CalendarPeriod::kMonth:
      return local_days(date + std::chrono::months(1));
    case CalendarPeriod::kYear:
      return local_days(date + std::chrono::years(1));
    default:
      return first_day + days(1);
  }
}

}  // namespace weir
