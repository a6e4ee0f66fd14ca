// What local clocks show: a time zone's offsets from UTC as one plain table.
//
// The table is made once from the system's time zone files; asking it needs no lock, no memory
// and no library. It spans more than the years 1970 to 2200.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <weir/result.h>

namespace weir {

// Immutable once loaded; safe to share.
class Zone {
 public:
  // `name` as in "Europe/Berlin". "UTC" works without time zone files.
  static Result<Zone> Load(const std::string& name);

  // What a clock on the wall shows at `instant`.
  std::chrono::local_seconds LocalAt(std::chrono::sys_seconds instant) const noexcept;

  // The first instant at which the clock shows `local` or, where it jumped over that, a later time.
  std::chrono::sys_seconds FirstInstantAt(std::chrono::local_seconds local) const noexcept;

 private:
  // From `at` on the local time is UTC + `offset`. The first one counts from ever.
  struct Change {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset;
  };

  // The change in force at `instant`.
  std::vector<Change>::const_iterator InForceAt(std::chrono::sys_seconds instant) const noexcept;

  std::vector<Change> changes_;  // By time; never empty.
};

}  // namespace weir
