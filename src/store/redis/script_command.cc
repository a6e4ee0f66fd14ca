#include "store/redis/script_command.h"

#include <string>
#include <tuple>
#include <utility>

#include "store/redis/slots.h"

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
  told_.clear();
  rounds = 0;
  with_text = asking = is_probe = was_repeated = false;
  redirections = 0;
}

bool ScriptCommand::Add(const Item& item) {
  if (!call_.Add(item.group, kEpoch, item.part)) return false;
  told_.push_back({&item.completion, item.claim});
  return true;
}

void ScriptCommand::Complete() noexcept {
  std::size_t next = 0;
  call_.ForEachGroup([&](Group& group) {
    if (told_[next].claim != nullptr) *told_[next].claim = call_.Claimed(next);
    told_[next++].completion->OnDecided(group);
  });
}

void ScriptCommand::Fail(const Error& error) noexcept {
  call_.Fail(error);
  Complete();
}

void ScriptCommand::Write(ByteBuffer& out) {
  call_.SetWall(wall);
  call_.Write(out, FormOf(*this));
}

void ScriptCommand::Ended(std::unique_ptr<Call> self, Node& node, CallEnd end) noexcept {
  std::ignore = self.release();
  owner_.OnEnded(std::unique_ptr<ScriptCommand>(this), node, std::move(end));
}

ProbeCommand::ProbeCommand(std::optional<std::uint16_t> slot)
    : key_(slot ? TagOfSlot(*slot) : "~probe") {
  charge_.key = key_;
  if (slot) charge_.rule = "~probe";  // The key may be somebody's.
  charge_.limit = &ProbeLimit();
  group_.charges = {&charge_, 1};
  group_.decisions = {&decision_, 1};
  call_.Add(group_, kEpoch);
}

void ProbeCommand::Write(ByteBuffer& out) { call_.Write(out, FormOf(*this)); }

}  // namespace weir::redis
