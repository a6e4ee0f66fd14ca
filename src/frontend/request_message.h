// What a message asks, whichever protocol it came by: who wants what, under which rules, and what
// it costs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <weir/decision.h>
#include <weir/request.h>
#include <weir/time.h>

namespace weir {

// Refers to the message. Used again it keeps its memory.
struct RequestMessage {
  // How many names and values there may be in all.
  static constexpr std::size_t kMostPairs = 128;
  static constexpr std::size_t kMostRules = 64;

  Request request{};
  std::int64_t cost = 1;
  Duration wait{0};
  Duration ttl = std::chrono::seconds(60);
  std::string_view key{};
  std::string_view limit{};
  std::string_view algorithm{};
  ReservationId reservation = ReservationId::kNone;

  // What the spans of the request refer to.
  std::vector<NamedValue> headers, cookies, query, descriptors;
  std::vector<std::string_view> rules;

  void Clear() noexcept {
    request = {};
    cost = 1;
    wait = Duration(0);
    ttl = std::chrono::seconds(60);
    key = limit = algorithm = {};
    reservation = ReservationId::kNone;
    headers.clear();
    cookies.clear();
    query.clear();
    descriptors.clear();
    rules.clear();
  }
};

}  // namespace weir
