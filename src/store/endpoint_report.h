// What is known about one server of a store, for metrics and for people.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "telemetry/histogram.h"

namespace weir {

// Why calls fail: the label `kind` of weir_store_errors_total.
enum class StoreFault : std::uint8_t {
  kTimeout,      // No answer in time.
  kRefused,      // No connection.
  kLost,         // The connection broke with the call under way.
  kOverload,     // Too many calls under way already; nothing was sent.
  kBreaker,      // Not asked, because it failed before.
  kProtocol,     // The answer made no sense.
  kCredentials,  // NOAUTH, WRONGPASS, NOPERM
  kReadOnly,     // READONLY: a replica was asked.
  kNoMemory,     // OOM
  kNotWritable,  // MISCONF, NOREPLICAS
  kLoading,      // LOADING, MASTERDOWN
  kBusy,         // BUSY: a long script
  kClusterDown,  // CLUSTERDOWN, or too many redirections
  kCorrupt,      // A value under one of our keys was not ours; it was replaced.
  kOther,
};
inline constexpr std::size_t kStoreFaults = 15;
std::string_view NameOf(StoreFault fault) noexcept;  // "timeout", "no_memory"

struct EndpointReport {
  std::string name;  // 127.0.0.1:6379, without any secret.
  bool breaker_open = false;
  std::array<std::uint64_t, kStoreFaults> faults{};  // Calls, by StoreFault.
  // Of calls that were answered.
  std::array<std::uint64_t, Histogram::kBuckets> times{};
  std::uint64_t time_sum_nanoseconds = 0;
  std::uint64_t connections = 0;
  std::uint64_t in_flight = 0;
};

}  // namespace weir
