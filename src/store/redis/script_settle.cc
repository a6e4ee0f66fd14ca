// Settlements: the record of a reservation says what to settle, the limits in force say how.
#include <algorithm>
#include <utility>

#include "store/redis/script_call.h"

namespace weir::redis {
namespace {

// The limit that goes on with what the reservation's counted: the same, or one that has taken its
// place under the same key.
const LimitInForce* InForce(const RecordedCharge& charge,
                            std::span<const LimitInForce> in_force) noexcept {
  const LimitInForce* sharing = nullptr;
  for (const LimitInForce& candidate : in_force) {
    if (candidate.name != charge.rule || candidate.limit->kind() != LimitKind::kCounted) continue;
    if (LetterOf(*candidate.limit) != charge.key.back()) continue;
    if (candidate.limit->spec() == charge.spec) return &candidate;
    if (sharing == nullptr) sharing = &candidate;
  }
  return sharing;
}

// Part of the whole, rounded down, because giving back more than was carried over would let too
// much through.
std::int64_t Part(std::int64_t units, std::int64_t part, std::int64_t whole) noexcept {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(Wide{units} * part / std::max<std::int64_t>(1, whole));
}

StepRequest SettlementOf(const RecordedCharge& charge, const Limit& before, const Limit& limit,
                         std::int64_t total_cost) noexcept {
  StepRequest request{.verb = Verb::kSettle,
                      .cost = total_cost,
                      .reserved = charge.charged,
                      .receipt = Ticks(charge.receipt)};
  if (request.cost >= request.reserved || charge.spec == limit.spec()) return request;
  const bool bucket = KindOf(limit) == StateKind::kBucket;
  if (!bucket && ShapeOf(before) != ShapeOf(limit)) {
    request.reserved = request.cost;  // Started anew: nothing of it counts any more.
    return request;
  }
  const std::int64_t unused = request.reserved - request.cost;
  if (bucket) {
    request.reserved = Part(unused, before.emission_interval(), limit.emission_interval());
    request.cost = 0;
  } else if (charge.family != limit.family() && limit.algorithm() != Algorithm::kConcurrency) {
    request.reserved = Part(unused, limit.capacity(), before.capacity());
    request.cost = 0;
  }
  return request;
}

}  // namespace

// Of those whose record was found there is something to do; the others are told.
void ScriptCall::BeginNextRound() {
  std::vector<std::string> records;
  for (Work& work : works_) {
    if (work.stage != Stage::kReadRecord) continue;
    const Key& key = keys_[work.record];
    records.push_back(key.record);
    work.head = 0;
    work.group->decided_at = moment_.wall;
    auto found = key.found ? ReadRecord(records.back()) : std::nullopt;
    if (key.found && !found) ++corrupt_;
    if (!found) {
      work.group->error = ReservationNotFound();
      work.stage = Stage::kDone;
      records.pop_back();
      continue;
    }
    work.found = *std::move(found);
    if (work.claims && !work.found.other_slots.empty()) {
      work.found.charges.clear();
      work.claim = {.other_slots = std::move(work.found.other_slots),
                    .settling = work.found.settling.value_or(SettlingOf(*work.group)),
                    .is_ours = work.passed};
      work.stage = Stage::kDone;
      records.pop_back();
      continue;
    }
    work.stage = Stage::kSettle;
    wants_another_round_ = true;
  }
  if (!wants_another_round_) return;
  records_ = std::move(records);  // What was found points into them.
  keys_.clear();
  key_bytes_.clear();
  key_table_.clear();
  entries_.clear();
  texts_.clear();
  for (Work& work : works_) {
    if (work.stage == Stage::kSettle) AddSettlement(work);
  }
}

void ScriptCall::AddSettlement(Work& work) {
  const Group& group = *work.group;
  const bool commits = group.action == Action::kCommit;
  std::size_t begin = key_bytes_.size();
  AppendRecordKey(key_bytes_, work.id);
  work.record = KeyFrom(begin, KeyUse::kRecord, StateKind::kBucket);
  work.first = entries_.size();
  for (const RecordedCharge& charge : work.found.charges) {
    const LimitInForce* in_force = InForce(charge, group.in_force);
    auto made = Limit::Make(charge.spec);
    auto shared = made ? made->ForSharedStore() : std::move(made);
    if (!shared) continue;  // Not even its own limit can be had: there is nothing to count it by.
    const Limit& before = remade_.emplace_back(*std::move(shared));
    const Limit& limit = in_force != nullptr ? *in_force->limit : before;
    const StateKind kind = KindOf(limit);
    begin = key_bytes_.size();
    key_bytes_.append(charge.key);
    const bool keeps = commits && (charge.keeps_cost || group.keeps_cost);
    Entry& entry = entries_.emplace_back();
    entry = {};
    entry.limit = &limit;
    entry.key = KeyFrom(begin, kind == StateKind::kLog ? KeyUse::kLog : KeyUse::kPlain, kind);
    entry.cost = keeps ? charge.charged / charge.times : commits ? group.cost : 0;
    const std::int64_t total = keeps ? charge.charged : entry.cost * charge.times;
    entry.request = SettlementOf(charge, before, limit, total);
    entry.times = charge.times;
    entry.shadow = charge.shadow;
    entry.rule = in_force != nullptr ? in_force->name : std::string_view();
    entry.hash = charge.hash;
  }
  work.count = entries_.size() - work.first;
}

void ScriptCall::TellSettled(Work& work) {
  Group& group = *work.group;
  if (!work.passed) {
    group.error = ReservationNotFound();
    return;
  }
  group.decision = {.allowed = true,
                    .reason = Reason::kNoRule,
                    .source = Source::kStore,
                    .cost = group.action == Action::kCommit ? group.cost : 0};
  group.settled_count = 0;
  bool first = true;
  for (std::size_t i = work.first; i < work.first + work.count; ++i) {
    Entry& entry = entries_[i];
    Decision decision = DoEntry(entry, entry.request, Effect::kApply).decision;
    decision.cost = entry.cost;
    decision.rule = entry.rule;
    if (group.settled_count < group.settled.size()) {
      group.settled[group.settled_count++] = entry.hash;
    }
    if (entry.shadow) continue;  // Has no say.
    if (std::exchange(first, false) || IsTighter(decision, group.decision)) {
      group.decision = decision;
    }
  }
}

}  // namespace weir::redis
