// A simulated Redis on a simulated network, and what can happen to it. It may be one of several
// that stand alone, a node of a cluster, or a sentinel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/loop.h"
#include "sim/lua_engine.h"
#include "sim/network.h"
#include "sim/redis_core.h"
#include "sim/sim_loop.h"

namespace weir::sim {

class RedisCluster;

// Lives as long as its world runs.
class RedisServer final : private Acceptor {
 public:
  struct Options {
    std::string address;  // 10.0.0.1:6379
    std::string user = "default";
    std::string password{};  // Empty: everybody may.
    std::string version = "7.0.15";
    std::string eviction = "noeviction";
    ClockError clock{};
  };
  // Everything must outlive it.
  RedisServer(World& world, Network& network, LuaEngine& engine, Options options);
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  const std::string& address() const noexcept { return options_.address; }
  // With its clock set: what is in it now.
  RedisCore& core();
  SimLoop& loop() noexcept { return loop_; }

  // The process ends: connections break, and nobody listens.
  void Crash();
  // It begins anew, empty or with the data it had. Scripts are gone in any case.
  enum class Data : std::uint8_t { kLost, kKept };
  void Start(Data data);
  bool IsUp() const noexcept { return is_up_; }
  // The process does nothing for a while; connections stay.
  void Pause(Duration time) { loop_.HoldUntil(loop_.world().elapsed() + time); }
  // So long is every command under way.
  void SetSlowness(Duration each) noexcept { slowness_ = each; }
  // Whatever touches data is answered with this, code and all; empty: as it should be.
  void SetError(std::string error) { error_ = std::move(error); }
  void SetReadOnly(bool is_read_only);
  void SetUnableToSave(bool is_unable);
  void SetOutOfMemory(bool is_out) { core_.SetOutOfMemory(is_out); }
  // Nobody is let in any more, those who are already included.
  void SetRevoked(bool is_revoked) noexcept { is_revoked_ = is_revoked; }
  // So many replies to scripts are no replies at all.
  void SpoilReplies(int count) noexcept { replies_to_spoil_ = count; }
  void MoveClock(Duration step) { loop_.MoveWall(step); }
  // So many keys are forgotten. Which ones were.
  std::vector<std::string> Evict(int count, Random& random);
  // What a replica would have: see Start, which keeps it.
  void CopyDataFrom(RedisServer& other);

  // One of a cluster from now on; null: it stands alone.
  void Join(RedisCluster* cluster);
  // A sentinel from now on, which says where masters are.
  void SetMaster(const std::string& name, const std::string& address) { masters_[name] = address; }

  std::uint64_t commands() const noexcept { return commands_; }

 private:
  class Session;

  void OnAccept(std::unique_ptr<Stream> stream) override;
  Reply Answer(Session& session, Words words);
  Reply AnswerAccess(Session& session, Words words);
  Reply AnswerData(Session& session, Words words);
  Reply AnswerInfo() const;
  Reply AnswerSentinel(Words words) const;
  std::string Spoiled();
  void RefuseWrites();

  World& world_;
  Network& network_;
  const Options options_;
  SimLoop loop_;
  RedisCore core_;
  RedisCluster* cluster_ = nullptr;
  std::map<std::string, std::string> masters_;
  std::map<std::uint64_t, std::unique_ptr<Session>> sessions_;  // In the order they came.
  std::uint64_t accepted_ = 0;
  std::vector<std::unique_ptr<Session>> ended_;  // Until nothing of them is under way.
  bool is_up_ = false;
  bool is_read_only_ = false;
  bool is_unable_to_save_ = false;
  bool is_revoked_ = false;
  int replies_to_spoil_ = 0;
  int starts_ = 0;
  Duration slowness_{0};
  Duration busy_until_{0};
  std::string error_;
  std::uint64_t commands_ = 0;
};

}  // namespace weir::sim
