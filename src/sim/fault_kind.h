// The kinds of faults that a simulated store can have. They are apart from the deployment that
// brings them about, because descriptions of a run name faults without having any servers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::sim {

// What may happen to a server, or to all of them.
enum class FaultKind : std::uint8_t {
  kRestartEmpty,
  kRestartWithData,
  kPause,
  kSlow,
  kScriptsFlushed,
  kLoading,
  kBusy,
  kReadOnly,
  kOutOfMemory,
  kCannotSave,
  kRevoked,
  kGarbageReplies,
  kEviction,
  kFlush,
  kGarbageKey,
  kClockBack,
  kClockAhead,
  kReset,
  kResetMidReply,
  kRefused,
  kSilent,
  kCutOff,
  kRepliesHeldBack,
  kRepliesLost,
  kRequestsLost,
  kLate,
  kClusterDown,
  kSlotsMove,
  kFailover,
};

struct FaultTraits {
  FaultKind kind;
  std::string_view name;  // "restart empty"
  std::string_view what;  // In a few words.
  // The servers may have less in them than they were told, so each key may have one burst more.
  bool forgets = false;
  bool moves_clock = false;
  // Well-behaved clients do not notice.
  bool is_harmless = false;
  bool needs_cluster = false;
  bool needs_replica = false;
  bool is_at_once = false;  // It has no end.
  bool takes_by = false;    // How slow, how late, or how far may be said.
};
// Every kind, in their order.
std::span<const FaultTraits> AllFaults();
const FaultTraits& TraitsOf(FaultKind kind);

}  // namespace weir::sim
