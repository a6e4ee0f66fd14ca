// Stands between those who ask and the store: takes each answer first, mends it if the store
// failed, and hands it on.
#include <utility>
#include <vector>

#include "store/guard/fallback.h"
#include "store/guard/feed.h"
#include "store/guard/guard.h"
#include "store/guard/guard_state.h"
#include "store/memory/memory_store.h"

namespace weir {
namespace {

bool Settles(const Group& group) noexcept {
  return group.action == Action::kCommit || group.action == Action::kCancel;
}

bool IsKeptHere(const Group& group) noexcept {
  return Settles(group) && (std::to_underlying(group.reservation) & kSharedReservation) == 0;
}

// Whether the store is to blame, and not who asked.
bool IsStoreFailure(const Error& error) noexcept {
  return error.code != ErrorCode::kNotFound && error.code != ErrorCode::kInvalidArgument;
}

// Whether the store had to be asked at all.
bool NeedsStore(const Group& group) noexcept {
  if (Settles(group)) return true;
  for (const Charge& charge : group.charges) {
    if (charge.limit->kind() == LimitKind::kCounted) return true;
  }
  return false;
}

bool HasRoomForDecisions(const Group& group) noexcept {
  return group.charges.size() <= kMaxGroupCharges && group.decisions.size() >= group.charges.size();
}

}  // namespace

// The groups of one Submit that are with the store. Used again for others afterwards.
class GuardedStore::Flight final : public Completion {
 public:
  void Start(std::shared_ptr<State> state, Completion& told, std::size_t groups) noexcept {
    state_ = std::move(state);
    told_ = &told;
    left_ = groups;
  }
  void OnDecided(Group& group) noexcept override;

 private:
  std::shared_ptr<State> state_;  // While there are groups to come.
  Completion* told_ = nullptr;
  std::size_t left_ = 0;
};

// Outlives the GuardedStore while groups are under way.
class GuardedStore::State : public std::enable_shared_from_this<GuardedStore::State> {
 public:
  State(Store& behind, const Guard& guard, Loop& loop)
      : behind_(behind), guard_(guard.state_), is_in_use_(guard.is_in_use_), loop_(loop) {}

  std::uint64_t Hash(std::string_view key) const noexcept { return guard_->local().Hash(key); }
  void PassOn(std::span<Group> groups, Now now, Completion& told) noexcept;
  // What is kept in this process is settled here, whatever the store does.
  void SettleHere(Group& group, Now now) noexcept {
    fallback_.Settle(group, guard_->fleet_size(), now);
  }
  // An answer has come from behind.
  void Finish(Group& group) noexcept;
  void Recycle(Flight& flight) noexcept { idle_.push_back(&flight); }
  // From now on what fails does so because all is being ended, and says nothing of the store.
  void End() noexcept { ended_ = true; }

 private:
  void Mend(Group& group, Now now) noexcept;
  bool is_in_use() const noexcept { return is_in_use_->load(std::memory_order_relaxed); }
  Flight& TakeFlight();

  Store& behind_;
  const std::shared_ptr<Guard::State> guard_;
  const std::shared_ptr<const std::atomic<bool>> is_in_use_;
  Loop& loop_;
  Shares shares_;
  Fallback fallback_{guard_->local(), shares_};
  Feed feed_{guard_->local(), shares_, guard_->leases()};
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<Flight*> idle_;  // Has room for all flights.
  bool ended_ = false;
};

// The receiver may end everything from within, so it is told last; what is needed until then is
// held on the stack.
void GuardedStore::Flight::OnDecided(Group& group) noexcept {
  Completion& told = *told_;
  const bool last = --left_ == 0;
  const std::shared_ptr<State> state = last ? std::move(state_) : state_;
  state->Finish(group);
  if (last) state->Recycle(*this);
  told.OnDecided(group);
}

auto GuardedStore::State::TakeFlight() -> Flight& {
  if (idle_.empty()) {
    flights_.push_back(std::make_unique<Flight>());
    idle_.reserve(flights_.capacity());
    return *flights_.back();
  }
  Flight& flight = *idle_.back();
  idle_.pop_back();
  return flight;
}

void GuardedStore::State::PassOn(std::span<Group> groups, Now now, Completion& told) noexcept {
  if (groups.empty()) return;
  Flight& flight = TakeFlight();
  flight.Start(shared_from_this(), told, groups.size());
  behind_.Submit(groups, now, flight);
}

void GuardedStore::State::Finish(Group& group) noexcept {
  const Now now = loop_.now();
  // Whatever the store says to it: who held the lease is done with it.
  if (Settles(group)) feed_.Release(group.reservation, now);
  if (group.error && IsStoreFailure(*group.error)) [[unlikely]]
    return Mend(group, now);
  if (NeedsStore(group) && is_in_use()) guard_->NoteSuccess(now.steady);
  if (!group.error && !Settles(group)) feed_.Take(group, guard_->fleet_size(), now);
}

void GuardedStore::State::Mend(Group& group, Now now) noexcept {
  if (!ended_ && is_in_use()) guard_->NoteFailure(*group.error, now.steady);
  if (Settles(group) || !HasRoomForDecisions(group)) return;
  guard_->NoteDecided(fallback_.Decide(group, guard_->fleet_size(), now));
}

GuardedStore::GuardedStore(Store& behind, Guard& guard, Loop& loop)
    : state_(std::make_shared<State>(behind, guard, loop)) {}
GuardedStore::~GuardedStore() { state_->End(); }

std::uint64_t GuardedStore::Hash(std::string_view key) const noexcept { return state_->Hash(key); }

void GuardedStore::Submit(std::span<Group> groups, Now now, Completion& completion) noexcept {
  // Whoever is told may end this store, and not only the groups told of.
  const std::shared_ptr<State> state = state_;
  std::size_t first = 0;  // Of those to be passed on together.
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!IsKeptHere(groups[i])) continue;
    state->PassOn(groups.subspan(first, i - first), now, completion);
    first = i + 1;
    state->SettleHere(groups[i], now);
    completion.OnDecided(groups[i]);
  }
  state->PassOn(groups.subspan(first), now, completion);
}

}  // namespace weir
