#include "sim/redis_cluster.h"

#include <algorithm>
#include <string>

#include "net/endpoint.h"
#include "sim/redis_server.h"

namespace weir::sim {
namespace {

Reply Redirection(std::string_view word, std::uint16_t slot, const RedisServer& node) {
  return Reply::Error(std::string(word) + " " + std::to_string(slot) + " " + node.address());
}

}  // namespace

RedisCluster::RedisCluster(std::vector<RedisServer*> nodes) {
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    owners_[slot] = nodes[slot * nodes.size() / owners_.size()];
  }
  for (RedisServer* const node : nodes) node->Join(this);
}

void RedisCluster::HandOver(RedisServer& from, RedisServer& to) {
  to.Join(this);
  std::ranges::replace(owners_, &from, &to);
  for (auto& [slot, target] : moving_) {
    if (target == &from) target = &to;
  }
}

void RedisCluster::BeginMove(std::uint16_t slot, RedisServer& to) {
  if (owners_[slot] != &to) moving_[slot] = &to;
}

void RedisCluster::MoveKeys(int count) {
  for (const auto& [slot, target] : moving_) {
    Keyspace& from = owners_[slot]->core().keyspace();
    for (const std::string& key : from.Keys()) {
      if (count <= 0) return;
      if (redis::SlotOfKey(key) != slot) continue;
      from.MoveTo(target->core().keyspace(), key);
      --count;
    }
  }
}

void RedisCluster::EndMove(std::uint16_t slot) {
  const auto moving = moving_.find(slot);
  if (moving == moving_.end()) return;
  Keyspace& from = owners_[slot]->core().keyspace();
  for (const std::string& key : from.Keys()) {
    if (redis::SlotOfKey(key) == slot) from.MoveTo(moving->second->core().keyspace(), key);
  }
  owners_[slot] = moving->second;
  moving_.erase(moving);
}

void RedisCluster::EndMoves() {
  while (!moving_.empty()) EndMove(moving_.begin()->first);
}

std::optional<Reply> RedisCluster::Refusal(RedisServer& node, std::vector<std::string_view> keys,
                                           bool is_asking) const {
  if (keys.empty()) return std::nullopt;
  const std::uint16_t slot = redis::SlotOfKey(keys.front());
  for (const std::string_view key : keys) {
    if (redis::SlotOfKey(key) != slot) {
      return Reply::Error("CROSSSLOT Keys in request don't hash to the same slot");
    }
  }
  if (is_down_) return Reply::Error("CLUSTERDOWN The cluster is down");
  const auto moving = moving_.find(slot);
  RedisServer& owner = *owners_[slot];
  const bool is_importing = moving != moving_.end() && moving->second == &node;
  if (&owner != &node && !(is_importing && is_asking)) return Redirection("MOVED", slot, owner);
  if (moving == moving_.end()) return std::nullopt;
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  const Keyspace& data = node.core().keyspace();
  const auto absent = static_cast<std::size_t>(std::ranges::count_if(
      keys, [&data](std::string_view key) { return data.Look(key) == nullptr; }));
  if (absent == 0) return std::nullopt;
  const Reply try_again = Reply::Error("TRYAGAIN Multiple keys request during rehashing of slot");
  if (is_importing) {
    return keys.size() > 1 ? std::optional(try_again) : std::nullopt;
  }
  return absent < keys.size() ? try_again : Redirection("ASK", slot, *moving->second);
}

bool RedisCluster::IsLocal(const RedisServer& node, std::string_view key) const {
  const std::uint16_t slot = redis::SlotOfKey(key);
  const auto moving = moving_.find(slot);
  return owners_[slot] == &node || (moving != moving_.end() && moving->second == &node);
}

Reply RedisCluster::Slots() const {
  Reply reply = Reply::Array();
  for (std::size_t first = 0; first < owners_.size();) {
    std::size_t last = first;
    while (last + 1 < owners_.size() && owners_[last + 1] == owners_[first]) ++last;
    const Endpoint endpoint = *Endpoint::Parse(owners_[first]->address());
    reply.items.push_back(Reply::Array(
        {Reply::Integer(static_cast<std::int64_t>(first)),
         Reply::Integer(static_cast<std::int64_t>(last)),
         Reply::Array({Reply::Bulk(endpoint.host), Reply::Integer(endpoint.port),
                       Reply::Bulk(LuaEngine::DigestOf(owners_[first]->address()))})}));
    first = last + 1;
  }
  return reply;
}

}  // namespace weir::sim
