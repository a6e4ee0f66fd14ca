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
void Empty(auto& list) {
  list.clear();
  if (list.capacity() * sizeof(list[0]) > kMostKept) list.shrink_to_fit();
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
  trailers = {};
  method = nullptr;
  is_post = is_grpc = has_foreign_encoding = false;
  header_bytes = 0;
  timeout.reset();
  began = now;
  answered = {};
  out_counted = asks = 0;
  answer = {};
  is_ready = is_put_off = is_pending = is_joint = has_refunds = false;
  missing = 0;
  watched = -1;
  pays = false;
}

void GrpcCall::GiveBack() {
  Empty(in);
  Empty(out);
  Empty(path);
  Empty(token);
  Empty(statuses);
  Empty(decisions);
  Empty(status_message);
}

}  // namespace weir
