// Load on a server. Every reply is counted and must be what the request asks for.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include <weir/time.h>

#include "requests.h"

namespace weir::bench {

struct LoadOptions {
  RequestKind kind = RequestKind::kIncr;
  std::uint16_t port = 0;
  pid_t server = 0;
  std::size_t connections = 50;
  std::uint64_t keys = 100'000;
  Duration warm_up{0};  // Not measured,
  Duration length{0};   // unlike this.
};

// Closed loop: each connection sends `depth` requests at once, and the next when all of them are
// answered. Prints
//   {"requests": ..., "seconds": ..., "cpu_ns": of the server per request, "busy": share of time}
void RunClosedLoop(const LoadOptions& options, std::size_t depth);

// Open loop: requests come at random at `rate` per second, each on any of the connections, whether
// those before it have been answered or not. Times are from when a request should have been sent:
// a server that stops for a while is charged for all that came in the meantime. With `new_keys`
// every request asks about another key. Prints the same and
//   {"p50": us, "p99": us, "p999": us, "max": us, "late_p99": us}
// where `late_p99` is how long after its time a request was sent: the generator's own share.
struct OpenLoopOptions {
  double rate = 0;
  bool new_keys = false;
};
void RunOpenLoop(const LoadOptions& options, const OpenLoopOptions& open);

// Holds connections to the ports, in equal shares and from many addresses, which send nothing or
// each a byte a second of a request that never ends. Prints "ready" when all of them are there, and
// when its input ends {"open": how many still are}.
enum class HeldTraffic : std::uint8_t { kNone, kByteASecond };
struct HeldOptions {
  HeldTraffic traffic = HeldTraffic::kNone;
  std::size_t connections = 0;
  std::uint16_t resp_port = 0;
  std::uint16_t http_port = 0;
};
void HoldConnections(const HeldOptions& options);

}  // namespace weir::bench
