// The answer to a request, and why it is what it is.
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/time.h>

namespace weir {

enum class Reason : std::uint8_t {
  kOk,
  kLimited,       // Not now; retry_after says when.
  kNeverFits,     // The cost is above what the limit can ever hold; waiting does not help.
  kBanned,        // Denied too often before, and shut out for a while.
  kAllowList,     // Let through without being counted.
  kDenyList,      // Refused whatever the count: a deny list, or the limit `deny`.
  kNoRule,        // Nothing limits this request.
  kStoreFailure,  // The store did not answer, and the rule says to refuse then.
  kOverload,      // Too many wait or hold reservations already.
};

enum class Source : std::uint8_t {
  kMemory,    // Decided on state in this process.
  kStore,     // Decided by the shared store.
  kLease,     // Decided on a share leased from the shared store.
  kFallback,  // The store is gone: decided by this process's share.
  kOpen,      // The store is gone: let through.
  kClosed,    // The store is gone: refused.
};

// Names a reservation or a lease until it is committed, cancelled, released or expired.
enum class ReservationId : std::uint64_t { kNone = 0 };

struct Decision {
  bool allowed = false;
  Reason reason = Reason::kNoRule;
  Source source = Source::kMemory;

  // The limit this answer describes. Of several, the one nearest to exhaustion when allowed, the
  // denying one with the longest wait when not. Empty if the limit has no name.
  std::string_view rule{};
  std::int64_t limit = 0;      // Its capacity (the burst).
  std::int64_t remaining = 0;  // What is left of it after this request; at most `limit`.
  std::int64_t cost = 0;       // What this request spends, or would have spent.

  Duration retry_after{0};  // When this very request would pass; 0 if allowed; kNever if it cannot.
  Duration reset_after{0};  // Until the key is fresh again.
  Duration delay{0};        // How long an admitted request should wait before it goes ahead.

  // Set by Reserve, and by every admission to a concurrency limit.
  ReservationId reservation = ReservationId::kNone;
};

// "ok", "limited", "never_fits": the names used on the wire, in logs and in metrics.
std::string_view NameOf(Reason reason) noexcept;
std::string_view NameOf(Source source) noexcept;

}  // namespace weir
