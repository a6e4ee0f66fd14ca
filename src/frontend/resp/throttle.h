// CL.THROTTLE as redis-cell has it and THROTTLE as throttlecrab has it: a bucket whose size and
// rate come with every call.
//
//   CL.THROTTLE key max_burst count period [quantity]
//     -> limited 0|1, max_burst + 1, remaining, retry_after, reset_after
//   THROTTLE    key max_burst count period [quantity]
//     -> allowed 1|0, max_burst, remaining, reset_after, retry_after
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <weir/engine.h>
#include <weir/result.h>

#include "frontend/limit_cache.h"
#include "net/byte_buffer.h"

namespace weir::resp {

enum class ThrottleStyle : std::uint8_t { kRedisCell, kThrottlecrab };

struct ThrottleWords {
  LimitCache::Bucket bucket{};
  std::int64_t quantity = 1;
};

// `words` from the key on. Whether such a bucket can be is for the limit cache to say.
Result<ThrottleWords> ReadThrottleWords(ThrottleStyle style,
                                        std::span<const std::string_view> words);

// What to ask for. Redis-cell answers a call for nothing by whether the key is within its bounds,
// not by whether one unit more would be, so that is peeked at instead.
LimitRequest ThrottleRequest(ThrottleStyle style, std::string_view key, const Limit* limit,
                             std::int64_t quantity) noexcept;

// What its reply depends on besides the decision.
struct ThrottleCall {
  ThrottleStyle style = ThrottleStyle::kRedisCell;
  std::int64_t quantity = 1;         // Only its sign counts.
  std::int64_t burst_tolerance = 0;  // As Limit has it.
};
void WriteThrottleReply(ByteBuffer& out, const ThrottleCall& call, const Decision& decision);

}  // namespace weir::resp
