#include "frontend/grpc/grpc_call.h"

#include <algorithm>

namespace weir {
namespace {

// Larger buffers are given back.
constexpr std::size_t kMostKept = 4096;

void Empty(ByteBuffer& buffer) {
  buffer.Clear();
  if (buffer.capacity() > kMostKept) buffer.SetCapacity(0);
}

}  // namespace

GrpcMessage FirstMessage(std::string_view input) noexcept {
  if (input.size() < kGrpcPrefix) return {};
  const auto byte = [&](std::size_t at) {
    return std::size_t{static_cast<unsigned char>(input[at])};
  };
  const std::size_t size = byte(1) << 24 | byte(2) << 16 | byte(3) << 8 | byte(4);
  if (input[0] != 0) return {.state = GrpcMessage::State::kCompressed, .size = size};
  if (input.size() - kGrpcPrefix < size) return {.size = size};
  return {.state = GrpcMessage::State::kComplete,
          .size = size,
          .bytes = input.substr(kGrpcPrefix, size)};
}

GrpcFrame::GrpcFrame(ByteBuffer& out) : out_(out), begin_(out.size()) {
  char* const prefix = out.Room(kGrpcPrefix);
  std::fill_n(prefix, kGrpcPrefix, '\0');
  out.Wrote(kGrpcPrefix);
}

void GrpcFrame::Finish() noexcept {
  const std::size_t size = out_.size() - begin_ - kGrpcPrefix;
  char* const prefix = out_.bytes().data() + begin_;
  for (unsigned i = 1; i < kGrpcPrefix; ++i) {
    prefix[i] = static_cast<char>(size >> (8 * (4 - i)));
  }
}

void GrpcCall::Begin(std::int32_t stream, SteadyTime now) {
  id = stream;
  has_ended = is_answered = is_finished = is_deferred = false;
  Empty(out);
  trailers = {};
  method = nullptr;
  is_post = is_grpc = has_foreign_encoding = false;
  header_bytes = 0;
  path.clear();
  token.clear();
  timeout.reset();
  Empty(in);
  began = now;
  answered = {};
  out_counted = 0;
  is_ready = is_pending = is_joint = has_refunds = false;
  statuses.clear();
  decisions.clear();
  missing = 0;
  watched = -1;
  status_message.clear();
}

}  // namespace weir
