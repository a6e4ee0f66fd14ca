#include "store/redis/dispatcher.h"

#include <algorithm>
#include <utility>

namespace weir::redis {
namespace {

// So many calls are gathered side by side; more, and the oldest leave.
constexpr std::size_t kMostOpen = 16;
constexpr std::size_t kMostSpare = 32;
// A slot that is sent from one server to the next is with none of them.
constexpr int kMostRedirections = 5;
constexpr Duration kTryAgainAfter = std::chrono::milliseconds(5);
// What is held back leaves after so long, whatever the server does. Groups that came so much later
// than the first of a call share its deadline, so it is little beside what a call may take.
constexpr Duration kLongestHold = std::chrono::milliseconds(1);
constexpr int kHoldsPerTimeout = 16;

const Error& Closing() {
  static const Error kError{ErrorCode::kOverloaded, "the store is being closed"};
  return kError;
}

void FailGroup(const ScriptCommand::Item& item, const Error& error) noexcept {
  item.group.error = error;
  item.completion.OnDecided(item.group);
}

}  // namespace

Dispatcher::Dispatcher(Loop& loop, const Settings& settings)
    : loop_(loop),
      settings_(settings),
      longest_hold_(std::min(kLongestHold, settings.timeout / kHoldsPerTimeout)),
      timer_(loop.MakeTimer([this] { Tick(); })),
      hold_timer_(loop.MakeTimer([this] { SendHeldForLong(); })) {}

Dispatcher::~Dispatcher() {
  loop_.ForgetTurnEnd(*this);
  Close();
}

void Dispatcher::Close() noexcept {
  is_closed_ = true;
  for (Open& open : std::exchange(open_, {})) Fail(std::move(open.command), Closing());
  for (Parked& parked : std::exchange(parked_, {})) Fail(std::move(parked.command), Closing());
}

std::unique_ptr<ScriptCommand> Dispatcher::Begin(const ScriptCommand::Item& item,
                                                 std::uint16_t slot, SteadyTime deadline) {
  std::unique_ptr<ScriptCommand> command;
  if (spare_.empty()) {
    command = std::make_unique<ScriptCommand>(static_cast<ScriptCommand::Owner&>(*this));
  } else {
    command = std::move(spare_.back());
    spare_.pop_back();
  }
  command->Add(item);
  command->slot = slot;
  command->deadline = deadline;
  command->settles = Settles(item.group);
  command->undoes = item.part.taken_at.has_value();
  command->is_hurried = IsHurried(deadline);
  return command;
}

void Dispatcher::Recycle(std::unique_ptr<ScriptCommand> command) {
  if (spare_.size() >= kMostSpare) return;
  command->Clear();
  spare_.push_back(std::move(command));
}

void Dispatcher::Submit(const ScriptCommand::Item& item, std::uint16_t slot,
                        SteadyTime deadline) noexcept {
  if (is_closed_) return FailGroup(item, Closing());
  if (Node* const node = topology_->Find(slot)) {
    if (const std::optional<Obstacle> obstacle = node->WhyNot()) {
      node->CountFault(obstacle->fault, 1);
      return FailGroup(item, obstacle->error);
    }
    return Gather(item, *node, slot, deadline);
  }
  if (const std::optional<Obstacle> obstacle = topology_->WhyUnknown()) {
    topology_->CountFault(obstacle->fault, 1);
    return FailGroup(item, obstacle->error);
  }
  if (parked_.size() >= static_cast<std::size_t>(settings_.max_in_flight)) {
    topology_->CountFault(StoreFault::kOverload, 1);
    return FailGroup(item, {ErrorCode::kOverloaded, "too many wait until the servers are known"});
  }
  Park(Begin(item, slot, deadline), Duration(0));
}

bool Dispatcher::IsHurried(SteadyTime deadline) noexcept {
  // Company may have come up to so much earlier.
  return deadline < loop_.now().steady + settings_.timeout - longest_hold_;
}

// One that is heavier than a connection may carry could never be sent beside others.
bool Dispatcher::IsFull(const ScriptCommand& command) const noexcept {
  return command.groups() >=
         std::min(kMostGroups, static_cast<std::size_t>(settings_.max_in_flight));
}

bool Dispatcher::HasRoom(const Open& open, const ScriptCommand::Item& item, const Node& node,
                         std::uint16_t slot, SteadyTime deadline) noexcept {
  const ScriptCommand& command = *open.command;
  return open.node == &node && (!topology_->divides_slots() || command.slot == slot) &&
         command.deadline <= deadline && deadline - command.deadline <= longest_hold_ &&
         command.is_hurried == IsHurried(deadline) && !IsFull(command) &&
         // A settlement takes two rounds, for which nobody else should have to wait.
         command.settles == Settles(item.group) &&
         // What others are told beside one that undoes may be wrong.
         command.undoes == item.part.taken_at.has_value();
}

void Dispatcher::Gather(const ScriptCommand::Item& item, Node& node, std::uint16_t slot,
                        SteadyTime deadline) {
  loop_.AtTurnEnd(*this);
  for (Open& open : open_) {
    const bool fits = HasRoom(open, item, node, slot, deadline);
    if (fits && open.command->Add(item)) return;
  }
  if (open_.size() >= kMostOpen) SendOpen(0);
  open_.push_back({&node, Begin(item, slot, deadline), loop_.now().steady});
}

void Dispatcher::OnTurnEnd() noexcept {
  // What is sent may end at once, and whoever waited for it may ask for more.
  for (;;) {
    const auto leaves = std::ranges::find_if_not(open_, [&](const Open& o) { return IsHeld(o); });
    if (leaves == open_.end()) break;
    SendOpen(static_cast<std::size_t>(leaves - open_.begin()));
  }
  if (!open_.empty() && !std::exchange(is_holding_, true)) hold_timer_->Start(longest_hold_);
}

bool Dispatcher::IsHeld(const Open& open) const noexcept {
  // In a cluster only keys of one slot share a call: there is little to wait for.
  if (topology_->divides_slots() || IsFull(*open.command) || open.command->is_hurried) return false;
  const Node* const node = topology_->Find(open.command->slot);
  return node != nullptr && node->is_busy();
}

void Dispatcher::SendOpen(std::size_t index) {
  std::unique_ptr<ScriptCommand> command = std::move(open_[index].command);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
  if (Node* const node = topology_->Find(command->slot)) {
    node->Send(std::move(command));
  } else {
    Park(std::move(command), Duration(0));
  }
}

void Dispatcher::SendHeldForLong() {
  const SteadyTime now = loop_.now().steady;
  while (!open_.empty() && open_.front().began + longest_hold_ <= now) SendOpen(0);
  is_holding_ = !open_.empty();
  if (is_holding_) hold_timer_->Start(open_.front().began + longest_hold_ - now);
}

void Dispatcher::Send(std::unique_ptr<Call> call, std::uint16_t slot) noexcept {
  if (Node* const node = topology_->Find(slot)) node->Send(std::move(call));
}

void Dispatcher::OnEnded(std::unique_ptr<ScriptCommand> command, Node& node, CallEnd end) noexcept {
  if (!open_.empty()) loop_.AtTurnEnd(*this);  // The server has room for what is held back.
  if (end.kind == CallEnd::Kind::kAnswered) {
    command->with_text = command->asking = false;
    if (!is_closed_ && command->WantsAnotherRound()) return node.Send(std::move(command));
    if (command->corrupt() > 0) node.CountFault(StoreFault::kCorrupt, command->corrupt());
    command->Complete();
    return Recycle(std::move(command));
  }
  if (end.kind == CallEnd::Kind::kErrorReply && !is_closed_ && TryElsewhere(command, node, end)) {
    return;
  }
  const bool says_little = command->is_hurried && end.fault == StoreFault::kTimeout;
  if (!says_little) node.CountFault(end.fault, command->groups());
  Fail(std::move(command), end.error);
}

bool Dispatcher::TryElsewhere(std::unique_ptr<ScriptCommand>& command, Node& node,
                              const CallEnd& end) {
  command->asking = command->with_text = false;
  const Remedy remedy = end.reply.remedy;
  if (remedy == Remedy::kRediscover) node.Renew();
  if (remedy == Remedy::kRediscover || end.fault == StoreFault::kClusterDown) {
    topology_->Suspect(node);
  }
  const bool in_time = loop_.now().steady < command->deadline;
  if (remedy == Remedy::kNone || remedy == Remedy::kSendText || !in_time) return false;
  if (remedy == Remedy::kRediscover) {
    if (std::exchange(command->was_repeated, true)) return false;
    Park(std::move(command), kTryAgainAfter);
    return true;
  }
  if (remedy == Remedy::kTryAgain) {
    Park(std::move(command), kTryAgainAfter);
    return true;
  }
  if (++command->redirections > kMostRedirections) return false;
  Node* const there = topology_->FindPointedTo(end.reply.site, node);
  if (there == nullptr) {
    Park(std::move(command), kTryAgainAfter);
    return true;
  }
  command->asking = remedy == Remedy::kAskThere;
  if (remedy == Remedy::kGoThere) topology_->Move(end.reply.slot, *there);
  there->Send(std::move(command));
  return true;
}

void Dispatcher::Park(std::unique_ptr<ScriptCommand> command, Duration wait) {
  parked_.push_back({std::move(command), loop_.now().steady + wait});
  WakeForParked();
}

void Dispatcher::WakeForParked() {
  if (parked_.empty()) return;
  const SteadyTime now = loop_.now().steady;
  Duration next = kTryAgainAfter;
  for (const Parked& parked : parked_) next = std::min(next, parked.command->deadline - now);
  timer_->Start(std::max(Duration(0), next));
}

void Dispatcher::Tick() {
  TryParked();
  WakeForParked();
}

void Dispatcher::TryParked() noexcept {
  const SteadyTime now = loop_.now().steady;
  for (Parked& parked : std::exchange(parked_, {})) {
    Node* const node = topology_->Find(parked.command->slot);
    const auto obstacle = node == nullptr ? topology_->WhyUnknown() : std::nullopt;
    if (parked.command->deadline <= now) {
      FailUnplaced(std::move(parked.command),
                   {StoreFault::kTimeout, {ErrorCode::kDeadline, "no server for it in time"}});
    } else if (obstacle) {
      FailUnplaced(std::move(parked.command), *obstacle);
    } else if (node != nullptr && parked.due <= now) {
      node->Send(std::move(parked.command));
    } else {
      parked_.push_back(std::move(parked));
    }
  }
}

void Dispatcher::FailUnplaced(std::unique_ptr<ScriptCommand> command, const Obstacle& obstacle) {
  topology_->CountFault(obstacle.fault, command->groups());
  Fail(std::move(command), obstacle.error);
}

void Dispatcher::Fail(std::unique_ptr<ScriptCommand> command, const Error& error) {
  command->Fail(error);
  Recycle(std::move(command));
}

}  // namespace weir::redis
