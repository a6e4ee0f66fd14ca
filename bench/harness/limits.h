// Limits that make every check come out as a benchmark needs it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <weir/limit.h>

#include "harness/require.h"

namespace weir::bench {

// Far more than any key is asked for, so that every check is allowed; and only one, so that every
// check after the first is denied. A key's first request costs so much that it does not come back
// while the benchmark runs: every key stays alive.
inline constexpr std::string_view kRoomyLimit = "10G/day";
inline constexpr std::int64_t kRoomyFirstCost = 1'000'000'000;
inline constexpr std::string_view kTightLimit = "1/day";
inline constexpr std::int64_t kTightFirstCost = 1;

inline Limit ParseLimit(std::string_view text) {
  Result<Limit> limit = Limit::Parse(text);
  Require(limit.has_value(), "the limit's text is right");
  return *std::move(limit);
}

}  // namespace weir::bench
