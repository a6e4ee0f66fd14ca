// How many connections there are, in all and from each address, and how many bytes are held for
// them: what every thread must know of the others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <weir/policy_spec.h>

#include "frontend/refusal.h"

namespace weir {

// Thread-safe.
class Gate {
 public:
  explicit Gate(const ServiceLimits& limits) { SetLimits(limits); }

  // For those who come from now on.
  void SetLimits(const ServiceLimits& limits) noexcept;

  // Counts a connection, unless there are too many: then why it is refused. Those on unix sockets,
  // who have no address, are counted in all only; IPv6 addresses by their /64.
  std::optional<Refusal> Enter(std::string_view peer);
  void Leave(std::string_view peer);

  // Says that so many bytes more, or fewer, are held. False if those are more than may be.
  bool AddBuffered(std::ptrdiff_t bytes) noexcept;

  std::size_t connections() const noexcept { return connections_.load(std::memory_order_relaxed); }
  std::size_t buffered() const noexcept {
    return static_cast<std::size_t>(buffered_.load(std::memory_order_relaxed));
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
  };

  std::atomic<std::size_t> connections_{0};
  std::atomic<std::ptrdiff_t> buffered_{0};
  std::atomic<std::size_t> most_connections_{0};
  std::atomic<std::size_t> most_per_address_{0};
  std::atomic<std::ptrdiff_t> most_buffered_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_address_;
};

}  // namespace weir
