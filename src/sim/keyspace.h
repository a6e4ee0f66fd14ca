// The data of a simulated Redis: strings, hashes, lists and sorted sets with expiry, and the
// commands on them that a limiter needs, answered word for word as Redis 7.0 does.
//
// Time stands still until it is set, so that all of a script sees the same keys.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "sim/reply.h"

namespace weir::sim {

struct SortedSet {
  void Put(const std::string& member, double score);
  bool Remove(const std::string& member);

  std::map<std::string, double, std::less<>> scores;
  std::set<std::pair<double, std::string>> order;
};
using Hash = std::map<std::string, std::string, std::less<>>;
using List = std::deque<std::string>;
using Value = std::variant<std::string, Hash, List, SortedSet>;

using Words = std::span<const std::string_view>;
// Since 1970, as TIME tells it.
using ServerTime = std::chrono::microseconds;

class Keyspace;

// What is known of a command before it is carried out.
struct CommandTraits {
  using Function = Reply (Keyspace::*)(Words);

  std::string_view name;  // In lower case.
  int arity = 0;          // With its name; negative: at least.
  bool writes = false;
  bool may_grow = false;  // Refused when there is no memory.
  bool has_key = true;    // Its first argument is a key.
  Function function = nullptr;
};

class Keyspace {
 public:
  // Null if there is no such command.
  static const CommandTraits* Find(std::string_view name);

  void SetTime(ServerTime now) noexcept { now_ = now; }
  ServerTime server_time() const noexcept { return now_; }

  // Carries out a command that Find knows.
  Reply Execute(const CommandTraits& traits, Words words);
  // Likewise, or says what is wrong with it.
  Reply Execute(Words words);

  // For those who look on, or do harm. Expired keys do not count.
  std::vector<std::string> Keys() const;
  const Value* Look(std::string_view key) const;
  // Milliseconds since 1970, or nothing.
  std::optional<std::int64_t> ExpiresAt(std::string_view key) const;
  bool Erase(std::string_view key);
  void Clear() { entries_.clear(); }
  // Moves a key with its expiry into another keyspace, as MIGRATE does.
  void MoveTo(Keyspace& other, std::string_view key);

 private:
  struct Entry {
    Value value;
    std::int64_t expires_at = 0;  // Milliseconds since 1970; 0: never.
  };
  struct TextHash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  // How one value is had, if it is there and of that type.
  template <typename T>
  struct Found {
    T* value = nullptr;  // Null: not there.
    bool wrong_type = false;
  };

  std::int64_t milliseconds() const noexcept { return now_.count() / 1000; }
  bool IsOver(const Entry& entry) const noexcept {
    return entry.expires_at != 0 && milliseconds() >= entry.expires_at;
  }
  // What has expired is dropped on the way.
  Entry* Reach(std::string_view key);
  template <typename T>
  Found<T> Get(std::string_view key);
  template <typename T>
  Found<T> GetOrMake(std::string_view key);
  // Requires that the key is absent or holds a T.
  template <typename T>
  T& Make(std::string_view key);
  void DropIfEmpty(std::string_view key);
  void Put(std::string_view key, Value value, std::int64_t expires_at);
  Reply Add(std::string_view key, std::int64_t step);
  Reply Push(Words words, bool front);
  Reply RangeByScore(Words words);

  // Keys of any type.
  Reply Del(Words words);
  Reply Exists(Words words);
  Reply Type(Words words);
  Reply Pexpire(Words words);
  Reply Pttl(Words words);
  Reply Dbsize(Words words);
  Reply Flushall(Words words);
  Reply Time(Words words);
  // Strings.
  Reply Get(Words words);
  Reply Mget(Words words);
  Reply Set(Words words);
  Reply Getrange(Words words);
  Reply Setrange(Words words);
  Reply Strlen(Words words);
  Reply Append(Words words);
  Reply Incr(Words words);
  Reply Incrby(Words words);
  // Hashes.
  Reply Hset(Words words);
  Reply Hlen(Words words);
  // Lists.
  Reply Lpush(Words words);
  Reply Rpush(Words words);
  // Sorted sets.
  Reply Zadd(Words words);
  Reply Zrem(Words words);
  Reply Zcard(Words words);
  Reply Zscore(Words words);
  Reply Zcount(Words words);
  Reply Zrange(Words words);
  Reply Zrangebyscore(Words words);
  Reply Zremrangebyscore(Words words);

  ServerTime now_{0};
  std::unordered_map<std::string, Entry, TextHash, std::equal_to<>> entries_;
};

template <typename T>
Keyspace::Found<T> Keyspace::Get(std::string_view key) {
  Entry* const entry = Reach(key);
  if (entry == nullptr) return {};
  T* const value = std::get_if<T>(&entry->value);
  return {.value = value, .wrong_type = value == nullptr};
}

template <typename T>
Keyspace::Found<T> Keyspace::GetOrMake(std::string_view key) {
  if (Reach(key) == nullptr) Put(key, T{}, 0);
  T* const value = std::get_if<T>(&entries_.find(key)->second.value);
  if (value == nullptr) return {.wrong_type = true};
  return {.value = value, .wrong_type = false};
}

template <typename T>
T& Keyspace::Make(std::string_view key) {
  if (Reach(key) == nullptr) Put(key, T{}, 0);
  return std::get<T>(entries_.find(key)->second.value);
}

}  // namespace weir::sim
