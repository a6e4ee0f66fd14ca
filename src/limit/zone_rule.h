// The rule by which a zone switches to and from daylight saving time in years to come.
//
// Time zone files list switches only up to some year (2037, or the last change of the rule) and
// end in a line of POSIX TZ text for all later ones: "CET-1CEST,M3.5.0,M10.5.0/3".
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string_view>

namespace weir {

class ZoneRule {
 public:
  struct Switch {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset;  // From UTC, in force from then on.
  };

  // Nothing if the text names no daylight saving time, or is not understood. Days are understood
  // as month, week and weekday only; no zone uses the other two ways of POSIX.
  static std::optional<ZoneRule> Parse(std::string_view text);

  // The two switches of a year, the earlier one first.
  std::array<Switch, 2> SwitchesIn(std::chrono::year year) const;

 private:
  // The `week`th `weekday` of `month`, where the 5th means the last; `time` after its midnight.
  struct Day {
    std::chrono::month month;
    unsigned week = 0;
    std::chrono::weekday weekday;
    std::chrono::seconds time{};
  };
  friend class ZoneRuleText;

  static std::chrono::sys_seconds At(const Day& day, std::chrono::year year,
                                     std::chrono::seconds offset_before);

  std::chrono::seconds standard_offset_{};
  std::chrono::seconds daylight_offset_{};
  Day daylight_from_{};
  Day standard_from_{};
};

}  // namespace weir
