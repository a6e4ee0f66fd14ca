// A simulated Redis without its connections: data, scripts, and what may be wrong with either.
//
//   LuaEngine engine;
//   RedisCore redis(engine);
//   redis.SetTime(ServerTime(1'735'689'600'000'000));
//   Reply reply = redis.Execute({"EVAL", "return redis.call('GET', KEYS[1])", "1", "key"});
#pragma once

#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "sim/keyspace.h"
#include "sim/lua_engine.h"
#include "sim/reply.h"

namespace weir::sim {

class RedisCore final : private LuaEngine::Commands {
 public:
  // The engine must outlive it; others may use it, too.
  explicit RedisCore(LuaEngine& engine) : engine_(engine) {}

  Keyspace& keyspace() noexcept { return keyspace_; }
  const Keyspace& keyspace() const noexcept { return keyspace_; }
  void SetTime(ServerTime now) noexcept { keyspace_.SetTime(now); }

  // Data commands, EVAL, EVALSHA and SCRIPT.
  Reply Execute(Words words);
  Reply Execute(std::initializer_list<std::string_view> words) {
    return Execute(Words(words.begin(), words.size()));
  }

  // Writes are refused with this error, code and all; empty: they are not.
  void RefuseWrites(std::string error) { write_error_ = std::move(error); }
  // Writes that take memory are refused, but not once a script has begun to write.
  void SetOutOfMemory(bool is_out) noexcept { is_out_of_memory_ = is_out; }
  // Within a script every TIME after the first is so much later, as before Redis 7.2.
  void SetTimeStep(ServerTime step) noexcept { time_step_ = step; }
  // In a cluster: whether scripts may reach a key here.
  void SetLocal(std::function<bool(std::string_view key)> is_local) {
    is_local_ = std::move(is_local);
  }
  void ForgetScripts() { scripts_.clear(); }
  bool KnowsScript(std::string_view digest) const { return scripts_.contains(std::string(digest)); }

  // How many scripts were run.
  std::uint64_t runs() const noexcept { return runs_; }

 private:
  Reply Call(Words words) override;
  Reply Eval(Words words, bool by_digest);
  Reply Script(Words words);
  // The error with which a command that is known cannot be carried out now; nil if it can.
  Reply Refusal(const CommandTraits& traits) const;

  LuaEngine& engine_;
  Keyspace keyspace_;
  std::set<std::string, std::less<>> scripts_;
  std::string write_error_;
  bool is_out_of_memory_ = false;
  ServerTime time_step_{1};
  std::function<bool(std::string_view)> is_local_;
  // Of the script that runs.
  bool has_written_ = false;
  int times_asked_ = 0;
  std::uint64_t runs_ = 0;
};

}  // namespace weir::sim
