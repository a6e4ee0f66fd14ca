// Reference models of every algorithm, written from the contract and from nothing else: no line of
// src/ is included. They are slow and plain on purpose. Windows and logs keep every event of the
// trace and count from scratch at each step; times are 128-bit integers; when a request would pass
// is found by asking at later instants, not by a formula.
//
// The one thing taken over from the implementation's design is the resolution: an emission
// interval and a sub-window are rounded up to 1 / ticks_per_nanosecond.
#pragma once

#include <memory>

#include <weir/limit.h>

#include "subject.h"

namespace weir::conformance {

__extension__ typedef __int128 Wide;

class Oracle : public Subject {
 public:
  // Whether the last step met state further ahead than any clock reading could account for.
  bool met_clock_damage() const { return met_clock_damage_; }

  // Whether a step at that instant would meet it.
  virtual bool FindsClockDamage(Now now) = 0;

  // The next instant at or after which something changes by itself (a boundary), for traces that
  // want to go there; never earlier than `now`.
  virtual Now NextBoundary(Now now) const = 0;

 protected:
  bool met_clock_damage_ = false;
};

// `start` is the store's: epoch windows are aligned by the wall clock's offset at that time.
std::unique_ptr<Oracle> MakeOracle(const LimitSpec& spec, Now start, int ticks_per_nanosecond = 16);

// The end of the local day, week, month or year that `wall` lies in, by the C library's zones.
WallTime CalendarEnd(const LimitSpec& spec, WallTime wall);

}  // namespace weir::conformance
