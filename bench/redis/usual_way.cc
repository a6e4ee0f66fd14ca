#include "usual_way.h"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <weir/clock.h>

#include "harness/keys.h"
#include "harness/require.h"
#include "service/sockets.h"

namespace weir::bench {
namespace {

// A token bucket of two fields, as articles and libraries have it.
constexpr std::string_view kScript = R"(
local capacity = tonumber(ARGV[1])
local rate = tonumber(ARGV[2])
local now = tonumber(ARGV[3])
local requested = tonumber(ARGV[4])
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'ts')
local tokens = tonumber(bucket[1])
local ts = tonumber(bucket[2])
if tokens == nil then
  tokens = capacity
  ts = now
end
tokens = math.min(capacity, tokens + math.max(0, now - ts) * rate)
local allowed = 0
if tokens >= requested then
  tokens = tokens - requested
  allowed = 1
end
redis.call('HMSET', KEYS[1], 'tokens', tokens, 'ts', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate))
return {allowed, math.floor(tokens)}
)";
// 10k/day burst 100k, as ours; by the millisecond.
constexpr std::string_view kCapacity = "100000";
constexpr std::string_view kRate = "0.00011574074074074073";
constexpr std::string_view kAllowed = "*2\r\n:1\r\n";

std::string Bulk(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string LoadScript(std::uint16_t port) {
  const Socket socket(port);
  socket.Send("*3\r\n" + Bulk("SCRIPT") + Bulk("LOAD") + Bulk(kScript));
  std::array<char, 256> buffer{};
  std::string reply;
  while (!reply.ends_with("\r\n") || reply.size() < 47) reply += socket.Await(buffer);
  Require(reply.starts_with("$40\r\n"), "the script is taken");
  return reply.substr(5, 40);
}

// What is sent for one key after the other: only the key and the time differ.
class Requests {
 public:
  Requests(const RunOptions& options)
      : keys_(KeySequence::Drawn(Spread::kUniform, options.keys, 1 << 18)),
        cursor_(keys_, 0),
        head_("*8\r\n" + Bulk("EVALSHA") + Bulk(LoadScript(options.port)) + Bulk("1") + "$40\r\n") {
  }

  std::string_view Next() {
    const auto wall = SystemClock::Shared().Read().wall.time_since_epoch();
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(wall).count();
    text_ = head_;
    // As long as ours, and says as much.
    text_.append("ratelimit:").append(cursor_.Next()).append(":per-user\r\n");
    text_ += Bulk(kCapacity) += Bulk(kRate) += Bulk(std::to_string(now)) += Bulk("1");
    return text_;
  }

 private:
  const KeySequence keys_;
  Cursor cursor_;
  const std::string head_;
  std::string text_;
};

}  // namespace

void RunUsualWay(const RunOptions& options, std::size_t connections) {
  Requests requests(options);
  std::vector<Socket> pool;
  pool.reserve(connections);
  Readiness readiness;
  for (std::uint32_t i = 0; i < connections; ++i) {
    readiness.Watch(pool.emplace_back(options.port), i);
    pool.back().Send(requests.Next());
  }
  Measurement measurement(options);
  std::vector<std::string> replies(connections);
  std::array<char, 4096> buffer{};
  for (SteadyTime now = Clock(); !measurement.IsOver(now); now = Clock()) {
    const bool begun = measurement.HasBegun(now);
    for (const epoll_event& event : readiness.Poll()) {
      const std::size_t at = event.data.u32;
      std::string& reply = replies[at];
      reply += pool[at].Receive(buffer);
      if (reply.size() <= kAllowed.size() || !reply.ends_with("\r\n")) continue;
      Require(reply.starts_with(kAllowed), "every request is let through");
      reply.clear();
      if (begun) measurement.Count(1);
      pool[at].Send(requests.Next());
    }
  }
  measurement.Print();
}

}  // namespace weir::bench
