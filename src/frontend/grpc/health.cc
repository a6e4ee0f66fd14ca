#include "frontend/grpc/health.h"

#include <algorithm>
#include <array>

#include "net/protobuf/wire.h"

namespace weir {

std::optional<std::string_view> ReadHealthRequest(std::string_view message) noexcept {
  std::string_view service;
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (!reader.Is(1, WireType::kBytes)) continue;
    service = reader.bytes();
    if (!IsUtf8(service)) return std::nullopt;
  }
  if (reader.is_broken()) return std::nullopt;
  return service;
}

void WriteHealth(ByteBuffer& out, ServingStatus status) {
  ProtobufWriter(out).Number(1, static_cast<std::uint64_t>(status));
}

ServingStatus HealthOf(std::string_view service, const ServiceState& state) noexcept {
  constexpr std::array<std::string_view, 4> kServices = {
      "", "envoy.service.ratelimit.v3.RateLimitService", "weir.v1.Limiter", "ratelimit"};
  if (std::ranges::find(kServices, service) == kServices.end()) {
    return ServingStatus::kServiceUnknown;
  }
  const ServiceState::Readiness readiness = state.readiness();
  const bool serves = readiness == ServiceState::Readiness::kReady ||
                      readiness == ServiceState::Readiness::kDegraded;
  return serves ? ServingStatus::kServing : ServingStatus::kNotServing;
}

}  // namespace weir
