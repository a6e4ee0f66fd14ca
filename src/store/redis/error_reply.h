// What a server's error replies ask of a client. Only the first word counts: what follows differs
// between versions, and scripts add to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/endpoint.h"
#include "store/endpoint_report.h"

namespace weir::redis {

enum class Remedy : std::uint8_t {
  kNone,        // Repeating it would not help, or might count twice.
  kSendText,    // NOSCRIPT: the server does not know the script (any more).
  kGoThere,     // MOVED: `site` has the slot from now on.
  kAskThere,    // ASK: `site` has these keys already; the slot stays where it is for now.
  kTryAgain,    // TRYAGAIN: the slot is half on its way.
  kRediscover,  // READONLY: that is no master any more.
};

struct ErrorReply {
  Remedy remedy = Remedy::kNone;
  StoreFault fault = StoreFault::kOther;
  // kGoThere, kAskThere. An empty host is the one that was asked; without a port nobody knows.
  std::uint16_t slot = 0;
  Endpoint site{};
};

// Did nothing on the server, whatever it was: only such calls come with these replies.
ErrorReply ReadErrorReply(std::string_view text);

// The reply for people: one line, not too long, without what only the server's logs need.
std::string_view Readable(std::string_view text) noexcept;

}  // namespace weir::redis
