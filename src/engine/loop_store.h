// The store of the policy in force, as one loop has it. A policy may name another at any time: then
// what was asked is answered where it was asked, and the next question goes to the new one.
#pragma once

#include <memory>
#include <vector>

#include "engine/denial_notes.h"
#include "engine/engine_state.h"
#include "net/loop.h"

namespace weir {

// Belongs to the loop's thread.
class LoopStore {
 public:
  // Both must outlive it.
  LoopStore(EngineParts::State& state, Loop& loop);
  LoopStore(const LoopStore&) = delete;
  LoopStore& operator=(const LoopStore&) = delete;
  ~LoopStore();

  // The policy to ask under; whoever does holds on to it until the answer is there. It is the one
  // in force, or for a moment the one before, while this loop connects to the store of the next:
  // who asked there would wait for that. Its owners are counted for this loop alone, so that
  // threads do not fight over one number.
  const std::shared_ptr<const PolicyVersion>& Version() {
    if (!state_.versions.IsCurrent(version_.get()) && coming_ == nullptr) TakeUpVersion();
    return version_;
  }
  // Under the version that Version returned last.
  void Submit(const PolicyVersion& version, Group& group, Now now, Completion& completion) noexcept;
  // Of a shared store, under any version. None once the store was left for good.
  DenialNotes* DenialsUnder(const PolicyVersion& version) noexcept;

  // Answers all that is under way, and takes nothing any more.
  void End();
  bool has_ended() const noexcept { return has_ended_; }

 private:
  struct Branch;

  void TakeUpVersion();
  void LookAround();
  bool MustConnect(const std::shared_ptr<Home>& home);
  void MoveTo(const std::shared_ptr<Home>& home);
  void Leave();
  Branch* Find(const Home& home) const noexcept;

  EngineParts::State& state_;
  Loop& loop_;
  std::shared_ptr<const PolicyVersion> version_;
  std::unique_ptr<Branch> branch_;               // Of that version, if its store is shared.
  std::vector<std::unique_ptr<Branch>> former_;  // Of those before, until all is answered there.
  std::unique_ptr<Branch> coming_;               // That is being connected.
  std::unique_ptr<Timer> look_;                  // At those that are coming, or being left.
  bool has_ended_ = false;
};

}  // namespace weir
