// One command on its way to a server: how it is written, what its reply means, and who is told how
// it ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <weir/result.h>
#include <weir/time.h>

#include "net/byte_buffer.h"
#include "net/resp/reply_reader.h"
#include "store/redis/error_reply.h"

namespace weir::redis {

class Node;

// How a call ended on a server.
struct CallEnd {
  enum class Kind : std::uint8_t {
    kAnswered,    // The whole reply was taken.
    kErrorReply,  // The server said `text`, which asks for `reply`. Nothing was decided.
    kFailed,      // There was no answer, or it made no sense: `error` and `fault` say why.
  };

  Kind kind = Kind::kAnswered;
  StoreFault fault = StoreFault::kOther;  // Of the last two.
  ErrorReply reply{};
  std::string_view text{};
  Error error{};
};

class Call {
 public:
  virtual ~Call() = default;

  virtual void Write(ByteBuffer& out) = 0;
  // An item of the reply, unless the reply is an error. False if it makes no sense.
  virtual bool Take(const resp::ReplyItem& item) noexcept = 0;
  // `self` is this call, which may be sent again, to `node` or elsewhere.
  virtual void Ended(std::unique_ptr<Call> self, Node& node, CallEnd end) noexcept = 0;

  // Once the reply was taken: when it was written, by the server's clock, if it said so.
  virtual std::optional<WallTime> server_time() const noexcept { return std::nullopt; }
  // How many are waiting for it, for counting.
  virtual std::uint64_t weight() const noexcept { return 1; }

  SteadyTime deadline{};
  WallTime wall{};          // When it is written: the server's time, as far as it is known.
  int rounds = 0;           // How often it was sent.
  bool with_text = false;   // A script: send it whole.
  bool asking = false;      // With ASKING ahead of it.
  bool is_hurried = false;  // Has less time than servers are given: running out of it says little.
  bool is_probe = false;    // Sent whatever the breaker says.
};

}  // namespace weir::redis
