// The one file that calls the date library, and so the one that catches what it throws.
#include "limit/zone.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <optional>

// How Debian's library was built: it reads the system's time zone files.
#ifndef USE_OS_TZDB
#define USE_OS_TZDB 1
#endif
#include <date/tz.h>

#include "limit/limit_words.h"
#include "limit/zone_rule.h"

namespace weir {
namespace {

using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

// A year more than anyone asks for, on both sides.
constexpr year kFirstYear{1968};
constexpr year kLastYear{2202};

// No local clock is further from UTC than this.
constexpr std::chrono::hours kLargestOffset{26};

sys_seconds StartOf(year y) { return sys_days(y / std::chrono::January / 1); }

// The last line of a time zone file; empty if there is none.
std::string LastLineOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::string last;
  while (std::getline(file, line)) last = std::move(line);
  return last;
}

// The library reads the switches that a file lists, but not the rule in its last line, so it knows
// of no daylight saving time after 2037.
std::optional<ZoneRule> RuleOf(const std::string& zone) {
  return ZoneRule::Parse(LastLineOf("/usr/share/zoneinfo/" + zone));
}

}  // namespace

Result<Zone> Zone::Load(const std::string& name) {
  Zone zone;
  if (name == "UTC") {
    zone.changes_.push_back({.at = StartOf(kFirstYear), .offset = seconds(0)});
    return zone;
  }
  try {
    const date::time_zone* source = date::locate_zone(name);
    for (sys_seconds at = StartOf(kFirstYear); at < StartOf(kLastYear);) {
      const date::sys_info info = source->get_info(at);
      zone.changes_.push_back({.at = at, .offset = info.offset});
      at = info.end;
    }
  } catch (const std::exception&) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument,
                                 "zone: " + Quoted(name) +
                                     " is not known on this machine; write a name such as "
                                     "Europe/Berlin, or UTC"});
  }
  if (const std::optional<ZoneRule> rule = RuleOf(name)) {
    const sys_seconds listed_until = zone.changes_.back().at;
    for (year y = kFirstYear; y < kLastYear; ++y) {
      for (const ZoneRule::Switch& next : rule->SwitchesIn(y)) {
        if (next.at > listed_until) zone.changes_.push_back({.at = next.at, .offset = next.offset});
      }
    }
  }
  return zone;
}

std::vector<Zone::Change>::const_iterator Zone::InForceAt(sys_seconds instant) const noexcept {
  const auto later = std::ranges::upper_bound(changes_, instant, {}, &Change::at);
  return later == changes_.begin() ? later : later - 1;
}

local_seconds Zone::LocalAt(sys_seconds instant) const noexcept {
  return local_seconds(instant.time_since_epoch() + InForceAt(instant)->offset);
}

sys_seconds Zone::FirstInstantAt(local_seconds local) const noexcept {
  const sys_seconds as_utc(local.time_since_epoch());
  auto change = InForceAt(as_utc - kLargestOffset);
  sys_seconds instant = as_utc - change->offset;
  for (auto next = change + 1; next != changes_.end() && next->at <= instant; ++next) {
    // The clock was changed before it came to show `local`. If it was set forward beyond that, the
    // change itself is the first instant that is late enough.
    instant = std::max(next->at, as_utc - next->offset);
  }
  return instant;
}

}  // namespace weir
