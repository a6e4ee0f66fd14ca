// The messages of weir.v1.Limiter, read from and written to the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <weir/decision.h>
#include <weir/request.h>
#include <weir/result.h>
#include <weir/time.h>

#include "frontend/grpc/methods.h"
#include "net/byte_buffer.h"

namespace weir {

// What a message says. Refers to it; used again it keeps its memory.
struct LimiterMessage {
  Request request{};
  std::int64_t cost = 1;
  bool has_cost = false;
  Duration wait{0};
  Duration ttl = std::chrono::seconds(60);
  std::string_view key{};
  std::string_view limit{};
  std::string_view algorithm{};
  ReservationId reservation = ReservationId::kNone;

  // What the spans of the request refer to.
  std::vector<NamedValue> headers, cookies, query, descriptors;
  std::vector<std::string_view> rules;

  void Clear() noexcept;
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
