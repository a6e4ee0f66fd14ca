// What the answer means: the script's verdicts, replayed on the state it read, so that every charge
// is told what the same step would tell it anywhere else.
#include <algorithm>
#include <charconv>
#include <optional>

#include "store/redis/script_call.h"

namespace weir::redis {
namespace {

constexpr std::size_t kGroupsInMask = 46;
constexpr std::int64_t kLatestTime =
    8'000'000'000'000'000;  // As long as nanoseconds can be counted.

// The number at the beginning of a text, and the blank behind it, which are taken off.
std::optional<std::int64_t> TakeNumberFrom(std::string_view& text) noexcept {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ' || number < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()) + 1);
  return number;
}

}  // namespace

Decision DescribeUncounted(const Charge& charge) noexcept {
  const Limit& limit = *charge.limit;
  const bool asks = charge.verb == Verb::kCheck || charge.verb == Verb::kPeek;
  Decision decision{.source = Source::kStore,
                    .rule = charge.rule,
                    .limit = limit.capacity(),
                    .remaining = limit.capacity(),
                    .cost = charge.cost};
  decision.allowed = limit.kind() == LimitKind::kUnlimited || !asks;
  decision.reason = decision.allowed ? Reason::kOk : Reason::kDenyList;
  if (!decision.allowed) decision.retry_after = kNever;
  return decision;
}

void ScriptCall::SizeMasks() noexcept {
  std::size_t decided = 0;
  for (const Work& work : works_) {
    if (work.is_asked()) ++decided;
  }
  masks_.assign(decided / kGroupsInMask + 1, 0);
}

bool ScriptCall::TakeHeader(const resp::ReplyItem& item) noexcept {
  if (item.kind == resp::ReplyItem::Kind::kBulk) return TakeText(item.text);
  if (item.kind != resp::ReplyItem::Kind::kArray) return false;
  SizeMasks();
  const std::size_t least = 1 + masks_.size() + plain_ + logs_;
  if (item.count < least || item.count > least + 1 + keys_.size()) return false;
  items_ = item.count;
  taken_ = 0;
  next_sight_ = 0;
  return true;
}

bool ScriptCall::TakeNumber(std::size_t index, const resp::ReplyItem& item) noexcept {
  if (item.kind != resp::ReplyItem::Kind::kInteger || item.integer < 0) return false;
  if (index > 0) {
    masks_[index - 1] = item.integer;
    return true;
  }
  if (item.integer > kLatestTime) return false;
  SetMoment(item.integer);
  return true;
}

void ScriptCall::SetMoment(std::int64_t microseconds) noexcept {
  moment_.wall = WallTime(std::chrono::microseconds(microseconds));
  moment_.now = std::max<std::int64_t>(0, (moment_.wall - kEpoch).count());
}

// All that there is to say of short buckets, in one text.
bool ScriptCall::TakeText(std::string_view text) noexcept {
  if (!is_short_) return false;
  const auto seconds = TakeNumberFrom(text);
  const auto microseconds = TakeNumberFrom(text);
  constexpr std::int64_t kMillion = 1'000'000;
  if (!seconds || !microseconds || *seconds >= kLatestTime / kMillion ||
      *microseconds >= kMillion) {
    return false;
  }
  SetMoment(*seconds * kMillion + *microseconds);
  SizeMasks();
  for (std::int64_t& mask : masks_) {
    const auto number = TakeNumberFrom(text);
    if (!number) return false;
    mask = *number;
  }
  for (std::size_t i = 0; i < plain_; ++i) {
    const bool is_last = i + 1 == plain_;
    const std::size_t size = is_last ? text.size() : text.find(' ');
    if (size == std::string_view::npos) return false;
    keys_[order_[i]].state.Read(StateKind::kBucket, text.substr(0, size));
    text.remove_prefix(is_last ? size : size + 1);
  }
  Finish();
  return true;
}

bool ScriptCall::TakeState(Key& key, const resp::ReplyItem& item) noexcept {
  using Kind = resp::ReplyItem::Kind;
  if (item.kind != Kind::kBulk && item.kind != Kind::kNull) return false;
  key.found = item.kind == Kind::kBulk;
  key.state.Clear();
  key.record.clear();
  if (key.found && key.use == KeyUse::kRecordToRead) key.record = item.text;
  if (key.found && key.use == KeyUse::kPlain) key.state.Read(key.kind, item.text);
  return true;
}

bool ScriptCall::TakeSight(const resp::ReplyItem& item) noexcept {
  if (item.kind != resp::ReplyItem::Kind::kBulk) return false;
  while (KindOf(*entries_[next_sight_].limit) != StateKind::kLog) ++next_sight_;
  return entries_[next_sight_++].sight.Read(item.text);
}

bool ScriptCall::TakeCorrupt(std::size_t index, const resp::ReplyItem& item) noexcept {
  if (item.kind != resp::ReplyItem::Kind::kInteger || item.integer < 0) return false;
  const auto number = static_cast<std::size_t>(item.integer);
  if (index == 0) {
    corrupt_ += number;
    return true;
  }
  if (number < 1 || number > order_.size()) return false;
  keys_[order_[number - 1]].state.Clear();
  return true;
}

bool ScriptCall::Take(const resp::ReplyItem& item) noexcept {
  if (item.depth == 0) return TakeHeader(item);
  if (item.depth != 1 || taken_ >= items_) return false;
  const std::size_t states = 1 + masks_.size();
  const std::size_t sights = states + plain_;
  const std::size_t rest = sights + logs_;
  const std::size_t index = taken_++;
  const bool good = index < states   ? TakeNumber(index, item)
                    : index < sights ? TakeState(keys_[order_[index - states]], item)
                    : index < rest   ? TakeSight(item)
                                     : TakeCorrupt(index - rest, item);
  if (good && taken_ == items_) Finish();
  return good;
}

void ScriptCall::Finish() {
  std::size_t bit = 0;
  wants_another_round_ = false;
  for (Work& work : works_) {
    if (!work.is_asked()) continue;
    work.passed = (masks_[bit / kGroupsInMask] >> bit % kGroupsInMask & 1) != 0;
    ++bit;
    if (work.stage == Stage::kReadRecord) continue;
    work.group->decided_at = moment_.wall;
    if (work.stage == Stage::kSettle) {
      TellSettled(work);
    } else {
      if (work.doomed) work.passed = false;
      Replay(work);
      Tell(work);
    }
    work.stage = Stage::kDone;
  }
  BeginNextRound();
}

SharedStep ScriptCall::DoEntry(Entry& entry, const StepRequest& request, Effect effect) {
  SharedStep step = KindOf(*entry.limit) == StateKind::kLog
                        ? DescribeLog(*entry.limit, request, moment_, entry.sight, effect)
                        : keys_[entry.key].state.Do(*entry.limit, request, moment_, effect);
  step.decision.source = Source::kStore;
  return step;
}

// The verdict on the group is the script's. What it did to each charge follows from it.
void ScriptCall::ReplayEntry(Entry& entry, bool passed) {
  SharedStep step;
  if (passed && !entry.shadow) {
    step = DoEntry(entry, entry.request, Effect::kApply);
    if (!step.decision.allowed) {
      step.decision.allowed = true;
      step.decision.reason = Reason::kOk;
      step.decision.retry_after = Duration(0);
    }
    entry.step = step;
    return;
  }
  step = DoEntry(entry, entry.request, Effect::kDecideOnly);
  if (passed && step.decision.allowed) {
    step = DoEntry(entry, entry.request, Effect::kApply);
  } else {
    step.charged = 0;
    if (step.decision.allowed) {
      // As it is rather than as it would have been.
      const StepRequest look{.verb = Verb::kPeek, .cost = 0};
      const Decision seen = DoEntry(entry, look, Effect::kDecideOnly).decision;
      step.decision.remaining = seen.remaining;
      step.decision.reset_after = seen.reset_after;
    }
  }
  entry.step = step;
}

void ScriptCall::Replay(Work& work) {
  bool denied = work.passed || work.doomed;
  for (std::size_t i = work.first; i < work.first + work.count; ++i) {
    ReplayEntry(entries_[i], work.passed);
    denied = denied || (!entries_[i].shadow && !entries_[i].step.decision.allowed);
  }
  if (denied) return;
  // The script denied what the steps here would allow. It is right, and somebody must say so.
  for (std::size_t i = work.first; i < work.first + work.count; ++i) {
    if (entries_[i].shadow) continue;
    Decision& decision = entries_[i].step.decision;
    decision.allowed = false;
    decision.reason = Reason::kLimited;
    decision.retry_after = std::chrono::milliseconds(1);
    decision.delay = Duration(0);
    return;
  }
}

void ScriptCall::Tell(Work& work) {
  Group& group = *work.group;
  group.reservation = work.passed ? work.id : ReservationId::kNone;
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    const Charge& charge = group.charges[i];
    if (charge.limit->kind() != LimitKind::kCounted) {
      group.decisions[i] = DescribeUncounted(charge);
    } else {
      const Entry& entry = entries_[work.first + entry_of_[work.entry_of + i]];
      group.decisions[i] = entry.step.decision;
      group.decisions[i].rule = charge.rule;
      if (work.passed && i < group.receipts.size()) {
        const std::int64_t charged = entry.charge == i ? entry.step.charged : 0;
        group.receipts[i] = {.charged = charged, .at = Ticks(entry.step.receipt)};
      }
    }
    group.decisions[i].reservation = group.reservation;
  }
  group.decision = Combine(group.charges, group.decisions);
  group.decision.source = Source::kStore;
  group.decision.reservation = group.reservation;
}

}  // namespace weir::redis
