#include "engine/loop_store.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "store/memory/memory_store.h"

namespace weir {
namespace {

// How often to look whether a store that was left has answered all that it was asked.
constexpr Duration kLook = std::chrono::milliseconds(50);
// And whether the next one can be asked.
constexpr Duration kSoon = std::chrono::milliseconds(2);

}  // namespace

// A shared store, opened on this loop.
struct LoopStore::Branch {
  Branch(std::shared_ptr<Home> its_home, Loop& loop) : home(std::move(its_home)) {
    const bool beats = home->needs_heartbeat.exchange(false);
    using Heartbeat = SharedPlace::Heartbeat;
    store = home->place->OpenOn(loop, beats ? Heartbeat::kYes : Heartbeat::kNo);
    denials.emplace(*store, loop);
  }
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  // What is under way is answered from within.
  ~Branch() {
    denials->Close();
    store.reset();
  }

  // That nobody asks under any more.
  void ForgetVersions() {
    std::erase_if(versions, [](const auto& version) { return version.expired(); });
  }
  bool HasQuestions() {
    ForgetVersions();
    return !versions.empty();
  }

  const std::shared_ptr<Home> home;
  // Those under which questions were asked here; each question holds on to its own.
  std::vector<std::weak_ptr<const PolicyVersion>> versions;
  SteadyTime take_up_by{};  // While it is being connected.
  SteadyTime leave_by{};    // Once it was left.
  std::unique_ptr<Store> store;
  std::optional<DenialNotes> denials;  // Ends after the store.
};

LoopStore::LoopStore(EngineParts::State& state, Loop& loop)
    : state_(state), loop_(loop), look_(loop.MakeTimer([this] { LookAround(); })) {
  TakeUpVersion();
}

LoopStore::~LoopStore() { End(); }

void LoopStore::TakeUpVersion() {
  auto holder =
      std::make_shared<const std::shared_ptr<const PolicyVersion>>(state_.versions.Share());
  const PolicyVersion* const its = holder->get();
  if (!has_ended_ && version_ != nullptr && MustConnect(its->home)) return;
  version_ = std::shared_ptr<const PolicyVersion>(std::move(holder), its);
  if (has_ended_) return;
  MoveTo(version_->home);
  if (branch_ == nullptr) return;
  branch_->ForgetVersions();
  branch_->versions.emplace_back(version_);
}

// Those that take too long are taken up all the same: then it is known at least that they fail.
bool LoopStore::MustConnect(const std::shared_ptr<Home>& home) {
  if (coming_ != nullptr && coming_->home != home) coming_.reset();
  const bool is_here = branch_ != nullptr && branch_->home == home;
  if (!home->is_shared() || is_here) return false;
  const SteadyTime now = loop_.now().steady;
  if (coming_ == nullptr) {
    coming_ = std::make_unique<Branch>(home, loop_);
    coming_->take_up_by = now + home->place->time_to_settle();
  }
  if (coming_->store->IsSettled() || now >= coming_->take_up_by) return false;
  look_->Start(kSoon);
  return true;
}

void LoopStore::LookAround() {
  Leave();
  if (coming_ != nullptr) TakeUpVersion();
}

void LoopStore::MoveTo(const std::shared_ptr<Home>& home) {
  if (branch_ != nullptr && branch_->home == home) return;
  if (branch_ != nullptr) {
    // An answer takes no longer than the timeout, and what follows it as long again. What is left
    // then is answered by the store's end.
    branch_->leave_by = loop_.now().steady + 4 * branch_->home->place->timeout();
    former_.push_back(std::move(branch_));
    look_->Start(kLook);
  }
  if (!home->is_shared()) return;
  branch_ = coming_ != nullptr ? std::move(coming_) : std::make_unique<Branch>(home, loop_);
}

void LoopStore::Leave() {
  const SteadyTime now = loop_.now().steady;
  const auto over = std::ranges::partition(former_, [&](const auto& branch) {
    return branch->HasQuestions() && now < branch->leave_by && !has_ended_;
  });
  // Nobody finds them any more when their end answers what is under way.
  const std::vector<std::unique_ptr<Branch>> left(std::make_move_iterator(over.begin()),
                                                  std::make_move_iterator(over.end()));
  former_.erase(over.begin(), over.end());
  if (!former_.empty()) look_->Start(coming_ != nullptr ? kSoon : kLook);
}

void LoopStore::End() {
  has_ended_ = true;
  Leave();
  coming_.reset();
  const std::unique_ptr<Branch> last = std::move(branch_);
}

LoopStore::Branch* LoopStore::Find(const Home& home) const noexcept {
  const auto is_there = [&](const auto& branch) { return branch->home.get() == &home; };
  if (branch_ != nullptr && is_there(branch_)) return branch_.get();
  const auto found = std::ranges::find_if(former_, is_there);
  return found == former_.end() ? nullptr : found->get();
}

void LoopStore::Submit(const PolicyVersion& version, Group& group, Now now,
                       Completion& completion) noexcept {
  if (!version.is_shared()) return version.memory->Submit({&group, 1}, now, completion);
  Find(*version.home)->store->Submit({&group, 1}, now, completion);
}

DenialNotes* LoopStore::DenialsUnder(const PolicyVersion& version) noexcept {
  Branch* const branch = Find(*version.home);
  return branch == nullptr ? nullptr : &*branch->denials;
}

}  // namespace weir
