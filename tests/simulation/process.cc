#include "process.h"

#include <utility>

namespace weir::simulation {

void Witness::Submit(std::span<Group> groups, Now now, Completion& completion) noexcept {
  for (Group& group : groups) asked_[&group] = {&completion, now, false};
  if (mistake_ == Mistake::kKeepsWhatIsCancelled && groups.front().action == Action::kCancel) {
    for (Group& group : groups) OnDecided(group);
    return;
  }
  behind_.Submit(groups, now, *this);
}

void Witness::OnDecided(Group& group) noexcept {
  const Asked asked = asked_.at(&group);
  asked_.erase(&group);
  if (MakeMistake(group, asked)) return;
  testimony_.OnStoreAnswered(group);
  asked.completion->OnDecided(group);
}

bool Witness::MakeMistake(Group& group, const Asked& asked) {
  if (mistake_ == Mistake::kRepeatsWhatTimedOut && !asked.was_repeated && group.error &&
      group.error->code == ErrorCode::kDeadline) {
    asked_[&group] = {asked.completion, asked.now, true};
    behind_.Submit(std::span(&group, 1), asked.now, *this);
    return true;
  }
  const bool refunds = !group.charges.empty() && group.charges.front().verb == Verb::kRefund;
  if (mistake_ == Mistake::kRefundsTwice && refunds && !asked.was_repeated && !group.error) {
    asked_[&group] = {asked.completion, asked.now, true};
    behind_.Submit(std::span(&group, 1), asked.now, *this);
    return true;
  }
  if (mistake_ != Mistake::kForgetsAnAnswer || ++answers_ != 100) return false;
  forgotten_ = &group;
  forgotten_completion_ = asked.completion;
  return true;
}

Process::Process(sim::World& world, sim::Network& network, Testimony& testimony,
                 const Options& options)
    : loop(world, &network, options.clock),
      clock_(loop),
      settings_(options.settings),
      commons(settings_, {.on_notice = options.on_notice, .seed = options.seed}),
      guard({.fleet_size = options.fleet_size,
             .cap_bytes = kMinCapBytes,
             .max_reservations = 1024,
             .on_notice = options.on_notice,
             .seed = options.seed},
            clock_),
      redis_(loop, settings_, guard.hasher(), commons),
      witness_(redis_, testimony, options.mistake),
      store(witness_, guard, loop),
      counter_(redis_, guard, loop) {}

}  // namespace weir::simulation
