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
  kAuth,
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
  bool is_tree = false;  // All below it, too, by every method there is.
};

inline constexpr std::string_view kAuthPath = "/v1/auth";

inline constexpr std::array<HttpRoute, 18> kHttpRoutes = {{
    {"/v1/check", HttpEndpoint::kCheck},
    {kAuthPath, HttpEndpoint::kAuth, false, Right::kUse, true},
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
    const bool is_below = route.is_tree && path.size() > route.path.size() &&
                          path.starts_with(route.path) && path[route.path.size()] == '/';
    if (is_below) return &route;
  }
  return nullptr;
}

constexpr bool IsAllowed(const HttpRoute& route, std::string_view method) noexcept {
  if (route.is_tree) return method != "CONNECT";
  return route.is_get ? method == "GET" || method == "HEAD" : method == "POST";
}

}  // namespace weir
