// What a reply that comes later must remember of its command, in one number:
//
//   bit 0       RESP3
//   bits 1, 2   LimitShape::Kind
//   bits 3, 4   quantity: 0 below zero, 1 zero, 2 above; no more of it is needed
//   bits 5 on   burst tolerance of the limit, which comes with CL.THROTTLE
//
// and for LimitShape::Kind::kDecision
//
//   bits 3, 4   HttpForm
//   bits 5 on   the window of a limit that came with its command, in nanoseconds
#pragma once

#include <cstdint>

#include "frontend/resp/gathered.h"
#include "frontend/resp/throttle.h"
#include "net/resp/writer.h"

namespace weir::resp {

struct LateReply {
  Version version = Version::kResp2;
  LimitShape shape{};
  std::int64_t burst_tolerance = 0;  // As Limit has it.
  Duration window{0};                // Limit::refill_time.

  std::uint64_t bits() const noexcept {
    const unsigned own = version == Version::kResp3 ? 1U : 0U;
    if (shape.kind == LimitShape::Kind::kDecision) {
      return own | (static_cast<unsigned>(shape.kind) << 1U) |
             (static_cast<unsigned>(shape.http) << 3U) |
             (static_cast<std::uint64_t>(window.count()) << 5U);
    }
    const unsigned sign = shape.quantity < 0 ? 0 : shape.quantity == 0 ? 1 : 2;
    return own | (static_cast<unsigned>(shape.kind) << 1U) | (sign << 3U) |
           (static_cast<std::uint64_t>(burst_tolerance) << 5U);
  }
  static LateReply Of(std::uint64_t bits) noexcept {
    const Version version = (bits & 1U) != 0 ? Version::kResp3 : Version::kResp2;
    const auto kind = static_cast<LimitShape::Kind>((bits >> 1U) & 3U);
    if (kind == LimitShape::Kind::kDecision) {
      return {.version = version,
              .shape = {.kind = kind, .http = static_cast<HttpForm>((bits >> 3U) & 3U)},
              .window = Duration(static_cast<std::int64_t>(bits >> 5U))};
    }
    return {.version = version,
            .shape = {.kind = kind, .quantity = static_cast<std::int64_t>((bits >> 3U) & 3U) - 1},
            .burst_tolerance = static_cast<std::int64_t>(bits >> 5U)};
  }
};
static_assert(kMaxBurstTime.count() * 16 < std::int64_t{1} << 59U);

}  // namespace weir::resp
