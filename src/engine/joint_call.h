// A request of several parts on its way through the engine: a call for each part, and one group of
// all that they charge.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/denial_notes.h"
#include "engine/engine_state.h"

namespace weir {

class Engine::State::JointCall {
 public:
  // Finds the rules of all parts. The version must stay as long as this; with a shared store
  // nothing of the parts is needed afterwards.
  JointCall(State& state, const PolicyVersion& version, std::span<const RequestPart> parts,
            Verb verb);
  JointCall(const JointCall&) = delete;
  JointCall& operator=(const JointCall&) = delete;
  ~JointCall();

  // False if no part is counted, so that there is nothing to decide.
  bool counts() const noexcept { return !charges_.empty(); }
  Group& group() noexcept { return group_; }

  // --- Once the group is decided, in this order. ---

  // Tells every part what came of its charges.
  void Spread() noexcept;
  // For a group that the store did not decide: every rule denies.
  void Fail() noexcept;
  // The parts whose denials may lead to bans, by their numbers: parts() if there is none from
  // `number` on.
  std::size_t NextDenied(std::size_t number) const noexcept;
  std::size_t parts() const noexcept { return parts_.size(); }
  // What is to be counted of such a part, and what comes of it; at once, or by a shared store,
  // which was asked then.
  std::vector<DenialNotes::Denied> DeniedOf(std::size_t number);
  void Ban(std::size_t number, const DenialNotes::Ban& ban) noexcept;
  void CountDenials(std::size_t number, SteadyTime asked_at, Now now) noexcept;
  // Notes what was decided, and answers. `each` has what speaks for each part.
  Answer Conclude(Now now, std::vector<RuleDecision>& each) noexcept;
  // The keys that something was given back to.
  void ListKeys(std::vector<std::uint64_t>& keys) const;

 private:
  struct Part;

  void Prepare(const RequestPart& asked, Part& part);
  void PrepareLimit(const RequestPart& asked, Part& part);
  void Gather();
  RuleDecision DecisionOf(Part& part, Answer& answer) noexcept;

  State& state_;
  const PolicyVersion& version_;
  Verb verb_;
  bool refused_ = false;  // Whatever is counted, the answer is no.
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Charge> charges_;
  std::vector<Decision> decisions_;
  Group group_;
};

}  // namespace weir
