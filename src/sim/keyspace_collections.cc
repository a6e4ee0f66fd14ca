// Commands on hashes and lists.
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

Reply Keyspace::Lpush(Words words) { return Push(words, true); }
Reply Keyspace::Rpush(Words words) { return Push(words, false); }

}  // namespace weir::sim
