#include "sim/keyspace.h"

#include <algorithm>
#include <array>
#include <limits>

#include "sim/numbers.h"

namespace weir::sim {

const CommandTraits* Keyspace::Find(std::string_view name) {
  using K = Keyspace;
  static const auto* const kCommands =
      new std::map<std::string_view, CommandTraits, std::less<>>([] {
        std::map<std::string_view, CommandTraits, std::less<>> all;
        for (const CommandTraits& traits : std::initializer_list<CommandTraits>{
                 {"del", -2, true, false, true, &K::Del},
                 {"exists", -2, false, false, true, &K::Exists},
                 {"type", 2, false, false, true, &K::Type},
                 {"pexpire", 3, true, false, true, &K::Pexpire},
                 {"pttl", 2, false, false, true, &K::Pttl},
                 {"dbsize", 1, false, false, false, &K::Dbsize},
                 {"flushall", -1, true, false, false, &K::Flushall},
                 {"time", 1, false, false, false, &K::Time},
                 {"get", 2, false, false, true, &K::Get},
                 {"mget", -2, false, false, true, &K::Mget},
                 {"set", -3, true, true, true, &K::Set},
                 {"getrange", 4, false, false, true, &K::Getrange},
                 {"setrange", 4, true, true, true, &K::Setrange},
                 {"strlen", 2, false, false, true, &K::Strlen},
                 {"append", 3, true, true, true, &K::Append},
                 {"incr", 2, true, true, true, &K::Incr},
                 {"incrby", 3, true, true, true, &K::Incrby},
                 {"hset", -4, true, true, true, &K::Hset},
                 {"hlen", 2, false, false, true, &K::Hlen},
                 {"lpush", -3, true, true, true, &K::Lpush},
                 {"rpush", -3, true, true, true, &K::Rpush},
                 {"zadd", -4, true, true, true, &K::Zadd},
                 {"zrem", -3, true, false, true, &K::Zrem},
                 {"zcard", 2, false, false, true, &K::Zcard},
                 {"zscore", 3, false, false, true, &K::Zscore},
                 {"zcount", 4, false, false, true, &K::Zcount},
                 {"zrange", -4, false, false, true, &K::Zrange},
                 {"zrangebyscore", -4, false, false, true, &K::Zrangebyscore},
                 {"zremrangebyscore", 4, true, false, true, &K::Zremrangebyscore},
             }) {
          all.emplace(traits.name, traits);
        }
        return all;
      }());
  char lower[32];
  if (name.size() > sizeof lower) return nullptr;
  std::ranges::transform(
      name, lower, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto found = kCommands->find(std::string_view(lower, name.size()));
  return found == kCommands->end() ? nullptr : &found->second;
}

Reply Keyspace::Execute(const CommandTraits& traits, Words words) {
  const auto given = static_cast<int>(words.size());
  if (traits.arity >= 0 ? given != traits.arity : given < -traits.arity) {
    return Reply::Error("ERR wrong number of arguments for '" + std::string(traits.name) +
                        "' command");
  }
  return (this->*traits.function)(words);
}

Reply Keyspace::Execute(Words words) {
  const CommandTraits* const traits = Find(words.front());
  if (traits != nullptr) return Execute(*traits, words);
  std::string text =
      "ERR unknown command '" + std::string(words.front()) + "', with args beginning with: ";
  for (const std::string_view word : words.subspan(1)) text += "'" + std::string(word) + "' ";
  return Reply::Error(std::move(text));
}

Keyspace::Entry* Keyspace::Reach(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (!IsOver(found->second)) return &found->second;
  entries_.erase(found);
  return nullptr;
}

void Keyspace::DropIfEmpty(std::string_view key) {
  const Entry* const entry = Reach(key);
  if (entry == nullptr) return;
  struct IsEmpty {
    bool operator()(const std::string&) const { return false; }
    bool operator()(const Hash& hash) const { return hash.empty(); }
    bool operator()(const List& list) const { return list.empty(); }
    bool operator()(const SortedSet& set) const { return set.order.empty(); }
  };
  if (std::visit(IsEmpty{}, entry->value)) Erase(key);
}

void Keyspace::Put(std::string_view key, Value value, std::int64_t expires_at) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) {
    entries_.emplace(key, Entry{.value = std::move(value), .expires_at = expires_at});
  } else {
    found->second = {.value = std::move(value), .expires_at = expires_at};
  }
}

bool Keyspace::Erase(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  const bool was_there = !IsOver(found->second);
  entries_.erase(found);
  return was_there;
}

void Keyspace::MoveTo(Keyspace& other, std::string_view key) {
  Entry* const entry = Reach(key);
  if (entry == nullptr) return;
  other.Put(key, std::move(entry->value), entry->expires_at);
  Erase(key);
}

std::vector<std::string> Keyspace::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) {
    if (!IsOver(entry)) keys.push_back(key);
  }
  std::ranges::sort(keys);
  return keys;
}

const Value* Keyspace::Look(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() || IsOver(found->second) ? nullptr : &found->second.value;
}

std::optional<std::int64_t> Keyspace::ExpiresAt(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || IsOver(found->second) || found->second.expires_at == 0) {
    return std::nullopt;
  }
  return found->second.expires_at;
}

Reply Keyspace::Del(Words words) {
  std::int64_t gone = 0;
  for (const std::string_view key : words.subspan(1)) gone += Erase(key) ? 1 : 0;
  return Reply::Integer(gone);
}

Reply Keyspace::Exists(Words words) {
  std::int64_t there = 0;
  for (const std::string_view key : words.subspan(1)) there += Reach(key) != nullptr ? 1 : 0;
  return Reply::Integer(there);
}

Reply Keyspace::Type(Words words) {
  constexpr std::array<const char*, 4> kNames = {"string", "hash", "list", "zset"};
  const Entry* const entry = Reach(words[1]);
  return Reply::Status(entry == nullptr ? "none" : kNames[entry->value.index()]);
}

Reply Keyspace::Pexpire(Words words) {
  const std::optional<std::int64_t> given = ReadInteger(words[2]);
  if (!given) return Reply::Error(kNotAnInteger);
  if (*given > std::numeric_limits<std::int64_t>::max() - milliseconds()) {
    return Reply::Error("ERR invalid expire time in 'pexpire' command");
  }
  Entry* const entry = Reach(words[1]);
  if (entry == nullptr) return Reply::Integer(0);
  entry->expires_at = std::max<std::int64_t>(milliseconds() + *given, 1);
  if (IsOver(*entry)) Erase(words[1]);
  return Reply::Integer(1);
}

Reply Keyspace::Pttl(Words words) {
  const Entry* const entry = Reach(words[1]);
  if (entry == nullptr) return Reply::Integer(-2);
  return Reply::Integer(entry->expires_at == 0 ? -1 : entry->expires_at - milliseconds());
}

Reply Keyspace::Dbsize(Words /*words*/) {
  return Reply::Integer(static_cast<std::int64_t>(Keys().size()));
}

Reply Keyspace::Flushall(Words /*words*/) {
  Clear();
  return Reply::Ok();
}

Reply Keyspace::Time(Words /*words*/) {
  return Reply::Array({Reply::Bulk(std::to_string(now_.count() / 1'000'000)),
                       Reply::Bulk(std::to_string(now_.count() % 1'000'000))});
}

}  // namespace weir::sim
