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
};

inline constexpr std::array<std::string_view, 15> kRefusalNames = {
    "connections",   "per_address", "buffers", "header",       "body",
    "command",       "pipeline",    "output",  "idle_timeout", "header_timeout",
    "write_timeout", "waiters",     "token",   "protocol",     "tls"};

}  // namespace weir
