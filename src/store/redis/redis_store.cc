#include "store/redis/redis_store.h"

#include <algorithm>
#include <utility>

#include "store/redis/dispatcher.h"
#include "store/redis/heartbeat.h"
#include "store/redis/registry.h"
#include "store/redis/script_command.h"
#include "store/redis/slots.h"
#include "store/redis/split_group.h"
#include "store/redis/topology.h"

namespace weir::redis {

std::uint16_t SlotOfReservation(ReservationId id) noexcept;  // stand-in

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
  void Beat(std::string_view member, std::function<void(Result<int>)> counted);

 private:
  static std::unique_ptr<Call> MakeProbe(std::optional<std::uint16_t> slot) {
    return std::make_unique<ProbeCommand>(slot ? TagOfSlot(*slot) : "~probe");
  }

  SplitGroups::Place Locate(const Charge& charge) noexcept;
  // Whether all keys of the group are in one place.
  bool IsTogether(std::span<const Charge> charges, SplitGroups::Place place) noexcept;

  const KeyHasher& hasher_;
  Loop& loop_;
  const Settings settings_;
  Dispatcher dispatcher_;
  SplitGroups splits_;
  std::unique_ptr<Topology> topology_;
};

SplitGroups::Place RedisStore::State::Locate(const Charge& charge) noexcept {
  const std::uint16_t slot = SlotOfTag(charge.key);
  if (topology_->divides_slots()) return {slot, slot};
  return {reinterpret_cast<std::uintptr_t>(topology_->Find(slot)), slot};
}

bool RedisStore::State::IsTogether(std::span<const Charge> charges,
                                   SplitGroups::Place place) noexcept {
  return std::ranges::all_of(charges, [&](const Charge& charge) {
    return charge.key == charges.front().key || Locate(charge).id == place.id;
  });
}

void RedisStore::State::Submit(Group& group, Completion& completion) noexcept {
  group.error.reset();
  const SteadyTime deadline = loop_.now().steady + settings_.timeout;
  if (topology_->is_single()) return dispatcher_.Submit(group, 0, deadline, completion);
  if (group.action == Action::kCommit || group.action == Action::kCancel) {
    return dispatcher_.Submit(group, SlotOfReservation(group.reservation), deadline, completion);
  }
  if (group.charges.empty()) {
    group.decision = SpeaksForNobody();
    return completion.OnDecided(group);
  }
  for (const Charge& charge : group.charges) {
    if (charge.verb == Verb::kRefund || charge.verb == Verb::kReset) {
      splits_.empty_keys().Forget(charge);
    }
  }
  const SplitGroups::Place place = Locate(group.charges.front());
  if (IsTogether(group.charges, place)) {
    return dispatcher_.Submit(group, place.slot, deadline, completion);
  }
  splits_.Submit(group, deadline, completion);
}

void RedisStore::State::Beat(std::string_view member, std::function<void(Result<int>)> counted) {
  auto beat = std::make_unique<Heartbeat>(member, std::move(counted));
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

void RedisStore::Beat(std::string_view member, std::function<void(Result<int>)> counted) {
  state_->Beat(member, std::move(counted));
}

}  // namespace weir::redis
