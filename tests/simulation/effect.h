// What came after a request that was let through, by what is known of it: settlements and refunds
// may have taken effect or not, and of several settlements one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <weir/time.h>

#include "scenario.h"

namespace weir::simulation {

struct Effect {
  // So much more is charged in the end: less than nothing if some was given back.
  std::int64_t least = 0;
  std::int64_t most = 0;
  // By the world's clock, if there was anything: some time in between.
  Duration sent = Duration::max();
  Duration ended = Duration::max();
  std::optional<WallTime> at{};  // The server's, if it is known.
  bool is_refund = false;

  bool is_certain() const noexcept { return least == most; }
};

// On the record of the store. Where servers forget or their clocks are moved (`is_lossy`), what was
// given back may have been gone, and nothing is certain.
Effect EffectInStore(const Asked& asked, std::size_t part, bool is_lossy);

// The most that it may have given back, whoever was told: nothing or less.
std::int64_t LeastChange(const Asked& asked, std::size_t part);

// When somebody first tried to settle it, and when somebody had been told that it was.
Duration FirstSettling(const Asked& asked);
Duration KnownSettled(const Asked& asked);

// What cannot have been told of settlements where nothing was forgotten: that two took effect, or
// that another did which nobody asked for.
std::optional<std::string> FindContradiction(const Asked& asked);

}  // namespace weir::simulation
