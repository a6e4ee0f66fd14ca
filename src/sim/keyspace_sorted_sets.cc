// Commands on sorted sets.
#include <algorithm>
#include <limits>

#include "sim/keyspace.h"
#include "sim/numbers.h"

namespace weir::sim {
namespace {

constexpr char kNotAScore[] = "ERR min or max is not a float";

// The scores from `low` to `high`.
struct ScoreRange {
  bool IsAbove(double score) const { return low.is_open ? score > low.score : score >= low.score; }
  bool IsBelow(double score) const {
    return high.is_open ? score < high.score : score <= high.score;
  }
  ScoreBound low;
  ScoreBound high;
};

std::optional<ScoreRange> ReadScoreRange(std::string_view low, std::string_view high) {
  const std::optional<ScoreBound> from = ReadScoreBound(low);
  const std::optional<ScoreBound> to = ReadScoreBound(high);
  if (!from || !to) return std::nullopt;
  return ScoreRange{.low = *from, .high = *to};
}

using Members = std::vector<std::pair<double, std::string>>;

Members Within(const SortedSet& set, const ScoreRange& range) {
  Members members;
  for (auto at = set.order.lower_bound({range.low.score, std::string()});
       at != set.order.end() && range.IsBelow(at->first); ++at) {
    if (range.IsAbove(at->first)) members.push_back(*at);
  }
  return members;
}

// By place in the order, negative ones from the end.
std::optional<Members> ByRank(const SortedSet& set, std::string_view first, std::string_view last) {
  const std::optional<std::int64_t> from = ReadInteger(first);
  const std::optional<std::int64_t> to = ReadInteger(last);
  if (!from || !to) return std::nullopt;
  const auto size = static_cast<std::int64_t>(set.order.size());
  const std::int64_t begin = std::max<std::int64_t>(*from < 0 ? *from + size : *from, 0);
  const std::int64_t end = std::min(*to < 0 ? *to + size : *to, size - 1);
  Members members;
  if (begin > end) return members;
  auto at = std::next(set.order.begin(), begin);
  for (std::int64_t i = begin; i <= end; ++i, ++at) members.push_back(*at);
  return members;
}

Reply AsReply(const Members& members, bool with_scores) {
  Reply reply = Reply::Array();
  for (const auto& [score, member] : members) {
    reply.items.push_back(Reply::Bulk(member));
    if (with_scores) reply.items.push_back(Reply::Bulk(WriteDouble(score)));
  }
  return reply;
}

}  // namespace

void SortedSet::Put(const std::string& member, double score) {
  Remove(member);
  scores.emplace(member, score);
  order.emplace(score, member);
}

bool SortedSet::Remove(const std::string& member) {
  const auto found = scores.find(member);
  if (found == scores.end()) return false;
  order.erase({found->second, member});
  scores.erase(found);
  return true;
}

Reply Keyspace::Zadd(Words words) {
  bool nx = false, xx = false, gt = false, lt = false, ch = false;
  std::size_t i = 2;
  for (; i < words.size(); ++i) {
    bool* const flag = IsWord(words[i], "nx")   ? &nx
                       : IsWord(words[i], "xx") ? &xx
                       : IsWord(words[i], "gt") ? &gt
                       : IsWord(words[i], "lt") ? &lt
                       : IsWord(words[i], "ch") ? &ch
                                                : nullptr;
    if (flag == nullptr) break;
    *flag = true;
  }
  if (i == words.size() || (words.size() - i) % 2 != 0) return Reply::Error(kSyntaxError);
  std::vector<double> scores;
  for (std::size_t at = i; at < words.size(); at += 2) {
    const std::optional<double> score = ReadDouble(words[at]);
    if (!score) return Reply::Error(kNotAFloat);
    scores.push_back(*score);
  }
  const auto found = GetOrMake<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  std::int64_t added = 0;
  std::int64_t changed = 0;
  for (std::size_t n = 0; n < scores.size(); ++n) {
    const std::string member(words[i + 2 * n + 1]);
    const auto before = found.value->scores.find(member);
    const bool is_new = before == found.value->scores.end();
    if (is_new ? xx
               : nx || (gt && scores[n] <= before->second) || (lt && scores[n] >= before->second)) {
      continue;
    }
    added += is_new ? 1 : 0;
    changed += is_new || before->second != scores[n] ? 1 : 0;
    found.value->Put(member, scores[n]);
  }
  DropIfEmpty(words[1]);
  return Reply::Integer(ch ? changed : added);
}

Reply Keyspace::Zrem(Words words) {
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr) return Reply::Integer(0);
  std::int64_t gone = 0;
  for (const std::string_view member : words.subspan(2)) {
    gone += found.value->Remove(std::string(member)) ? 1 : 0;
  }
  DropIfEmpty(words[1]);
  return Reply::Integer(gone);
}

Reply Keyspace::Zcard(Words words) {
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  return Reply::Integer(
      found.value == nullptr ? 0 : static_cast<std::int64_t>(found.value->order.size()));
}

Reply Keyspace::Zscore(Words words) {
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr) return Reply::Nil();
  const auto at = found.value->scores.find(words[2]);
  return at == found.value->scores.end() ? Reply::Nil() : Reply::Bulk(WriteDouble(at->second));
}

Reply Keyspace::Zcount(Words words) {
  const std::optional<ScoreRange> range = ReadScoreRange(words[2], words[3]);
  if (!range) return Reply::Error(kNotAScore);
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr) return Reply::Integer(0);
  return Reply::Integer(static_cast<std::int64_t>(Within(*found.value, *range).size()));
}

Reply Keyspace::Zrange(Words words) {
  for (const std::string_view word : words.subspan(4)) {
    if (IsWord(word, "byscore")) return RangeByScore(words);
    if (!IsWord(word, "withscores")) return Reply::Error(kSyntaxError);
  }
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  static const SortedSet kNone;
  const std::optional<Members> members =
      ByRank(found.value == nullptr ? kNone : *found.value, words[2], words[3]);
  return members ? AsReply(*members, words.size() > 4) : Reply::Error(kNotAnInteger);
}

Reply Keyspace::Zrangebyscore(Words words) { return RangeByScore(words); }

Reply Keyspace::RangeByScore(Words words) {
  const std::optional<ScoreRange> range = ReadScoreRange(words[2], words[3]);
  if (!range) return Reply::Error(kNotAScore);
  bool with_scores = false;
  std::int64_t skipped = 0;
  std::int64_t most = -1;
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (IsWord(words[i], "withscores")) {
      with_scores = true;
    } else if (IsWord(words[i], "limit") && i + 2 < words.size()) {
      const std::optional<std::int64_t> offset = ReadInteger(words[i + 1]);
      const std::optional<std::int64_t> count = ReadInteger(words[i + 2]);
      if (!offset || !count) return Reply::Error(kNotAnInteger);
      skipped = *offset;
      most = *count;
      i += 2;
    } else if (!IsWord(words[i], "byscore")) {
      return Reply::Error(kSyntaxError);
    }
  }
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr || skipped < 0) return Reply::Array();
  Members members = Within(*found.value, *range);
  const auto size = static_cast<std::int64_t>(members.size());
  members.erase(members.begin(), members.begin() + std::min(skipped, size));
  if (most >= 0 && most < static_cast<std::int64_t>(members.size())) {
    members.resize(static_cast<std::size_t>(most));
  }
  return AsReply(members, with_scores);
}

Reply Keyspace::Zremrangebyscore(Words words) {
  const std::optional<ScoreRange> range = ReadScoreRange(words[2], words[3]);
  if (!range) return Reply::Error(kNotAScore);
  const auto found = Get<SortedSet>(words[1]);
  if (found.wrong_type) return Reply::Error(kWrongType);
  if (found.value == nullptr) return Reply::Integer(0);
  const Members gone = Within(*found.value, *range);
  for (const auto& [score, member] : gone) found.value->Remove(member);
  DropIfEmpty(words[1]);
  return Reply::Integer(static_cast<std::int64_t>(gone.size()));
}

}  // namespace weir::sim
