#include "lab/replay/spread.h"

#include <algorithm>

namespace weir::lab {
namespace {

auto SecondOf(const LogRecord& record) {
  return std::chrono::floor<std::chrono::seconds>(record.time);
}

}  // namespace

std::span<const LogRecord> Spread::Next() {
  out_.clear();
  while (!ended_) {
    const std::span<const LogRecord> more = reader_.Next();
    if (more.empty()) {
      ended_ = true;
      SpreadOver(begun_);
      out_.swap(begun_);
      return out_;
    }
    // The last second may go on in what comes next.
    auto last = more.end();
    while (last != more.begin() && SecondOf(*(last - 1)) == SecondOf(more.back())) --last;
    const auto whole = static_cast<std::size_t>(last - more.begin());
    if (whole == 0 && (begun_.empty() || SecondOf(begun_.back()) == SecondOf(more.back()))) {
      Keep(more, texts_[current_]);
      if (begun_.size() > most_) return GiveUp();
      continue;
    }
    out_.swap(begun_);
    begun_.clear();
    out_.insert(out_.end(), more.begin(), last);
    for (auto from = out_.begin(); from != out_.end();) {
      const auto second = SecondOf(*from);
      const auto to = std::find_if(from, out_.end(),
                                   [&](const LogRecord& each) { return SecondOf(each) != second; });
      SpreadOver({from, to});
      from = to;
    }
    // What was begun before is told now, and its texts must stay for that.
    current_ = 1 - current_;
    texts_[current_].Clear();
    Keep(more.subspan(whole), texts_[current_]);
    return out_;
  }
  return {};
}

// What was read of a second is told as it is; the rest will be, too.
std::span<const LogRecord> Spread::GiveUp() {
  if (given_up_ != SecondOf(begun_.back())) {
    given_up_ = SecondOf(begun_.back());
    ++as_they_are_;
  }
  out_.swap(begun_);
  current_ = 1 - current_;
  texts_[current_].Clear();
  return out_;
}

void Spread::Keep(std::span<const LogRecord> records, Texts& texts) {
  for (const LogRecord& record : records) {
    LogRecord& kept = begun_.emplace_back(record);
    for (std::string_view* const text : {&kept.ip, &kept.user, &kept.api_key, &kept.org, &kept.tier,
                                         &kept.method, &kept.path, &kept.host, &kept.user_agent}) {
      if (!text->empty()) *text = texts.Keep(*text);
    }
    const std::span<std::string_view> wanted = texts.List(record.wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = texts.Keep(record.wanted[i]);
    kept.wanted = wanted;
  }
}

void Spread::SpreadOver(std::span<LogRecord> second) {
  if (second.empty() || given_up_ == SecondOf(second.front())) return;
  const bool whole = std::ranges::all_of(
      second, [](const LogRecord& record) { return WallTime(SecondOf(record)) == record.time; });
  if (!whole) return;
  const auto count = static_cast<std::int64_t>(second.size());
  for (std::int64_t i = 0; i < count; ++i) {
    second[static_cast<std::size_t>(i)].time += Duration(1'000'000'000 * i / count);
  }
}

}  // namespace weir::lab
