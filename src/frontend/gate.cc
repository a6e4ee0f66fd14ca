#include "frontend/gate.h"

namespace weir {

void Gate::SetLimits(const ServiceLimits& limits) noexcept {
  most_connections_.store(static_cast<std::size_t>(limits.connections), std::memory_order_relaxed);
  most_per_address_.store(static_cast<std::size_t>(limits.per_address), std::memory_order_relaxed);
  most_buffered_.store(static_cast<std::ptrdiff_t>(limits.buffers), std::memory_order_relaxed);
}

std::optional<Refusal> Gate::Enter(std::string_view address) {
  const std::size_t before = connections_.fetch_add(1, std::memory_order_relaxed);
  if (before >= most_connections_.load(std::memory_order_relaxed)) {
    connections_.fetch_sub(1, std::memory_order_relaxed);
    return Refusal::kConnections;
  }
  if (address.empty()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  auto found = by_address_.find(address);
  if (found == by_address_.end()) found = by_address_.emplace(address, 0).first;
  if (found->second >= most_per_address_.load(std::memory_order_relaxed)) {
    connections_.fetch_sub(1, std::memory_order_relaxed);
    return Refusal::kPerAddress;
  }
  ++found->second;
  return std::nullopt;
}

void Gate::Leave(std::string_view address) {
  connections_.fetch_sub(1, std::memory_order_relaxed);
  if (address.empty()) return;
  const std::scoped_lock lock(mutex_);
  const auto found = by_address_.find(address);
  if (found != by_address_.end() && --found->second == 0) by_address_.erase(found);
}

bool Gate::AddBuffered(std::ptrdiff_t bytes) noexcept {
  const std::ptrdiff_t now = buffered_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  return now <= most_buffered_.load(std::memory_order_relaxed);
}

}  // namespace weir
