// Commands on hashes and lists.
#include <algorithm>

#include "sim/keyspace.h"
#include "sim/numbers.h"

namespace weir::sim {

Reply Keyspace::Hset(Words words) {
  if (words.size() % 2 != 0) {
    return Reply::Error("ERR wrong number of arguments for '" + std::string(Find(words[0])->name) +
                        "' command");
  }
  const auto found = GetOrMake<Hash>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  std::int64_t added = 0;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto [at, is_new] =
        found.value->insert_or_assign(std::string(words[i]), std::string(words[i + 1]));
    added += is_new ? 1 : 0;
  }
  return Reply::Integer(added);
}

Reply Keyspace::Hmset(Words words) {
  Reply reply = Hset(words);
  return reply.IsError() ? reply : Reply::Ok();
}

Reply Keyspace::Hmget(Words words) {
  const auto found = Get<Hash>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  Reply reply = Reply::Array();
  for (const std::string_view field : words.subspan(2)) {
    if (found.value == nullptr) {
      reply.items.push_back(Reply::Nil());
      continue;
    }
    const auto at = found.value->find(field);
    reply.items.push_back(at == found.value->end() ? Reply::Nil() : Reply::Bulk(at->second));
  }
  return reply;
}

Reply Keyspace::Hget(Words words) {
  Reply reply = Hmget(words);
  return reply.IsError() ? reply : std::move(reply.items.front());
}

Reply Keyspace::Hgetall(Words words) {
  const auto found = Get<Hash>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  Reply reply = Reply::Array();
  if (found.value == nullptr) return reply;
  for (const auto& [field, value] : *found.value) {
    reply.items.push_back(Reply::Bulk(field));
    reply.items.push_back(Reply::Bulk(value));
  }
  return reply;
}

Reply Keyspace::Hdel(Words words) {
  const auto found = Get<Hash>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  std::int64_t gone = 0;
  if (found.value == nullptr) return Reply::Integer(0);
  for (const std::string_view field : words.subspan(2)) {
    gone += static_cast<std::int64_t>(found.value->erase(std::string(field)));
  }
  DropIfEmpty(words[1]);
  return Reply::Integer(gone);
}

Reply Keyspace::Hlen(Words words) {
  const auto found = Get<Hash>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  return Reply::Integer(found.value == nullptr ? 0
                                               : static_cast<std::int64_t>(found.value->size()));
}

Reply Keyspace::Push(Words words, bool front) {
  const auto found = GetOrMake<List>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  for (const std::string_view item : words.subspan(2)) {
    if (front) {
      found.value->emplace_front(item);
    } else {
      found.value->emplace_back(item);
    }
  }
  return Reply::Integer(static_cast<std::int64_t>(found.value->size()));
}

Reply Keyspace::Pop(Words words, bool front) {
  const auto found = Get<List>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr) return Reply::Nil();
  List& list = *found.value;
  Reply reply = Reply::Bulk(front ? list.front() : list.back());
  if (front) {
    list.pop_front();
  } else {
    list.pop_back();
  }
  DropIfEmpty(words[1]);
  return reply;
}

Reply Keyspace::Lpush(Words words) { return Push(words, true); }
Reply Keyspace::Rpush(Words words) { return Push(words, false); }
Reply Keyspace::Lpop(Words words) { return Pop(words, true); }
Reply Keyspace::Rpop(Words words) { return Pop(words, false); }

Reply Keyspace::Llen(Words words) {
  const auto found = Get<List>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  return Reply::Integer(found.value == nullptr ? 0
                                               : static_cast<std::int64_t>(found.value->size()));
}

Reply Keyspace::Lindex(Words words) {
  const std::optional<std::int64_t> index = ReadInteger(words[2]);
  if (!index) return Reply::Error(kNotAnInteger);
  const auto found = Get<List>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr) return Reply::Nil();
  const auto size = static_cast<std::int64_t>(found.value->size());
  const std::int64_t at = *index < 0 ? *index + size : *index;
  if (at < 0 || at >= size) return Reply::Nil();
  return Reply::Bulk((*found.value)[static_cast<std::size_t>(at)]);
}

Reply Keyspace::Lrange(Words words) {
  const std::optional<std::int64_t> first = ReadInteger(words[2]);
  const std::optional<std::int64_t> last = ReadInteger(words[3]);
  if (!first || !last) return Reply::Error(kNotAnInteger);
  const auto found = Get<List>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  Reply reply = Reply::Array();
  if (found.value == nullptr) return reply;
  const auto size = static_cast<std::int64_t>(found.value->size());
  const std::int64_t from = std::max<std::int64_t>(*first < 0 ? *first + size : *first, 0);
  const std::int64_t to = std::min(*last < 0 ? *last + size : *last, size - 1);
  for (std::int64_t i = from; i <= to; ++i) {
    reply.items.push_back(Reply::Bulk((*found.value)[static_cast<std::size_t>(i)]));
  }
  return reply;
}

}  // namespace weir::sim
