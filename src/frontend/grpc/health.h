// grpc.health.v1: whether a service is of use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/desk.h"
#include "net/byte_buffer.h"

namespace weir {

enum class ServingStatus : std::uint8_t { kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// None if it is no HealthCheckRequest.
std::optional<std::string_view> ReadHealthRequest(std::string_view message) noexcept;
void WriteHealth(ByteBuffer& out, ServingStatus status);

// A service on a failure mode is of use still. `ratelimit` is what others call Envoy's service.
ServingStatus HealthOf(std::string_view service, const ServiceState& state) noexcept;

}  // namespace weir
