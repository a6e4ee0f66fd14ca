// Times as reports write them: in seconds.
#pragma once

#include <chrono>

#include <weir/time.h>

namespace weir::lab {

inline double SecondsIn(Duration length) { return std::chrono::duration<double>(length).count(); }

inline double SecondsSinceEpoch(WallTime time) { return SecondsIn(time.time_since_epoch()); }

}  // namespace weir::lab
