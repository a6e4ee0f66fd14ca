#include "frontend/gate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace weir {
namespace {

// Whom an address belongs to: an IPv6 address to its /64, for whoever has one of these has all.
class Household {
 public:
  explicit Household(std::string_view address) noexcept : text_(address) {
    if (!address.contains(':') || address.size() >= kept_.size()) return;
    std::ranges::copy(address, kept_.begin());
    in6_addr bytes{};
    if (inet_pton(AF_INET6, kept_.data(), &bytes) != 1) return;
    std::fill(std::begin(bytes.s6_addr) + 8, std::end(bytes.s6_addr), 0);
    text_ = inet_ntop(AF_INET6, &bytes, kept_.data(), INET6_ADDRSTRLEN);
  }
  std::string_view text() const noexcept { return text_; }

 private:
  std::array<char, INET6_ADDRSTRLEN> kept_{};
  std::string_view text_;
};

}  // namespace

void Gate::SetLimits(const ServiceLimits& limits) noexcept {
  most_connections_.store(static_cast<std::size_t>(limits.connections), std::memory_order_relaxed);
  most_per_address_.store(static_cast<std::size_t>(limits.per_address), std::memory_order_relaxed);
  most_buffered_.store(static_cast<std::ptrdiff_t>(limits.buffers), std::memory_order_relaxed);
}

std::optional<Refusal> Gate::Enter(std::string_view peer) {
  const Household household(peer);
  const std::string_view address = household.text();
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

void Gate::Leave(std::string_view peer) {
  const Household household(peer);
  const std::string_view address = household.text();
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
