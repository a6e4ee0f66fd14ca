#include "store/redis/redis_store.h"

#include <optional>
#include <utility>

#include "store/redis/dispatcher.h"
#include "store/redis/heartbeat.h"
#include "store/redis/registry.h"
#include "store/redis/script_command.h"
#include "store/redis/settlements.h"
#include "store/redis/slots.h"
#include "store/redis/split_group.h"
#include "store/redis/topology.h"

namespace weir::redis {

class Commons::State {
 public:
  State(const Settings& settings, Options options) : registry(settings, std::move(options)) {}

  Registry registry;
};

Commons::Commons(const Settings& settings, Options options)
    : state_(std::make_unique<State>(settings, std::move(options))) {}
Commons::~Commons() = default;

std::vector<EndpointReport> Commons::Report() const { return state_->registry.Report(); }

class RedisStore::State {
 public:
  State(Loop& loop, const Settings& settings, const KeyHasher& hasher, Registry& registry)
      : hasher_(hasher),
        loop_(loop),
        settings_(settings),
        dispatcher_(loop, settings),
        settlements_(dispatcher_),
        splits_(loop, hasher, dispatcher_, [this](const Charge& charge) { return Locate(charge); }),
        topology_(MakeTopology({.loop = loop,
                                .settings = settings,
                                .registry = registry,
                                .make_probe = MakeProbe,
                                .on_news = [this] { dispatcher_.TryParked(); }})) {
    dispatcher_.SetTopology(*topology_);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    dispatcher_.Close();
    topology_ = nullptr;  // What is under way ends with it.
  }

  std::uint64_t Hash(std::string_view key) const noexcept { return hasher_(key); }
  void Submit(Group& group, Completion& completion) noexcept;
  bool IsSettled() noexcept { return topology_ == nullptr || topology_->IsSettled(); }
  void Beat(std::string_view member, std::function<void(Result<int>)> counted);

 private:
  static std::unique_ptr<Call> MakeProbe(std::optional<std::uint16_t> slot) {
    return std::make_unique<ProbeCommand>(slot);
  }

  SplitGroups::Place Locate(const Charge& charge) noexcept;
  // Where all keys are that count anything; none if they are in several places.
  std::optional<std::uint16_t> CommonSlot(std::span<const Charge> charges) noexcept;

  const KeyHasher& hasher_;
  Loop& loop_;
  const Settings settings_;
  Dispatcher dispatcher_;
  Settlements settlements_;
  SplitGroups splits_;
  std::unique_ptr<Topology> topology_;
};

SplitGroups::Place RedisStore::State::Locate(const Charge& charge) noexcept {
  const std::uint16_t slot = SlotOfTag(charge.key);
  if (topology_->divides_slots()) return {slot, slot};
  return {reinterpret_cast<std::uintptr_t>(topology_->Find(slot)), slot};
}

std::optional<std::uint16_t> RedisStore::State::CommonSlot(
    std::span<const Charge> charges) noexcept {
  const Charge* first = nullptr;
  SplitGroups::Place place;
  for (const Charge& charge : charges) {
    if (charge.limit->kind() != LimitKind::kCounted) continue;
    if (first == nullptr) {
      first = &charge;
      place = Locate(charge);
    } else if (charge.key != first->key && Locate(charge).id != place.id) {
      return std::nullopt;
    }
  }
  if (first != nullptr) return place.slot;
  return charges.empty() ? std::uint16_t{0} : SlotOfTag(charges.front().key);
}

void RedisStore::State::Submit(Group& group, Completion& completion) noexcept {
  if (ScriptCall::DecideAlone(group)) return completion.OnDecided(group);
  if (topology_ == nullptr) {
    group.error = Error{ErrorCode::kOverloaded, "the store is being closed"};
    return completion.OnDecided(group);
  }
  const SteadyTime deadline = loop_.now().steady + settings_.timeout;
  if (topology_->is_single()) {
    return dispatcher_.Submit({.group = group, .completion = completion}, 0, deadline);
  }
  if (group.action == Action::kCommit || group.action == Action::kCancel) {
    return settlements_.Submit(group, deadline, completion);
  }
  for (const Charge& charge : group.charges) {
    if (charge.verb == Verb::kRefund || charge.verb == Verb::kReset) {
      splits_.empty_keys().Forget(charge);
    }
  }
  if (const std::optional<std::uint16_t> slot = CommonSlot(group.charges)) {
    return dispatcher_.Submit({.group = group, .completion = completion}, *slot, deadline);
  }
  splits_.Submit(group, deadline, completion);
}

void RedisStore::State::Beat(std::string_view member, std::function<void(Result<int>)> counted) {
  if (topology_ == nullptr) {
    return counted(std::unexpected(Error{ErrorCode::kOverloaded, "the store is being closed"}));
  }
  const auto follow = [this](const ErrorReply& reply, Node& asked) -> Node* {
    if (topology_ == nullptr) return nullptr;
    Node* const there = topology_->FindPointedTo(reply.site, asked);
    if (there != nullptr && reply.remedy == Remedy::kGoThere) topology_->Move(reply.slot, *there);
    return there;
  };
  auto beat = std::make_unique<Heartbeat>(member, follow, std::move(counted));
  beat->deadline = loop_.now().steady + settings_.timeout;
  dispatcher_.Send(std::move(beat), SlotOfTag(Heartbeat::kTag));
}

RedisStore::RedisStore(Loop& loop, const Settings& settings, const KeyHasher& hasher,
                       Commons& commons)
    : state_(std::make_unique<State>(loop, settings, hasher, commons.state_->registry)) {}
RedisStore::~RedisStore() = default;

std::uint64_t RedisStore::Hash(std::string_view key) const noexcept { return state_->Hash(key); }

void RedisStore::Submit(std::span<Group> groups, Now /*now*/, Completion& completion) noexcept {
  for (Group& group : groups) state_->Submit(group, completion);
}

bool RedisStore::IsSettled() noexcept { return state_->IsSettled(); }

void RedisStore::Beat(std::string_view member, std::function<void(Result<int>)> counted) {
  state_->Beat(member, std::move(counted));
}

}  // namespace weir::redis
