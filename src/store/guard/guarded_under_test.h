// What the tests of the guard share: a store that keeps state and fails on command, at once or
// later, and a guarded store in front of it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weir/clock.h>

#include "net/loop_under_test.h"
#include "store/guard/guard.h"
#include "store/memory/store_under_test.h"

namespace weir {

// As a shared store behaves: its state is elsewhere, its answers may come later, and its
// reservations have the top bit set.
class StoreBehind final : public Store {
 public:
  StoreBehind(const KeyHasher& hasher, Now start)
      : hasher_(hasher), state_(MemoryStoreOptions{.cap_bytes = kMinCapBytes}, start) {}

  std::uint64_t Hash(std::string_view key) const noexcept override { return hasher_(key); }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    for (Group& group : groups) {
      ++submitted;
      if (deferred) {
        waiting_.push_back({&group, now, &completion});
      } else {
        Answer({&group, now, &completion});
      }
    }
  }

  // Answers what waits, in order.
  void AnswerAll() {
    while (!waiting_.empty()) AnswerOne();
  }
  void AnswerOne() {
    const Waiting waiting = waiting_.front();
    waiting_.pop_front();
    Answer(waiting);
  }
  std::size_t waiting() const { return waiting_.size(); }

  void FailWith(ErrorCode code, std::string message) { error_ = Error{code, std::move(message)}; }
  void Fail() { FailWith(ErrorCode::kDeadline, "no answer from 127.0.0.1:6379 in 50 ms"); }
  void Recover() { error_.reset(); }
  // What is left of a key here.
  std::int64_t Remaining(const Charge& charge, Now now) {
    Charge look = charge;
    look.verb = Verb::kPeek;
    look.cost = 0;
    return state_.Decide(look, now).remaining;
  }

  bool deferred = false;
  std::size_t submitted = 0;

 private:
  struct Waiting {
    Group* group;
    Now now;
    Completion* completion;
  };

  void Answer(const Waiting& waiting) {
    Group& group = *waiting.group;
    group.error = error_;
    if (!error_) Decide(group, waiting.now);
    waiting.completion->OnDecided(group);
  }
  void Decide(Group& group, Now now) {
    const bool settles = group.action == Action::kCommit || group.action == Action::kCancel;
    const ReservationId told = group.reservation;
    group.reservation = Without(told);
    state_.Decide(group, now);
    group.reservation = settles ? told : With(group.reservation);
    for (Decision& decision : group.decisions) decision.source = Source::kStore;
    group.decision.source = Source::kStore;
    group.decision.reservation = group.reservation;
  }
  static ReservationId With(ReservationId id) {
    if (id == ReservationId::kNone) return id;
    return ReservationId{std::to_underlying(id) | kSharedReservation};
  }
  static ReservationId Without(ReservationId id) {
    return ReservationId{std::to_underlying(id) & ~kSharedReservation};
  }

  const KeyHasher& hasher_;
  MemoryStore state_;
  std::optional<Error> error_;
  std::deque<Waiting> waiting_;
};

// Remembers who was told, and does what it is told to do.
class DecidedGroups final : public Completion {
 public:
  void OnDecided(Group& group) noexcept override {
    groups.push_back(&group);
    if (then) then(group);
  }
  std::vector<Group*> groups;
  std::function<void(Group&)> then;
};

// One process: its guard, and one thread's stores.
class GuardedUnderTest {
 public:
  explicit GuardedUnderTest(GuardOptions options = {.fleet_size = 4})
      : guard(WithNotices(std::move(options)), loop.clock),
        behind(guard.hasher(), loop.clock.Read()),
        store(std::make_unique<GuardedStore>(behind, guard, loop)) {}

  Charge ChargeFor(std::string_view key, const Limit& limit, std::int64_t cost = 1,
                   FailureMode mode = FailureMode::kStatic) const {
    return {.rule = "rule",
            .key = key,
            .hash = guard.hasher()(key),
            .limit = &limit,
            .cost = cost,
            .on_failure = mode};
  }

  // Groups that are answered before Submit returns.
  Group Ask(const std::vector<Charge>& charges, Action action = Action::kDecide) {
    decisions.assign(charges.size(), {});
    Group group{.action = action, .charges = charges, .decisions = decisions};
    Submit(group);
    return group;
  }
  Decision Check(std::string_view key, const Limit& limit, std::int64_t cost = 1,
                 FailureMode mode = FailureMode::kStatic) {
    return Ask({ChargeFor(key, limit, cost, mode)}).decision;
  }
  Group Settle(Action action, ReservationId id, std::int64_t cost = 0,
               std::vector<LimitInForce> in_force = {}) {
    Group group{.action = action, .in_force = in_force, .reservation = id, .cost = cost};
    Submit(group);
    group.in_force = {};
    return group;
  }
  std::int64_t Exhaust(std::string_view key, const Limit& limit) {
    std::int64_t admitted = 0;
    while (admitted < 10'000 && Check(key, limit).allowed) ++admitted;
    return admitted;
  }
  void Submit(Group& group) { store->Submit({&group, 1}, loop.now(), told); }

  LoopUnderTest loop;
  std::vector<std::string> notices;
  Guard guard;
  StoreBehind behind;
  std::unique_ptr<GuardedStore> store;
  DecidedGroups told;
  std::vector<Decision> decisions;  // Of what was asked last.

 private:
  GuardOptions WithNotices(GuardOptions options) {
    options.cap_bytes = kMinCapBytes;
    options.on_notice = [this](std::string_view text) { notices.emplace_back(text); };
    return options;
  }
};

}  // namespace weir
