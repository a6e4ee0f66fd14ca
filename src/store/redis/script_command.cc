#include "store/redis/script_command.h"

#include <string>
#include <utility>

namespace weir::redis {
namespace {

ScriptCall::Form FormOf(const Call& call) noexcept {
  return call.with_text ? ScriptCall::Form::kText : ScriptCall::Form::kDigest;
}

// Never exhausted by probes, so that each of them writes.
const Limit& ProbeLimit() {
  static const Limit kLimit =
      *Limit::Make({.count = 1'000, .period = std::chrono::seconds(1)})->ForSharedStore();
  return kLimit;
}

}  // namespace

void ScriptCommand::Clear() noexcept {
  call_.Clear();
  completions_.clear();
  rounds = 0;
  with_text = asking = is_probe = was_repeated = false;
  redirections = 0;
}

bool ScriptCommand::Add(Group& group, Completion& completion) {
  if (!call_.Add(group)) return false;
  completions_.push_back(&completion);
  return true;
}

void ScriptCommand::Complete() noexcept {
  std::size_t next = 0;
  call_.ForEachGroup([&](Group& group) { completions_[next++]->OnDecided(group); });
}

void ScriptCommand::Fail(const Error& error) noexcept {
  call_.Fail(error);
  Complete();
}

void ScriptCommand::Write(ByteBuffer& out) { call_.Write(out, FormOf(*this)); }

void ScriptCommand::Ended(std::unique_ptr<Call> self, Node& node, CallEnd end) noexcept {
  static_cast<void>(self.release());
  owner_.OnEnded(std::unique_ptr<ScriptCommand>(this), node, std::move(end));
}

ProbeCommand::ProbeCommand(std::string_view key) : key_(key) {
  charge_.key = key_;
  charge_.limit = &ProbeLimit();
  group_.charges = {&charge_, 1};
  group_.decisions = {&decision_, 1};
  call_.Add(group_);
}

void ProbeCommand::Write(ByteBuffer& out) { call_.Write(out, FormOf(*this)); }

}  // namespace weir::redis
