// One call on a gRPC connection, from its headers to its trailers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/engine.h>
#include <weir/time.h>

#include "frontend/access.h"
#include "frontend/grpc/methods.h"
#include "net/byte_buffer.h"
#include "net/h2/session.h"

namespace weir {

// Messages on a stream have five bytes before them: whether it is compressed, and its length.
inline constexpr std::size_t kGrpcPrefix = 5;

// The first message of what has come in.
struct GrpcMessage {
  enum class State : std::uint8_t { kIncomplete, kComplete, kCompressed };
  State state = State::kIncomplete;
  std::size_t size = 0;  // As it says itself, once the prefix is there.
  std::string_view bytes{};
};
GrpcMessage FirstMessage(std::string_view input) noexcept;

// Room for the prefix of a message that is appended next; Finish writes it.
class GrpcFrame {
 public:
  explicit GrpcFrame(ByteBuffer& out);
  void Finish() noexcept;
  // There is no message after all.
  void Drop() noexcept { out_.CutTo(begin_); }

 private:
  ByteBuffer& out_;
  const std::size_t begin_;
};

// Used for one call after the other, so that its buffers are kept.
struct GrpcCall final : H2Stream {
  // As it was announced in the headers.
  const GrpcMethod* method = nullptr;
  bool is_post = false;
  bool is_grpc = false;               // By its content type.
  bool has_foreign_encoding = false;  // Messages may be compressed, in a way that is not read here.
  std::size_t header_bytes = 0;
  std::string path{};   // Of an unknown method, for the error; of Watch, the service.
  std::string token{};  // What the client calls itself.
  std::optional<Duration> timeout{};

  std::size_t place = 0;  // Among those of its connection.
  ByteBuffer in{};        // Of the messages.
  SteadyTime began{};
  SteadyTime answered{};

  std::size_t out_counted = 0;  // Of `out`, by its connection.
  bool is_ready = false;        // The request is complete, and waits to be decided.
  bool is_put_off = false;      // It waits for others to be decided first.
  bool is_pending = false;      // The answer comes later.
  // ShouldRateLimit with several descriptors, of a store that takes a while:
  bool is_joint = false;
  bool has_refunds = false;              // to be asked for once the rest was let through.
  Answer answer{};                       // Of the rest,
  std::vector<RuleDecision> statuses{};  // likewise.
  // CheckBatch, likewise:
  std::size_t asks = 0;  // How many requests it has, once that is known.
  std::vector<Decision> decisions{};
  std::size_t missing = 0;   // Of them.
  std::int8_t watched = -1;  // Watch: what was told last.

  // What the trailers refer to.
  std::string status_message{};
  std::array<H2Field, 2> fields{};

  // As new, but for the memory.
  void Begin(std::int32_t stream, SteadyTime now);
  // Gives back what is more than an ordinary call needs.
  void GiveBack();
  std::size_t bytes() const noexcept { return sizeof(*this) + in.capacity() + out.capacity(); }
};

}  // namespace weir
