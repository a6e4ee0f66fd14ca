// Which paths there are, and by which methods: one table, that the description of the interface is
// tested against.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/access.h"

namespace weir {

enum class HttpEndpoint : std::uint8_t {
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
  kLimits,
  kTop,
  kHealth,
  kReadiness,
  kMetrics,
  kOpenApi,
};

struct HttpRoute {
  std::string_view path;
  HttpEndpoint endpoint;
  bool is_get = false;  // GET and HEAD; else POST.
  Right right = Right::kUse;
};

inline constexpr std::array<HttpRoute, 17> kHttpRoutes = {{
    {"/v1/check", HttpEndpoint::kCheck},
    {"/v1/check/batch", HttpEndpoint::kCheckBatch},
    {"/v1/limit", HttpEndpoint::kLimit},
    {"/v1/peek", HttpEndpoint::kPeek},
    {"/v1/reserve", HttpEndpoint::kReserve},
    {"/v1/commit", HttpEndpoint::kCommit},
    {"/v1/cancel", HttpEndpoint::kCancel},
    {"/v1/release", HttpEndpoint::kRelease},
    {"/v1/refund", HttpEndpoint::kRefund, false, Right::kManage},
    {"/v1/penalize", HttpEndpoint::kPenalize, false, Right::kManage},
    {"/v1/reset", HttpEndpoint::kReset, false, Right::kManage},
    {"/v1/limits", HttpEndpoint::kLimits, true},
    {"/v1/top", HttpEndpoint::kTop, true, Right::kManage},
    {"/healthz", HttpEndpoint::kHealth, true, Right::kNone},
    {"/readyz", HttpEndpoint::kReadiness, true, Right::kNone},
    {"/metrics", HttpEndpoint::kMetrics, true},
    {"/openapi.json", HttpEndpoint::kOpenApi, true},
}};

// None if there is no such path.
constexpr const HttpRoute* FindRoute(std::string_view path) noexcept {
  for (const HttpRoute& route : kHttpRoutes) {
    if (route.path == path) return &route;
  }
  return nullptr;
}

constexpr bool IsAllowed(const HttpRoute& route, std::string_view method) noexcept {
  return route.is_get ? method == "GET" || method == "HEAD" : method == "POST";
}

}  // namespace weir
