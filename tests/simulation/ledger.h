// What a ledger must show at the end, by what is known of every charge on it.
//
// A sliding log is special: a refund takes the oldest of it, whoever that belonged to, and a
// settlement gives back only what is left of its own. So less may come back than was asked for; how
// much less follows from the order in which the server did it all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <weir/time.h>

#include "effect.h"

namespace weir::simulation {

// One charge that was let through for sure, and what came afterwards.
struct LedgerLine {
  std::int64_t cost = 0;
  WallTime date{};  // By the server's clock.
  Effect effect{};
};

struct LedgerBounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

// Of anything but logs. Of `unknown` units nobody knows whether they were charged.
LedgerBounds BoundsOfSums(const std::vector<LedgerLine>& lines, std::int64_t unknown);
// Exact if all is known. Nothing was forgotten, and no clock moved.
LedgerBounds BoundsOfLog(const std::vector<LedgerLine>& lines, std::int64_t unknown);

}  // namespace weir::simulation
