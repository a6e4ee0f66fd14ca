// What the processes that hammer one store agree on: the limits, the keys, and the log they write.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <weir/limit.h>

namespace weir::on_servers {

inline constexpr int kKeys = 2;

// One line of the log, as it lies in the file.
struct Event {
  std::int64_t decided_at = 0;  // Nanoseconds since 1970, by the server's clock; of several servers
                                // the latest.
  std::int64_t asked_at = 0;    // By the clock of this machine, which is that of the servers, too.
  std::int64_t delay = 0;
  std::int32_t number = 0;  // Of this process's requests.
  std::int32_t cost = 0;
  std::uint8_t key = 0;
  std::uint8_t allowed = 0;
  std::uint8_t released = 0;  // A lease was given back: `number` is whose.
  std::uint8_t failed = 0;    // Nobody knows.
  std::uint8_t unused[4] = {};
};

// "token_bucket", "leaky_queue", "strict_window" and so on: a limit that eight processes exceed
// several times over.
inline std::optional<LimitSpec> PlannedLimit(std::string_view name) {
  using std::chrono::milliseconds;
  LimitSpec spec{.count = 100, .period = milliseconds(250)};
  if (name == "token_bucket") {
    spec.burst = 60;
  } else if (name == "leaky_bucket") {
    spec.algorithm = Algorithm::kLeakyBucket;
    spec.burst = 30;
  } else if (name == "leaky_queue") {
    spec.algorithm = Algorithm::kLeakyBucket;
    spec.burst = 30;
    spec.queue = true;
  } else if (name == "fixed_window") {
    spec.algorithm = Algorithm::kFixedWindow;
  } else if (name == "sliding_window") {
    spec.algorithm = Algorithm::kSlidingWindow;
  } else if (name == "strict_window") {
    spec.algorithm = Algorithm::kSlidingWindow;
    spec.strict = true;
  } else if (name == "sliding_log") {
    spec.algorithm = Algorithm::kSlidingLog;
  } else if (name == "concurrency") {
    spec.algorithm = Algorithm::kConcurrency;
    spec.count = 20;
    spec.period = Duration(0);
    spec.lease = milliseconds(500);
  } else {
    return std::nullopt;
  }
  return spec;
}

}  // namespace weir::on_servers
