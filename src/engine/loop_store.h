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

  // The policy in force; whoever asks under it holds on to it until the answer is there. Its owners
  // are counted for this loop alone, so that threads do not fight over one number.
  const std::shared_ptr<const PolicyVersion>& Version() {
    if (version_ == nullptr || !state_.versions.IsCurrent(version_.get())) TakeUpVersion();
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
  void MoveTo(const std::shared_ptr<Home>& home);
  void Leave();
  Branch* Find(const Home& home) const noexcept;

  EngineParts::State& state_;
  Loop& loop_;
  std::shared_ptr<const PolicyVersion> version_;
  std::unique_ptr<Branch> branch_;               // Of that version, if its store is shared.
  std::vector<std::unique_ptr<Branch>> former_;  // Of those before, until all is answered there.
  std::unique_ptr<Timer> leaving_;
  bool has_ended_ = false;
};

}  // namespace weir
