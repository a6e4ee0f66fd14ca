#include "store/redis/heartbeat.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "net/resp/writer.h"
#include "store/fleet.h"
#include "store/redis/node.h"

namespace weir::redis {
namespace {

// Members that are too old go, and those of a future that the clock was set back from, so that the
// set holds those that count and no others.
constexpr std::string_view kBeatScript =
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
    "local oldest = string.format('(%.0f', now - ARGV[2])\n"
    "local score = string.format('%.0f', now)\n"
    "local put = redis.pcall('ZADD', KEYS[1], score, ARGV[1])\n"
    "if type(put) == 'table' then\n"
    "  if string.sub(put.err, 1, 9) ~= 'WRONGTYPE' then return put end\n"
    "  redis.call('DEL', KEYS[1])\n"
    "  redis.call('ZADD', KEYS[1], score, ARGV[1])\n"
    "end\n"
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', oldest)\n"
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. score, '+inf')\n"
    "redis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
    "return redis.call('ZCARD', KEYS[1])\n";
constexpr std::string_view kMembersKey = "weir1:{~fleet}:members";

}  // namespace

Heartbeat::~Heartbeat() {
  Tell(std::unexpected(Error{ErrorCode::kOverloaded, "no server could be told"}));
}

void Heartbeat::Tell(Result<int> result) {
  if (const auto counted = std::exchange(counted_, nullptr)) counted(std::move(result));
}

void Heartbeat::Write(ByteBuffer& out) {
  const auto memory = std::chrono::duration_cast<std::chrono::milliseconds>(kFleetMemory).count();
  const std::string milliseconds = std::to_string(memory);
  const std::array<std::string_view, 6> words = {"EVAL",      kBeatScript, "1",
                                                 kMembersKey, member_,     milliseconds};
  resp::WriteCommand(out, words);
}

bool Heartbeat::Take(const resp::ReplyItem& item) noexcept {
  count_ = item.integer;
  return item.kind == resp::ReplyItem::Kind::kInteger && item.depth == 0;
}

void Heartbeat::Ended(std::unique_ptr<Call> self, Node& node, CallEnd end) noexcept {
  const bool points = end.reply.remedy == Remedy::kGoThere || end.reply.remedy == Remedy::kAskThere;
  if (end.kind == CallEnd::Kind::kErrorReply && points && rounds <= kMostRounds) {
    if (Node* const there = follow_(end.reply, node)) {
      asking = end.reply.remedy == Remedy::kAskThere;
      return there->Send(std::move(self));
    }
  }
  if (end.kind != CallEnd::Kind::kAnswered) return Tell(std::unexpected(std::move(end.error)));
  Tell(static_cast<int>(std::clamp<std::int64_t>(count_, 1, std::numeric_limits<int>::max())));
}

}  // namespace weir::redis
