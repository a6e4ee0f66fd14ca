// What the tests of shared stores have in common: a place whose state is in this process, whose
// answers come when the test says so, and which fails when it is told to.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/shared_place.h"
#include "store/memory/memory_store.h"

namespace weir {

// What the test and the place see of each other. Outlives the engine.
struct SharedWorld {
  explicit SharedWorld(Now start) : SharedWorld(MemoryStoreOptions{}, start) {}
  SharedWorld(const MemoryStoreOptions& options, Now start) : state(options, start) {}

  // One charge as it came to the store.
  struct Seen {
    std::string rule;
    std::string key;
    Aspect aspect;
    FailureMode on_failure;
    std::int64_t interval;  // The limit's T.
    Verb verb;
  };
  std::vector<Seen> TakeSeen() {
    const std::scoped_lock lock(mutex);
    return std::exchange(seen, {});
  }

  static constexpr Duration kTimeout = std::chrono::milliseconds(50);

  MemoryStore state;
  std::atomic<bool> fails{false};     // Every group ends with an error.
  std::atomic<bool> silent{false};    // Nothing is ever answered.
  std::atomic<bool> held{false};      // Answers wait for this.
  std::atomic<bool> connects{false};  // Nobody knows yet how it fares.
  // What only has to do with bans is not answered; once this ends, with what is asked next.
  std::atomic<bool> holds_bans{false};
  std::atomic<Duration> timeout{kTimeout};  // What the place says of itself.
  std::atomic<int> opened{0};
  std::atomic<int> open{0};  // Now.
  std::atomic<int> beating{0};
  std::atomic<int> left{0};
  std::atomic<int> fleet_size{3};
  std::atomic<int> turns{0};  // In which something was asked.
  std::mutex mutex;
  std::vector<Seen> seen;  // Under the mutex.

  // Whoever asks about this key, or "*" for all, gets no answer until another is set. What they
  // asked for is decided then, or at once.
  enum class Decided : bool { kThen, kAtOnce };
  void Hold(std::string key, Decided decided = Decided::kThen) {
    const std::scoped_lock lock(mutex);
    held_key = std::move(key);
    decides_held = decided == Decided::kAtOnce;
  }
  bool Holds(const Group& group) {
    const std::scoped_lock lock(mutex);
    if (held_key.empty()) return false;
    if (held_key == "*") return true;
    return std::ranges::any_of(group.charges,
                               [this](const Charge& charge) { return charge.key == held_key; });
  }
  bool HoldsBan(const Group& group) const {
    return holds_bans && !group.charges.empty() && group.charges[0].aspect != Aspect::kRule;
  }
  SharedWorld* successor = nullptr;  // Where another policy's state is.
  bool is_left = false;              // Not even for one that says the same.
  std::string held_key;              // Under the mutex.
  std::atomic<bool> decides_held{false};
  std::atomic<int> held_and_decided{0};
};

// Answers in a later turn.
class LaterStore final : public Store {
 public:
  LaterStore(SharedWorld& world, Loop& loop)
      : world_(world), loop_(loop), alive_(std::make_shared<bool>(true)) {
    world_.open.fetch_add(1);
  }
  LaterStore(const LaterStore&) = delete;
  LaterStore& operator=(const LaterStore&) = delete;
  ~LaterStore() override {
    *alive_ = false;
    world_.open.fetch_sub(1);
  }

  std::uint64_t Hash(std::string_view key) const noexcept override {
    return world_.state.Hash(key);
  }
  bool IsSettled() noexcept override { return !world_.connects; }
  void Submit(std::span<Group> groups, Now now, Completion& completion) noexcept override {
    for (Group& group : groups) Note(group);
    for (Group& group : groups) waiting_.push_back({&group, now, &completion, false});
    if (std::exchange(posted_, true)) return;
    world_.turns.fetch_add(1);
    AnswerLater();
  }

 private:
  struct Asked {
    Group* group;
    Now now;
    Completion* completion;
    bool is_decided = false;
  };

  void Note(const Group& group) {
    const std::scoped_lock lock(world_.mutex);
    for (const Charge& charge : group.charges) {
      world_.seen.push_back({std::string(charge.rule), std::string(charge.key), charge.aspect,
                             charge.on_failure, charge.limit->emission_interval(), charge.verb});
    }
  }
  void AnswerLater() {
    loop_.Post([this, alive = alive_] {
      if (*alive) Answer();
    });
  }
  void Answer() {
    posted_ = false;
    if (world_.silent) return;
    while (world_.held) std::this_thread::yield();
    std::deque<Asked> asked_before = std::exchange(held_, {});
    for (const Asked& asked : std::exchange(waiting_, {})) asked_before.push_back(asked);
    for (Asked& asked : asked_before) {
      const bool holds_ban = world_.HoldsBan(*asked.group);
      if (holds_ban || world_.Holds(*asked.group)) {
        if (world_.decides_held && !asked.is_decided) {
          Decide(asked);
          world_.held_and_decided.fetch_add(1);
        }
        (holds_ban ? held_ : waiting_).push_back(asked);
        continue;
      }
      Decide(asked);
      asked.completion->OnDecided(*asked.group);
    }
    if (waiting_.empty() || posted_) return;
    posted_ = true;
    std::this_thread::yield();
    AnswerLater();
  }

  void Decide(Asked& asked) {
    if (std::exchange(asked.is_decided, true)) return;
    Group& group = *asked.group;
    if (world_.fails) {
      group.error = Error{ErrorCode::kDeadline, "the store did not answer"};
      return;
    }
    world_.state.Decide(group, asked.now);
    for (Decision& decision : group.decisions) decision.source = Source::kStore;
    group.decision.source = Source::kStore;
  }

  SharedWorld& world_;
  Loop& loop_;
  std::deque<Asked> waiting_;
  std::deque<Asked> held_;  // Until something else is asked.
  bool posted_ = false;
  std::shared_ptr<bool> alive_;
};

class PlaceUnderTest final : public SharedPlace {
 public:
  explicit PlaceUnderTest(SharedWorld& world) : world_(world) {}

  const KeyHasher& hasher() const noexcept override { return world_.state.hasher(); }
  std::unique_ptr<Store> OpenOn(Loop& loop, Heartbeat heartbeat) override {
    world_.opened.fetch_add(1);
    if (heartbeat == Heartbeat::kYes) world_.beating.fetch_add(1);
    return std::make_unique<LaterStore>(world_, loop);
  }
  Duration timeout() const noexcept override { return world_.timeout; }
  Duration time_to_settle() const noexcept override { return 2 * world_.timeout.load(); }
  void SetFleetSize(int size) noexcept override { world_.fleet_size = size; }
  CapChange SetCap(std::size_t bytes, Now now) noexcept override {
    return world_.state.SetCap(bytes, now);
  }
  void Leave() noexcept override { world_.left.fetch_add(1); }
  bool IsFor(const Policy& /*policy*/) const override { return !world_.is_left; }
  Result<std::unique_ptr<SharedPlace>> Successor(const Policy& /*policy*/) override {
    if (world_.successor == nullptr) {
      return std::unexpected(Error{ErrorCode::kInvalidArgument, "there is none"});
    }
    return std::make_unique<PlaceUnderTest>(*world_.successor);
  }
  StoreHealth Health(SteadyTime /*now*/) const override {
    return {.degraded = world_.fails, .fleet_size = world_.fleet_size};
  }
  MemoryStoreStats LocalStats() const noexcept override { return world_.state.Stats(); }

 private:
  SharedWorld& world_;
};

}  // namespace weir
