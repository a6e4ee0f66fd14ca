// The messages of weir.v1.Limiter, read from and written to the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <weir/decision.h>
#include <weir/result.h>
#include <weir/time.h>

#include "frontend/grpc/methods.h"
#include "frontend/request_message.h"
#include "net/byte_buffer.h"

namespace weir {

struct LimiterMessage : RequestMessage {
  bool has_cost = false;

  void Clear() noexcept {
    RequestMessage::Clear();
    has_cost = false;
  }
};

// As the method has it. None if it was read; else what is wrong with it.
std::optional<Error> ReadLimiterMessage(std::string_view message, GrpcMethodKind method,
                                        LimiterMessage& read);
// CheckBatchRequest: the requests of a batch, each to be read as a kCheck.
inline constexpr std::size_t kMostGrpcBatch = 1'000;
std::optional<Error> ReadBatchMessage(std::string_view message,
                                      std::vector<std::string_view>& requests);

struct LimiterReply {
  const Decision& decision;
  std::string_view message{};
  WallTime now;
};
void WriteDecision(ByteBuffer& out, const LimiterReply& reply);
// The same as one of CheckBatchResponse.
void WriteBatchItem(ByteBuffer& out, const LimiterReply& reply);

}  // namespace weir
