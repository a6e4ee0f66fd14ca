// The metrics of the service as Prometheus reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/engine.h>

#include "frontend/metrics.h"

namespace weir {

// What is shown, as of one moment.
struct MetricsSnapshot {
  std::string_view version{};
  EngineStats engine{};
  StoreHealth store{};
  std::vector<RuleCount> rules{};
  std::uint64_t reloads_applied = 0;
  std::uint64_t reloads_refused = 0;
  std::size_t buffered_bytes = 0;
  bool ready = false;
  WallTime started{};

  // One for each listener; those of all threads.
  struct Listener {
    std::string_view protocol{};
    struct Tls {
      WallTime expires{};  // Our certificate.
      std::uint64_t reloads_applied = 0;
      std::uint64_t reloads_refused = 0;
    };
    std::optional<Tls> tls{};
    std::vector<const ListenerMetrics*> threads{};
  };
  std::vector<Listener> listeners{};
};

// Prometheus' text format.
std::string MetricsPage(const MetricsSnapshot& snapshot);

}  // namespace weir
