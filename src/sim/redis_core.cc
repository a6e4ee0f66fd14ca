#include "sim/redis_core.h"

#include <algorithm>

#include "sim/numbers.h"

namespace weir::sim {

Reply RedisCore::Refusal(const CommandTraits& traits) const {
  if (traits.writes && !write_error_.empty()) return Reply::Error(write_error_);
  if (traits.may_grow && is_out_of_memory_ && !has_written_) {
    return Reply::Error("OOM command not allowed when used memory > 'maxmemory'.");
  }
  return Reply::Nil();
}

Reply RedisCore::Execute(Words words) {
  const std::string_view name = words.front();
  if (IsWord(name, "eval")) return Eval(words, false);
  if (IsWord(name, "evalsha")) return Eval(words, true);
  if (IsWord(name, "script")) return Script(words);
  const CommandTraits* const traits = Keyspace::Find(name);
  if (traits == nullptr) return keyspace_.Execute(words);
  Reply refusal = Refusal(*traits);
  return refusal.IsError() ? refusal : keyspace_.Execute(*traits, words);
}

// redis.call
Reply RedisCore::Call(Words words) {
  const CommandTraits* const traits = Keyspace::Find(words.front());
  if (traits == nullptr) return Reply::Error("ERR Unknown Redis command called from script");
  const auto given = static_cast<int>(words.size());
  if (traits->arity >= 0 ? given != traits->arity : given < -traits->arity) {
    return Reply::Error("ERR Wrong number of args calling Redis command from script");
  }
  if (traits->has_key && is_local_ && !is_local_(words[1])) {
    return Reply::Error("ERR Script attempted to access a non local key in a cluster node");
  }
  Reply refusal = Refusal(*traits);
  if (refusal.IsError()) return refusal;
  if (traits->writes) has_written_ = true;
  if (traits->name != "time") return keyspace_.Execute(*traits, words);
  const ServerTime start = keyspace_.server_time();
  keyspace_.SetTime(start + time_step_ * times_asked_++);
  Reply reply = keyspace_.Execute(*traits, words);
  keyspace_.SetTime(start);
  return reply;
}

Reply RedisCore::Eval(Words words, bool by_digest) {
  if (words.size() < 3) {
    return Reply::Error(std::string("ERR wrong number of arguments for '") +
                        (by_digest ? "evalsha" : "eval") + "' command");
  }
  const std::optional<std::int64_t> keys = ReadInteger(words[2]);
  if (!keys) return Reply::Error(kNotAnInteger);
  if (*keys < 0) return Reply::Error("ERR Number of keys can't be negative");
  const Words rest = words.subspan(3);
  if (*keys > static_cast<std::int64_t>(rest.size())) {
    return Reply::Error("ERR Number of keys can't be greater than number of args");
  }
  std::string digest(words[1]);
  if (by_digest) {
    std::ranges::transform(digest, digest.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    if (!KnowsScript(digest)) {
      return Reply::Error("NOSCRIPT No matching script. Please use EVAL.");
    }
  } else {
    digest = LuaEngine::DigestOf(words[1]);
    if (std::optional<Reply> error = engine_.Load(digest, words[1])) return std::move(*error);
    scripts_.insert(digest);
  }
  has_written_ = false;
  times_asked_ = 0;
  ++runs_;
  const auto count = static_cast<std::size_t>(*keys);
  Reply reply = engine_.Run(digest, rest.first(count), rest.subspan(count), *this);
  has_written_ = false;
  return reply;
}

Reply RedisCore::Script(Words words) {
  if (words.size() >= 2 && IsWord(words[1], "flush")) {
    ForgetScripts();
    return Reply::Ok();
  }
  if (words.size() == 3 && IsWord(words[1], "load")) {
    std::string digest = LuaEngine::DigestOf(words[2]);
    if (std::optional<Reply> error = engine_.Load(digest, words[2])) return std::move(*error);
    scripts_.insert(digest);
    return Reply::Bulk(std::move(digest));
  }
  return Reply::Error("ERR unknown subcommand or wrong number of arguments for 'SCRIPT'");
}

}  // namespace weir::sim
