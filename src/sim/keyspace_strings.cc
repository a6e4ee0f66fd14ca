// Commands on strings.
#include <algorithm>
#include <limits>
#include <utility>

#include "sim/keyspace.h"
#include "sim/numbers.h"

namespace weir::sim {
namespace {

// What SET may be told besides key and value.
struct SetOptions {
  bool only_if_absent = false;
  bool only_if_there = false;
  bool wants_old = false;
  bool keeps_expiry = false;
  std::int64_t expires_at = 0;
  std::string error{};
};

SetOptions ReadSetOptions(Words words, std::int64_t now_ms) {
  SetOptions options;
  const auto fail = [&options](std::string text) {
    options.error = std::move(text);
    return options;
  };
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const bool is_relative = IsWord(word, "px") || IsWord(word, "ex");
    if (is_relative || IsWord(word, "pxat") || IsWord(word, "exat")) {
      if (options.expires_at != 0 || options.keeps_expiry || i + 1 == words.size()) {
        return fail(kSyntaxError);
      }
      const std::int64_t unit = IsWord(word.substr(0, 1), "p") ? 1 : 1000;
      const std::optional<std::int64_t> given = ReadInteger(words[++i]);
      if (!given) return fail(kNotAnInteger);
      const std::int64_t base = is_relative ? now_ms : 0;
      if (*given <= 0 || *given > (std::numeric_limits<std::int64_t>::max() - base) / unit) {
        return fail("ERR invalid expire time in 'set' command");
      }
      options.expires_at = base + *given * unit;
    } else if (IsWord(word, "nx")) {
      options.only_if_absent = true;
    } else if (IsWord(word, "xx")) {
      options.only_if_there = true;
    } else if (IsWord(word, "get")) {
      options.wants_old = true;
    } else if (IsWord(word, "keepttl") && options.expires_at == 0) {
      options.keeps_expiry = true;
    } else {
      return fail(kSyntaxError);
    }
  }
  if (options.only_if_absent && options.only_if_there) return fail(kSyntaxError);
  return options;
}

}  // namespace

Reply Keyspace::Get(Words words) {
  const auto found = Get<std::string>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  return found.value == nullptr ? Reply::Nil() : Reply::Bulk(*found.value);
}

Reply Keyspace::Mget(Words words) {
  Reply reply = Reply::Array();
  for (const std::string_view key : words.subspan(1)) {
    const auto found = Get<std::string>(key);
    reply.items.push_back(found.value == nullptr ? Reply::Nil() : Reply::Bulk(*found.value));
  }
  return reply;
}

Reply Keyspace::Set(Words words) {
  const SetOptions options = ReadSetOptions(words, milliseconds());
  if (!options.error.empty()) return Reply::Error(options.error);
  const Entry* const before = Reach(words[1]);
  Reply old = Reply::Nil();
  if (options.wants_old) {
    old = Get(words);
    if (old.IsError()) return old;
  }
  if (options.only_if_absent ? before != nullptr : options.only_if_there && before == nullptr) {
    return old;
  }
  const std::int64_t kept = options.keeps_expiry && before != nullptr ? before->expires_at : 0;
  Put(words[1], std::string(words[2]), options.keeps_expiry ? kept : options.expires_at);
  if (Entry* const entry = Reach(words[1]); entry == nullptr) Erase(words[1]);
  return options.wants_old ? old : Reply::Ok();
}

Reply Keyspace::Getrange(Words words) {
  const std::optional<std::int64_t> first = ReadInteger(words[2]);
  const std::optional<std::int64_t> last = ReadInteger(words[3]);
  if (!first || !last) return Reply::Error(kNotAnInteger);
  const auto found = Get<std::string>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr || found.value->empty()) return Reply::Bulk("");
  const auto size = static_cast<std::int64_t>(found.value->size());
  const std::int64_t from = std::max<std::int64_t>(*first < 0 ? *first + size : *first, 0);
  const std::int64_t to = std::min(*last < 0 ? *last + size : *last, size - 1);
  if (from > to) return Reply::Bulk("");
  return Reply::Bulk(
      found.value->substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from + 1)));
}

Reply Keyspace::Setrange(Words words) {
  const std::optional<std::int64_t> offset = ReadInteger(words[2]);
  if (!offset) return Reply::Error(kNotAnInteger);
  if (*offset < 0) return Reply::Error("ERR offset is out of range");
  const auto there = Get<std::string>(words[1]);
  if (there.wrong_type) return Reply::Error(kWrongType);
  if (words[3].empty()) {
    return Reply::Integer(there.value == nullptr ? 0
                                                 : static_cast<std::int64_t>(there.value->size()));
  }
  constexpr std::int64_t kLongest = 512LL * 1024 * 1024;
  if (*offset + static_cast<std::int64_t>(words[3].size()) > kLongest) {
    return Reply::Error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  }
  auto& value = Make<std::string>(words[1]);
  const auto at = static_cast<std::size_t>(*offset);
  if (value.size() < at + words[3].size()) value.resize(at + words[3].size(), '\0');
  value.replace(at, words[3].size(), words[3]);
  return Reply::Integer(static_cast<std::int64_t>(value.size()));
}

Reply Keyspace::Strlen(Words words) {
  const auto found = Get<std::string>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  return Reply::Integer(found.value == nullptr ? 0
                                               : static_cast<std::int64_t>(found.value->size()));
}

Reply Keyspace::Append(Words words) {
  const auto found = GetOrMake<std::string>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  found.value->append(words[2]);
  return Reply::Integer(static_cast<std::int64_t>(found.value->size()));
}

Reply Keyspace::Add(std::string_view key, std::int64_t step) {
  const auto found = Get<std::string>(key);
  if (found.wrong_type) return Reply::Error(kWrongType);
  std::int64_t number = 0;
  if (found.value != nullptr) {
    const std::optional<std::int64_t> before = ReadInteger(*found.value);
    if (!before) return Reply::Error(kNotAnInteger);
    number = *before;
  }
  if (__builtin_add_overflow(number, step, &number)) {
    return Reply::Error("ERR increment or decrement would overflow");
  }
  Make<std::string>(key) = std::to_string(number);
  return Reply::Integer(number);
}

Reply Keyspace::Incr(Words words) { return Add(words[1], 1); }
Reply Keyspace::Incrby(Words words) {
  const std::optional<std::int64_t> step = ReadInteger(words[2]);
  return step ? Add(words[1], *step) : Reply::Error(kNotAnInteger);
}

}  // namespace weir::sim
