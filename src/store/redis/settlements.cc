#include "store/redis/settlements.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "store/redis/reservation_id.h"

namespace weir::redis {

class Settlements::Settlement final : public Completion {
 public:
  Settlement(Settlements& owner, Group& group, SteadyTime deadline, Completion& completion)
      : owner_(owner), group_(group), deadline_(deadline), completion_(completion) {}

  // First it is only asked where the others are. If there are none it is settled at once.
  void Start() { SubmitFirst({.settles_last = true}); }

  void OnDecided(Group& /*part*/) noexcept override {
    if (--pending_ > 0) return;
    if (!group_.error) {
      switch (stage_) {
        case Stage::kLook:
          if (!other_slots_.empty()) return SettleOthers();
          break;
        case Stage::kOthers:
          stage_ = Stage::kFirst;
          NoteFailures();
          if (!group_.error) return SubmitFirst({});
          break;
        case Stage::kFirst:
          for (const Group& part : parts_) Collect(part);
          break;
      }
    }
    Group& group = group_;
    Completion& completion = completion_;
    owner_.under_way_.erase(this);  // Ends this.
    completion.OnDecided(group);
  }

 private:
  enum class Stage : std::uint8_t { kLook, kOthers, kFirst };

  void SubmitFirst(const ScriptCall::Part& part) {
    pending_ = 1;
    owner_.dispatcher_.Submit(
        {.group = group_, .completion = *this, .part = part, .other_slots = &other_slots_},
        SlotOfReservation(group_.reservation), deadline_);
  }

  void SettleOthers() {
    stage_ = Stage::kOthers;
    const std::size_t count = std::min(other_slots_.size(), kMaxGroupCharges);
    parts_.resize(count);
    settled_.resize(count * kMaxGroupCharges);
    pending_ = count;
    for (std::size_t i = 0; i < count; ++i) {
      parts_[i] = {.action = group_.action,
                   .in_force = group_.in_force,
                   .reservation = ReservationInSlot(group_.reservation, other_slots_[i]),
                   .cost = group_.cost,
                   .keeps_cost = group_.keeps_cost,
                   .settled = std::span(settled_).subspan(i * kMaxGroupCharges, kMaxGroupCharges)};
    }
    // The last to end may end this as well, so nothing of it is looked at after that.
    for (std::size_t i = 0; i < count; ++i) {
      owner_.dispatcher_.Submit({.group = parts_[i], .completion = *this}, other_slots_[i],
                                deadline_);
    }
  }

  // One whose record is gone is nothing to complain of: it has expired, or was settled by an
  // attempt before this one.
  void NoteFailures() {
    for (const Group& part : parts_) {
      if (part.error && part.error->code != ErrorCode::kNotFound) group_.error = part.error;
    }
  }

  void Collect(const Group& part) {
    for (std::size_t i = 0; i < part.settled_count; ++i) {
      if (group_.settled_count == group_.settled.size()) return;
      group_.settled[group_.settled_count++] = part.settled[i];
    }
  }

  Settlements& owner_;
  Group& group_;
  const SteadyTime deadline_;
  Completion& completion_;
  Stage stage_ = Stage::kLook;
  std::size_t pending_ = 0;
  std::vector<std::uint16_t> other_slots_;
  std::vector<Group> parts_;
  std::vector<std::uint64_t> settled_;
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
