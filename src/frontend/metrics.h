// What one thread of the service counts. It alone writes; whoever shows the metrics reads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "frontend/refusal.h"
#include "telemetry/histogram.h"

namespace weir {

// Written by one thread.
class OwnCounter {
 public:
  void Add(std::uint64_t amount = 1) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void Subtract(std::uint64_t amount) noexcept { Add(~amount + 1); }
  std::uint64_t Value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// How requests were answered. For HTTP by status, for RESP by the word of the reply, for gRPC by
// the name of the code.
inline constexpr std::array<std::string_view, 39> kReplyCodes = {"200",
                                                                 "400",
                                                                 "401",
                                                                 "403",
                                                                 "404",
                                                                 "405",
                                                                 "406",
                                                                 "408",
                                                                 "409",
                                                                 "411",
                                                                 "413",
                                                                 "415",
                                                                 "417",
                                                                 "429",
                                                                 "431",
                                                                 "500",
                                                                 "501",
                                                                 "503",
                                                                 "504",
                                                                 "505",
                                                                 "OK",
                                                                 "ERR",
                                                                 "NOAUTH",
                                                                 "WRONGPASS",
                                                                 "NOPERM",
                                                                 "BUSY",
                                                                 "TIMEOUT",
                                                                 "CANCELLED",
                                                                 "INVALID_ARGUMENT",
                                                                 "DEADLINE_EXCEEDED",
                                                                 "NOT_FOUND",
                                                                 "PERMISSION_DENIED",
                                                                 "RESOURCE_EXHAUSTED",
                                                                 "ABORTED",
                                                                 "UNIMPLEMENTED",
                                                                 "INTERNAL",
                                                                 "UNAVAILABLE",
                                                                 "UNAUTHENTICATED",
                                                                 "other"};
// The number of a code; that of "other", the last, if it is none of these.
constexpr std::size_t ReplyCodeNumber(std::string_view code) noexcept {
  const auto* const found = std::find(kReplyCodes.begin(), kReplyCodes.end() - 1, code);
  return static_cast<std::size_t>(found - kReplyCodes.begin());
}
inline constexpr std::size_t kReplyOk = 0;        // 200
inline constexpr std::size_t kReplyLimited = 13;  // 429
inline constexpr std::size_t kReplyRespOk = 20;   // OK, over gRPC too.

// Of one listener on one thread.
struct ListenerMetrics {
  OwnCounter connections;  // Open now.
  std::array<OwnCounter, kRefusalNames.size()> refused;
  std::array<OwnCounter, kReplyCodes.size()> requests;
  Histogram decision_time;

  void Refused(Refusal why) noexcept { refused[static_cast<std::size_t>(why)].Add(); }
};

}  // namespace weir
