// How a gRPC call ends, as it stands in its trailers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <weir/result.h>

#include "frontend/error_table.h"

namespace weir {

enum class GrpcCode : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kAborted = 10,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

struct GrpcStatus {
  GrpcCode code = GrpcCode::kOk;
  std::string message{};
};

inline GrpcStatus StatusOf(const Error& error) {
  return {.code = static_cast<GrpcCode>(RowOf(error.code).grpc), .message = error.message};
}

// "0", as grpc-status has it.
std::string_view NumberOf(GrpcCode code) noexcept;
// "OK", as metrics have it.
std::string_view NameOf(GrpcCode code) noexcept;

// A message as it may stand in grpc-message: bytes that are no visible ASCII, and `%`, become %XX.
std::string PercentEncoded(std::string_view message);

}  // namespace weir
