#include "limit/zone_rule.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace weir {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads the text from left to right. Each Read consumes what it understood, or says no.
class ZoneRuleText {
 public:
  explicit ZoneRuleText(std::string_view text) : rest_(text) {}

  bool ReadAll(ZoneRule& rule) {
    if (!SkipName() || !ReadOffset(rule.standard_offset_) || !SkipName()) return false;
    if (!ReadOffset(rule.daylight_offset_)) {
      rule.daylight_offset_ = rule.standard_offset_ + hours(1);
    }
    return ReadDay(rule.daylight_from_) && ReadDay(rule.standard_from_) && rest_.empty();
  }

 private:
  bool Skip(char expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // "CET", or "<+0330>" where a name has signs and digits.
  bool SkipName() {
    if (Skip('<')) {
      rest_.remove_prefix(std::min(rest_.find('>'), rest_.size()));
      return Skip('>');
    }
    const std::size_t end = std::min(rest_.find_first_of("+-0123456789,"), rest_.size());
    rest_.remove_prefix(end);
    return end > 0;
  }

  // 8 bits hold more than the 167 hours that are allowed, and cannot overflow anything below.
  bool ReadNumber(std::uint8_t& number) {
    const char* end = rest_.data() + rest_.size();
    const std::from_chars_result read = std::from_chars(rest_.data(), end, number);
    rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()));
    return read.ec == std::errc();
  }

  // [+-]hours[:minutes[:seconds]]
  bool ReadTime(seconds& time) {
    const bool negative = Skip('-');
    if (!negative) Skip('+');
    std::uint8_t hour = 0;
    std::uint8_t minute = 0;
    std::uint8_t second = 0;
    if (!ReadNumber(hour)) return false;
    if (Skip(':') && !ReadNumber(minute)) return false;
    if (Skip(':') && !ReadNumber(second)) return false;
    time = hours(hour) + minutes(minute) + seconds(second);
    if (negative) time = -time;
    return true;
  }

  // POSIX counts offsets westwards.
  bool ReadOffset(seconds& offset) {
    if (!ReadTime(offset)) return false;
    offset = -offset;
    return true;
  }

  // ,Mmonth.week.weekday[/time]
  bool ReadDay(ZoneRule::Day& day) {
    std::uint8_t month = 0;
    std::uint8_t week = 0;
    std::uint8_t weekday = 0;
    if (!Skip(',') || !Skip('M') || !ReadNumber(month) || !Skip('.') || !ReadNumber(week) ||
        !Skip('.') || !ReadNumber(weekday)) {
      return false;
    }
    day = {.month = std::chrono::month(month),
           .week = week,
           .weekday = std::chrono::weekday(weekday),
           .time = hours(2)};
    if (!day.month.ok() || week < 1 || week > 5 || weekday > 6) return false;
    return !Skip('/') || ReadTime(day.time);
  }

  std::string_view rest_;
};

std::optional<ZoneRule> ZoneRule::Parse(std::string_view text) {
  ZoneRule rule;
  if (!ZoneRuleText(text).ReadAll(rule)) return std::nullopt;
  return rule;
}

std::array<ZoneRule::Switch, 2> ZoneRule::SwitchesIn(std::chrono::year year) const {
  const Switch to_daylight{.at = At(daylight_from_, year, standard_offset_),
                           .offset = daylight_offset_};
  const Switch to_standard{.at = At(standard_from_, year, daylight_offset_),
                           .offset = standard_offset_};
  if (to_daylight.at < to_standard.at) return {to_daylight, to_standard};
  return {to_standard, to_daylight};
}

std::chrono::sys_seconds ZoneRule::At(const Day& day, std::chrono::year year,
                                      seconds offset_before) {
  const std::chrono::year_month month = year / day.month;
  const std::chrono::sys_days midnight =
      day.week == 5 ? std::chrono::sys_days(month / day.weekday[std::chrono::last])
                    : std::chrono::sys_days(month / day.weekday[day.week]);
  return midnight + day.time - offset_before;
}

}  // namespace weir
