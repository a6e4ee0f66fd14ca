#include "store/redis/split_group.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "store/redis/reservation_id.h"

namespace weir::redis {
namespace {

// Of one that nobody was asked about, or could be: nothing speaks against it.
Decision NothingKnown(const Charge& charge) noexcept {
  const std::int64_t capacity = charge.limit->capacity();
  return {.allowed = true,
          .reason = Reason::kOk,
          .source = Source::kStore,
          .rule = charge.rule,
          .limit = capacity,
          .remaining = capacity,
          .cost = charge.cost};
}

}  // namespace

// One group on its way.
class SplitGroups::Whole final : public Completion {
 public:
  Whole(SplitGroups& owner, Group& group, SteadyTime deadline, Completion& completion)
      : owner_(owner), group_(group), deadline_(deadline), completion_(completion) {}

  void Start() {
    Divide();
    SubmitParts();
  }

  void OnDecided(Group& /*part*/) noexcept override {
    if (--pending_ > 0) return;
    if (!std::exchange(is_giving_back_, true)) {
      Decide();
      if (pending_ > 0) return TellInTime();
    }
    End();
  }

 private:
  struct Part {
    Place place{};
    std::vector<std::size_t> indexes{};  // Of its charges in the whole.
    std::vector<Charge> charges{};
    std::vector<Decision> decisions{};
    std::vector<Receipt> receipts{};
    Group group{};
    ScriptCall::Part name{};
    bool is_first = false;
    // What undoes it.
    std::vector<Charge> undo_charges{};
    std::vector<Decision> undo_decisions{};
    std::vector<LimitInForce> in_force{};
    Group undo{};
    Group release{};
    // Whoever asked may be gone before it is undone.
    std::deque<std::string> texts{};
    std::deque<Limit> limits{};

    bool passed() const noexcept { return !group.error && group.decision.allowed; }
  };

  void Divide() {
    const Place first = owner_.locate_(*std::ranges::find_if(group_.charges, IsCounted));
    for (std::size_t i = 0; i < group_.charges.size(); ++i) {
      const Charge& charge = group_.charges[i];
      const Place place = IsCounted(charge) ? owner_.locate_(charge) : first;
      auto part = std::ranges::find(parts_, place.id, [](const Part& p) { return p.place.id; });
      if (part == parts_.end()) {
        part = parts_.emplace(part);
        part->place = place;
      }
      part->indexes.push_back(i);
      part->charges.push_back(charge);
    }
    for (Part& part : parts_) {
      part.decisions.resize(part.charges.size());
      part.receipts.resize(part.charges.size());
      part.group = {.action = group_.action,
                    .charges = part.charges,
                    .decisions = part.decisions,
                    .ttl = group_.ttl,
                    .receipts = part.receipts};
    }
    NameReservation();
  }

  // All parts that keep a record do so under the same name, and the first lists the others.
  void NameReservation() {
    for (Part& part : parts_) {
      const bool keeps =
          group_.action == Action::kReserve || std::ranges::any_of(part.charges, TakesLease);
      if (!keeps) continue;
      if (id_ == ReservationId::kNone) {
        id_ = DrawReservationId(part.place.slot);
        part.is_first = true;
      } else {
        other_slots_.push_back(part.place.slot);
      }
      part.name.id = ReservationInSlot(id_, part.place.slot);
    }
    for (Part& part : parts_) {
      if (part.is_first) part.name.other_slots = other_slots_;
    }
  }

  void SubmitParts() {
    pending_ = parts_.size();
    // The last to end may end this as well, so nothing of it is looked at after that.
    const std::size_t count = parts_.size();
    for (std::size_t i = 0; i < count; ++i) {
      Part& part = parts_[i];
      owner_.dispatcher_.Submit({.group = part.group, .completion = *this, .part = part.name},
                                part.place.slot, deadline_);
    }
  }

  // All parts have ended.
  void Decide() {
    bool denied = false;
    for (const Part& part : parts_) {
      if (part.group.error && (!group_.error || part.group.error->code == ErrorCode::kDeadline)) {
        group_.error = part.group.error;
      }
      denied = denied || (!part.group.error && !part.group.decision.allowed);
    }
    const bool takes = Asks(group_.charges.front());
    // A denial stands, whatever became of the other parts.
    if (takes && denied) group_.error.reset();
    if (takes && denied) NoteDenials();
    if (takes && (denied || group_.error)) GiveBack();
    Collect(denied);
  }

  void NoteDenials() {
    const SteadyTime now = owner_.loop_.now().steady;
    for (const Part& part : parts_) {
      if (part.group.error) continue;
      for (std::size_t i = 0; i < part.charges.size(); ++i) {
        const Charge& charge = part.charges[i];
        const bool limits = !charge.shadow && part.decisions[i].reason == Reason::kLimited;
        if (limits) {
          owner_.empty_keys_.Add(charge, part.decisions[i], now, part.group.decided_at);
        }
      }
    }
  }

  void GiveBack() {
    for (Part& part : parts_) {
      if (!part.passed()) continue;
      Undo(part);
    }
    // Each may end at once. They have as long as any call, however late it is for the group.
    const SteadyTime deadline = owner_.dispatcher_.Deadline();
    pending_ = 1;
    for (Part& part : parts_) pending_ += (part.undo_charges.empty() ? 0U : 1U) + Releases(part);
    for (Part& part : parts_) {
      if (!part.undo_charges.empty()) {
        owner_.dispatcher_.Submit(
            {.group = part.undo, .completion = *this, .part = {.taken_at = part.group.decided_at}},
            part.place.slot, deadline);
      }
      if (Releases(part) > 0) {
        owner_.dispatcher_.Submit({.group = part.release, .completion = *this}, part.place.slot,
                                  deadline);
      }
    }
    --pending_;
  }

  static std::size_t Releases(const Part& part) noexcept {
    return part.release.reservation == ReservationId::kNone ? 0U : 1U;
  }

  // Leases end with their record. What was charged is settled as having cost nothing after all, but
  // a place in a queue is given back only if it is the last, else two would go ahead at once. Of a
  // reservation the record just goes: it would give back without a look at what else is undone.
  void Undo(Part& part) {
    for (Charge& charge : part.charges) {
      charge.rule = part.texts.emplace_back(charge.rule);
      charge.key = part.texts.emplace_back(charge.key);
      charge.limit = &part.limits.emplace_back(*charge.limit);
    }
    if (part.group.reservation != ReservationId::kNone) {
      for (const Charge& charge : part.charges) {
        part.in_force.push_back({owner_.hasher_(charge.rule), charge.rule, charge.limit});
      }
      std::ranges::sort(part.in_force, {}, &LimitInForce::rule);
      const bool reserves = group_.action == Action::kReserve;
      part.release = {.action = reserves ? Action::kCommit : Action::kCancel,
                      .in_force = part.in_force,
                      .reservation = part.group.reservation,
                      .keeps_cost = reserves};
    }
    for (std::size_t i = 0; i < part.charges.size(); ++i) {
      if (part.receipts[i].charged <= 0) continue;
      Charge charge = part.charges[i];
      if (charge.limit->algorithm() == Algorithm::kConcurrency) continue;
      charge.verb = charge.limit->spec().queue ? Verb::kUnbook : Verb::kSettle;
      charge.cost = 0;
      charge.wait = Duration(0);
      charge.reserved = part.receipts[i].charged;
      charge.receipt = part.receipts[i].at;
      part.undo_charges.push_back(charge);
    }
    part.undo_decisions.resize(part.undo_charges.size());
    part.undo = {.charges = part.undo_charges, .decisions = part.undo_decisions};
  }

  // Into the whole, as if it had been decided in one piece.
  void Collect(bool denied) {
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.indexes.size(); ++i) {
        Decision& decision = group_.decisions[part.indexes[i]];
        decision = part.group.error ? NothingKnown(part.charges[i]) : part.decisions[i];
        decision.reservation = ReservationId::kNone;
        if (denied && part.passed()) {
          const std::int64_t back = part.receipts[i].charged;
          decision.remaining = std::min(decision.limit, decision.remaining + back);
        }
        if (!group_.receipts.empty()) group_.receipts[part.indexes[i]] = part.receipts[i];
      }
      group_.decided_at = std::max(group_.decided_at, part.group.decided_at);
    }
    group_.decision = Combine(group_.charges, group_.decisions);
    group_.decision.source = Source::kStore;
    group_.reservation = ReservationId::kNone;
    if (denied || group_.error || id_ == ReservationId::kNone) return;
    group_.reservation = group_.decision.reservation = id_;
    for (Decision& decision : group_.decisions) decision.reservation = id_;
  }

  // Once it is undone, so that who asks again finds what there was; but no later than promised.
  void TellInTime() {
    timer_ = owner_.loop_.MakeTimer([this] { Tell(); });
    timer_->Start(std::max(Duration(0), deadline_ - owner_.loop_.now().steady));
  }

  void Tell() {
    if (!std::exchange(is_told_, true)) completion_.OnDecided(group_);
  }

  void End() {
    const auto kept = owner_.wholes_.extract(this);
    Tell();
  }

  SplitGroups& owner_;
  Group& group_;
  const SteadyTime deadline_;
  Completion& completion_;
  std::vector<Part> parts_;
  ReservationId id_ = ReservationId::kNone;
  std::vector<std::uint16_t> other_slots_;  // Of its records, but for the first.
  std::size_t pending_ = 0;
  bool is_giving_back_ = false;
  std::unique_ptr<Timer> timer_;
  bool is_told_ = false;  // Then the group is no longer there.
};

SplitGroups::SplitGroups(Loop& loop, const KeyHasher& hasher, Dispatcher& dispatcher, Locate locate)
    : loop_(loop), hasher_(hasher), dispatcher_(dispatcher), locate_(std::move(locate)) {}

SplitGroups::~SplitGroups() = default;

void SplitGroups::Submit(Group& group, SteadyTime deadline, Completion& completion) noexcept {
  if (DenyHere(group, loop_.now().steady)) return completion.OnDecided(group);
  auto whole = std::make_shared<Whole>(*this, group, deadline, completion);
  Whole* const started = whole.get();
  wholes_.emplace(started, std::move(whole));
  started->Start();
}

bool SplitGroups::DenyHere(Group& group, SteadyTime now) noexcept {
  bool denied = false;
  for (std::size_t i = 0; i < group.charges.size(); ++i) {
    const Charge& charge = group.charges[i];
    if (charge.verb != Verb::kCheck) return false;
    const EmptyKeys::Known* const known =
        charge.cost == 0 ? nullptr : empty_keys_.Find(charge, now);
    if (known != nullptr) {
      group.decisions[i] = known->decision;
      group.decided_at = known->time;
      denied = denied || !charge.shadow;
    } else {
      group.decisions[i] = NothingKnown(charge);
    }
  }
  if (!denied) return false;
  group.decision = Combine(group.charges, group.decisions);
  group.decision.source = Source::kStore;
  return true;
}

}  // namespace weir::redis
