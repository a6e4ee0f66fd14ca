// Which methods there are: one table, that the descriptors of the services are tested against.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "frontend/access.h"

namespace weir {

enum class GrpcMethodKind : std::uint8_t {
  kShouldRateLimit,
  kCheck,
  kCheckBatch,
  kLimit,
  kPeek,
  kReserve,
  kCommit,
  kCancel,
  kRelease,
  kRefund,
  kPenalize,
  kReset,
  kHealthCheck,
  kHealthWatch,
  kReflection,
};

struct GrpcMethod {
  std::string_view path;
  GrpcMethodKind kind;
  Right right = Right::kUse;
  bool streams_in = false;  // The client may send any number of messages.
};

inline constexpr std::array<GrpcMethod, 16> kGrpcMethods = {{
    {"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
     GrpcMethodKind::kShouldRateLimit},
    {"/weir.v1.Limiter/Check", GrpcMethodKind::kCheck},
    {"/weir.v1.Limiter/CheckBatch", GrpcMethodKind::kCheckBatch},
    {"/weir.v1.Limiter/Limit", GrpcMethodKind::kLimit},
    {"/weir.v1.Limiter/Peek", GrpcMethodKind::kPeek},
    {"/weir.v1.Limiter/Reserve", GrpcMethodKind::kReserve},
    {"/weir.v1.Limiter/Commit", GrpcMethodKind::kCommit},
    {"/weir.v1.Limiter/Cancel", GrpcMethodKind::kCancel},
    {"/weir.v1.Limiter/Release", GrpcMethodKind::kRelease},
    {"/weir.v1.Limiter/Refund", GrpcMethodKind::kRefund, Right::kManage},
    {"/weir.v1.Limiter/Penalize", GrpcMethodKind::kPenalize, Right::kManage},
    {"/weir.v1.Limiter/Reset", GrpcMethodKind::kReset, Right::kManage},
    {"/grpc.health.v1.Health/Check", GrpcMethodKind::kHealthCheck, Right::kNone},
    {"/grpc.health.v1.Health/Watch", GrpcMethodKind::kHealthWatch, Right::kNone},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", GrpcMethodKind::kReflection,
     Right::kUse, true},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", GrpcMethodKind::kReflection,
     Right::kUse, true},
}};

// None if there is no such method.
constexpr const GrpcMethod* FindMethod(std::string_view path) noexcept {
  for (const GrpcMethod& method : kGrpcMethods) {
    if (method.path == path) return &method;
  }
  return nullptr;
}

}  // namespace weir
