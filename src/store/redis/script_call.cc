#include "store/redis/script_call.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "store/redis/reservation_id.h"
#include "store/redis/slots.h"

namespace weir::redis {
namespace {

// A reservation may have as many keys as a group, and nobody knows before its record is read. Most
// have few; the script takes what four such records can hold.
constexpr std::size_t kSettlementWeight = ScriptCall::kMostKeys / 4;

bool IsDoomed(const Group& group) noexcept {
  return std::ranges::any_of(group.charges, [](const Charge& charge) {
    return charge.limit->kind() == LimitKind::kDeny && Asks(charge) && !charge.shadow;
  });
}

StepRequest RequestOf(const Charge& charge) noexcept {
  const Duration most = ToDuration(Ticks(charge.limit->max_wait()));
  return {.verb = charge.verb,
          .cost = charge.cost,
          .wait = ToTicks(std::clamp(charge.wait, Duration(0), most)),
          .reserved = charge.reserved,
          .receipt = charge.receipt};
}

std::optional<Error> ProblemWith(const Group& group) {
  const auto refuse = [](std::string message) {
    return Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)};
  };
  if (group.charges.size() > kMaxGroupCharges || group.decisions.size() < group.charges.size()) {
    return refuse("charges: " + std::to_string(group.charges.size()) + " with " +
                  std::to_string(group.decisions.size()) +
                  " decisions are not allowed; write at most " + std::to_string(kMaxGroupCharges) +
                  ", and a decision for each");
  }
  // What gives back is one way or the other, by the kind of limit.
  const auto undoes = [](const Charge& charge) {
    return charge.verb == Verb::kSettle || charge.verb == Verb::kUnbook;
  };
  const auto other = [&](const Charge& charge) {
    const bool both_undo = undoes(charge) && undoes(group.charges[0]);
    return charge.verb != group.charges[0].verb && !both_undo;
  };
  if (std::ranges::any_of(group.charges, other)) {
    return refuse("verb: the charges of a group have different ones; write the same for all");
  }
  return std::nullopt;
}

}  // namespace

bool ScriptCall::DecideAlone(Group& group) noexcept {
  group.error.reset();
  if (Settles(group)) {
    if (IsSharedReservation(group.reservation)) return false;
    group.error = ReservationNotFound();
    return true;
  }
  if (auto problem = ProblemWith(group)) {
    group.error = std::move(problem);
    return true;
  }
  group.reservation = ReservationId::kNone;
  if (std::ranges::any_of(group.charges, IsCounted)) return false;
  // Even nothing can be reserved: there will be a commit.
  if (group.action == Action::kReserve && !IsDoomed(group)) return false;
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    group.decisions[i] = DescribeUncounted(group.charges[i]);
  }
  group.decision = Combine(group.charges, group.decisions);
  group.decision.source = Source::kStore;
  return true;
}

void ScriptCall::Clear() noexcept {
  works_.clear();
  keys_.clear();
  key_bytes_.clear();
  key_table_.clear();
  entries_.clear();
  entry_of_.clear();
  texts_.clear();
  remade_.clear();
  weight_ = 0;
  slot_ = 0;
  corrupt_ = 0;
  wants_another_round_ = false;
  taken_ = items_ = 0;
}

bool ScriptCall::Add(Group& group, WallTime wall, const Part& part) noexcept {
  const std::size_t keys = (part.taken_at ? 2 : 1) * group.charges.size();
  const std::size_t weight = Settles(group) ? kSettlementWeight : keys + 1;
  if (!works_.empty() && weight_ + weight > kMostKeys) return false;
  const bool is_first = works_.empty();
  weight_ += weight;
  wall_ = wall;
  Work& work = works_.emplace_back(Work{.group = &group,
                                        .stage = Stage::kDecide,
                                        .doomed = false,
                                        .claims = part.claims,
                                        .taken_at = part.taken_at,
                                        .first = entries_.size(),
                                        .count = 0,
                                        .entry_of = entry_of_.size(),
                                        .id = ReservationId::kNone,
                                        .record = 0,
                                        .head = 0,
                                        .ttl = Duration(0),
                                        .passed = false,
                                        .found = {},
                                        .claim = {}});
  if (DecideAlone(group)) {
    work.stage = Stage::kDone;
  } else if (Settles(group)) {
    work.stage = Stage::kReadRecord;
    work.id = group.reservation;
    const std::size_t begin = key_bytes_.size();
    AppendRecordKey(key_bytes_, work.id);
    work.record = KeyFrom(begin, KeyUse::kRecordToRead, StateKind::kBucket);
    if (work.claims) {
      AppendSettling(texts_.emplace_back(), SettlingOf(group));
      work.head = texts_.size();
    }
  } else {
    AddEntries(work);
    AddRecord(work, part);
  }
  if (is_first && !keys_.empty()) slot_ = SlotOfKey(TextOf(keys_[0]));
  return true;
}

std::size_t ScriptCall::KeyFrom(std::size_t begin, KeyUse use, StateKind kind) {
  constexpr std::size_t kPlaces = 1024;
  if (key_table_.empty()) key_table_.assign(kPlaces, 0);
  const std::string_view text = std::string_view(key_bytes_).substr(begin);
  std::size_t place = std::hash<std::string_view>()(text) % kPlaces;
  for (; key_table_[place] != 0; place = (place + 1) % kPlaces) {
    const std::size_t known = key_table_[place] - 1U;
    if (TextOf(keys_[known]) != text) continue;
    key_bytes_.resize(begin);
    return known;
  }
  keys_.push_back({.begin = begin,
                   .size = text.size(),
                   .use = use,
                   .kind = kind,
                   .place = 0,
                   .state = {},
                   .record = {},
                   .found = false});
  key_table_[place] = static_cast<std::uint16_t>(keys_.size());
  return keys_.size() - 1;
}

// Charges on the same key count as one of their summed cost; a shadow beside an enforced one adds
// nothing.
void ScriptCall::AddEntries(Work& work) {
  const Group& group = *work.group;
  work.doomed = IsDoomed(group);
  entry_of_.resize(work.entry_of + group.charges.size(), 0);
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    const Charge& charge = group.charges[i];
    if (!IsCounted(charge)) continue;
    const StateKind kind = KindOf(*charge.limit);
    const std::size_t begin = key_bytes_.size();
    AppendKey(key_bytes_, charge);
    const auto use = kind == StateKind::kLog ? KeyUse::kLog : KeyUse::kPlain;
    const std::size_t key = KeyFrom(begin, use, kind);
    std::size_t at = work.first;
    while (at < entries_.size() && entries_[at].key != key) ++at;
    entry_of_[work.entry_of + i] = static_cast<std::uint8_t>(at - work.first);
    if (at == entries_.size()) {
      entries_.push_back({});
    } else if (entries_[at].shadow == charge.shadow) {
      entries_[at].request.cost += charge.cost;
      entries_[at].request.reserved += charge.reserved;
      ++entries_[at].times;
      continue;
    } else if (charge.shadow) {
      continue;
    }
    Entry& entry = entries_[at];
    entry = {};
    entry.limit = charge.limit;
    entry.request = RequestOf(charge);
    entry.key = key;
    if (work.taken_at && kind == StateKind::kBucket && charge.verb == Verb::kSettle) {
      const std::size_t begin_undone = key_bytes_.size();
      AppendUndoneKey(key_bytes_, charge);
      entry.undone = KeyFrom(begin_undone, KeyUse::kUndone, kind);
    }
    entry.charge = i;
    entry.times = 1;
    entry.shadow = charge.shadow;
  }
  work.count = entries_.size() - work.first;
}

void ScriptCall::AddRecord(Work& work, const Part& part) {
  const Group& group = *work.group;
  const bool reserves = group.action == Action::kReserve;
  Duration longest_lease{0};
  for (const Charge& charge : group.charges) {
    if (TakesLease(charge)) longest_lease = std::max(longest_lease, charge.limit->spec().lease);
  }
  if (work.doomed || (!reserves && longest_lease == Duration(0))) return;
  work.ttl = reserves ? group.ttl : longest_lease;
  std::uint16_t slot = 0;
  if (work.count > 0) {
    slot = SlotOfKey(TextOf(keys_[entries_[work.first].key]));
  } else if (!group.charges.empty()) {
    slot = SlotOfTag(group.charges[0].key);
  }
  work.id = part.id != ReservationId::kNone ? part.id : DrawReservationId(slot);
  const std::size_t begin = key_bytes_.size();
  AppendRecordKey(key_bytes_, work.id);
  work.record = KeyFrom(begin, KeyUse::kRecord, StateKind::kBucket);
  AppendRecordHead(texts_.emplace_back(), part.other_slots);
  work.head = texts_.size();
  for (std::size_t i = work.first; i < work.first + work.count; ++i) {
    Entry& entry = entries_[i];
    const Charge& charge = group.charges[entry.charge];
    const bool is_lease =
        entry.limit->algorithm() == Algorithm::kConcurrency && Takes(entry.request);
    if (!reserves && !is_lease) continue;
    // Of what merely asked beside the others there is nothing to settle.
    if (charge.keeps_cost && charge.cost == 0) continue;
    const RecordedCharge recorded{.key = TextOf(keys_[entry.key]),
                                  .rule = charge.rule,
                                  .hash = charge.hash,
                                  .shadow = charge.shadow,
                                  .keeps_cost = charge.keeps_cost,
                                  .times = entry.times,
                                  .asked = Takes(entry.request) ? entry.request.cost : 0};
    AppendRecordText(texts_.emplace_back(), recorded, *entry.limit);
    entry.text = texts_.size();
  }
}

void ScriptCall::Fail(const Error& error) noexcept {
  for (Work& work : works_) {
    if (work.stage != Stage::kDone) work.group->error = error;
    work.stage = Stage::kDone;
  }
  wants_another_round_ = false;
}

}  // namespace weir::redis
