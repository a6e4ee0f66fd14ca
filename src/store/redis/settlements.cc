#include "store/redis/settlements.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "store/redis/reservation_id.h"
#include "store/redis/reservation_record.h"

namespace weir::redis {

class Settlements::Settlement final : public Completion {
 public:
  Settlement(Settlements& owner, Group& group, SteadyTime deadline, Completion& completion)
      : owner_(owner), group_(group), deadline_(deadline), completion_(completion) {}

  // One that has no other parts is settled at once.
  void Start() {
    pending_ = 1;
    owner_.dispatcher_.Submit(
        {.group = group_, .completion = *this, .part = {.claims = true}, .claim = &claim_},
        SlotOfReservation(group_.reservation), deadline_);
  }

  void OnDecided(Group& /*part*/) noexcept override {
    if (--pending_ > 0) return;
    switch (stage_) {
      case Stage::kClaim:
        if (!group_.error && !claim_.other_slots.empty()) return SettleOthers();
        break;
      case Stage::kOthers:
        NoteFailures();
        if (!group_.error) return SettleFirst();
        break;
      case Stage::kFirst:
        Conclude();
        break;
    }
    Group& group = group_;
    Completion& completion = completion_;
    owner_.under_way_.erase(this);  // Ends this.
    completion.OnDecided(group);
  }

 private:
  enum class Stage : std::uint8_t { kClaim, kOthers, kFirst };

  void SettleOthers() {
    stage_ = Stage::kOthers;
    const std::size_t others = std::min(claim_.other_slots.size(), kMaxGroupCharges);
    AddPart(SlotOfReservation(group_.reservation));
    for (std::size_t i = 0; i < others; ++i) AddPart(claim_.other_slots[i]);
    pending_ = others;
    // The last to end may end this as well, so nothing of it is looked at after that.
    for (std::size_t i = 1; i <= others; ++i) SubmitPart(i);
  }

  void SettleFirst() {
    stage_ = Stage::kFirst;
    pending_ = 1;
    SubmitPart(0);
  }

  void AddPart(std::uint16_t slot) {
    Part& part = parts_.emplace_back();
    part.slot = slot;
    part.group = {.action = claim_.settling.action,
                  .in_force = group_.in_force,
                  .reservation = ReservationInSlot(group_.reservation, slot),
                  .cost = claim_.settling.cost,
                  .keeps_cost = claim_.settling.keeps_cost,
                  .settled = part.settled};
  }

  void SubmitPart(std::size_t index) {
    Part& part = parts_[index];
    owner_.dispatcher_.Submit({.group = part.group, .completion = *this}, part.slot, deadline_);
  }

  // One whose record is gone is nothing to complain of: it has expired, or was settled by another
  // attempt.
  void NoteFailures() {
    for (const Part& part : parts_) {
      if (part.is_gone() || !part.group.error) continue;
      group_.error = part.group.error;
    }
  }

  // All is settled. It was not by this attempt if somebody else had decided how, and either it was
  // to be another way, or they were the ones to end it.
  void Conclude() {
    const bool is_as_wanted = claim_.settling == SettlingOf(group_);
    const bool ended_here = !parts_.front().is_gone();
    NoteFailures();
    if (group_.error) return;
    if (!is_as_wanted || !(claim_.is_ours || ended_here)) {
      group_.error = ReservationNotFound();
      return;
    }
    group_.settled_count = 0;
    group_.decision = {.allowed = true,
                       .reason = Reason::kNoRule,
                       .source = Source::kStore,
                       .cost = claim_.settling.cost};
    for (const Part& part : parts_) {
      if (!part.group.error) Collect(part.group);
    }
  }

  void Collect(const Group& part) {
    group_.decided_at = std::max(group_.decided_at, part.decided_at);
    for (std::size_t i = 0; i < part.settled_count; ++i) {
      if (group_.settled_count == group_.settled.size()) break;
      group_.settled[group_.settled_count++] = part.settled[i];
    }
    if (part.decision.reason == Reason::kNoRule) return;  // It has only shadows.
    if (group_.decision.reason == Reason::kNoRule || IsTighter(part.decision, group_.decision)) {
      group_.decision = part.decision;
    }
  }

  struct Part {
    std::uint16_t slot = 0;
    Group group{};
    std::array<std::uint64_t, kMaxGroupCharges> settled{};

    bool is_gone() const noexcept {
      return group.error && group.error->code == ErrorCode::kNotFound;
    }
  };

  Settlements& owner_;
  Group& group_;
  const SteadyTime deadline_;
  Completion& completion_;
  Stage stage_ = Stage::kClaim;
  std::size_t pending_ = 0;
  ScriptCall::Claim claim_;
  std::deque<Part> parts_;  // The first one first.
};

Settlements::Settlements(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}
Settlements::~Settlements() = default;

void Settlements::Submit(Group& group, SteadyTime deadline, Completion& completion) noexcept {
  auto settlement = std::make_shared<Settlement>(*this, group, deadline, completion);
  Settlement* const started = settlement.get();
  under_way_.emplace(started, std::move(settlement));
  started->Start();
}

}  // namespace weir::redis
