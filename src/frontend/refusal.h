// Why a client was cut off or turned away. The names are those of the metric's label `why`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir {

enum class Refusal : std::uint8_t {
  kConnections,    // Too many of them in all,
  kPerAddress,     // or from one address.
  kBuffers,        // All connections together hold as many bytes as they may.
  kHeader,         // Something larger than it may be:
  kBody,           // a header, a body,
  kCommand,        // a command.
  kPipeline,       // As many unanswered requests as a connection may have: not read for a while.
  kOutput,         // As many unsent bytes: likewise.
  kIdleTimeout,    // Nothing was asked for too long,
  kHeaderTimeout,  // a request was begun and not completed in time,
  kWriteTimeout,   // or replies were not taken in time.
  kWaiters,        // Too many requests wait already.
  kToken,          // A token was missing or wrong.
  kProtocol,       // What was sent is not the protocol.
  kTls,            // There was no handshake, or the client's certificate is not accepted.
  kH2Streams,      // More requests at a time on a connection than were agreed.
  // HTTP/2 frames that ask for nothing, or for nothing that is wanted: see H2Abuse.
  kH2Resets,
  kH2Settings,
  kH2Pings,
  kH2Windows,
  kH2Priorities,
  kH2SmallData,
  kH2Others,
  kH2HeaderBytes,
  kH2Continuations,
};

inline constexpr std::array<std::string_view, 25> kRefusalNames = {
    "connections",   "per_address",   "buffers",     "header",          "body",
    "command",       "pipeline",      "output",      "idle_timeout",    "header_timeout",
    "write_timeout", "waiters",       "token",       "protocol",        "tls",
    "h2_streams",    "h2_resets",     "h2_settings", "h2_pings",        "h2_windows",
    "h2_priorities", "h2_small_data", "h2_others",   "h2_header_bytes", "h2_continuations"};

}  // namespace weir
