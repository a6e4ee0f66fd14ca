// Which node of a simulated cluster has which slots, and slots on the move between two of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/reply.h"
#include "store/redis/slots.h"

namespace weir::sim {

class RedisServer;

// All nodes agree at once: what they say while they do not is tried on real servers.
class RedisCluster {
 public:
  // Divides the slots evenly. Every node joins.
  explicit RedisCluster(std::vector<RedisServer*> nodes);
  RedisCluster(const RedisCluster&) = delete;
  RedisCluster& operator=(const RedisCluster&) = delete;

  RedisServer& OwnerOf(std::uint16_t slot) const { return *owners_[slot]; }
  // All slots of one go to another, with whatever data that has: a failover.
  void HandOver(RedisServer& from, RedisServer& to);

  // A slot moves, key by key.
  void BeginMove(std::uint16_t slot, RedisServer& to);
  // So many keys of slots that move, or all that are left.
  void MoveKeys(int count);
  // With all that is left.
  void EndMove(std::uint16_t slot);
  void EndMoves();

  // Says CLUSTERDOWN to everybody.
  void SetDown(bool is_down) noexcept { is_down_ = is_down; }

  // Why `node` will not carry out a command on these keys: MOVED, ASK, TRYAGAIN, CROSSSLOT or
  // CLUSTERDOWN.
  std::optional<Reply> Refusal(RedisServer& node, std::vector<std::string_view> keys,
                               bool is_asking) const;
  // Whether a script may reach it there.
  bool IsLocal(const RedisServer& node, std::string_view key) const;
  // What CLUSTER SLOTS says.
  Reply Slots() const;

 private:
  std::array<RedisServer*, redis::kSlots> owners_{};
  std::map<std::uint16_t, RedisServer*> moving_;  // And where they go.
  bool is_down_ = false;
};

}  // namespace weir::sim
