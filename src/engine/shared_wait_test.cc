// threads
// Waits with a store that other processes share, which may be slow to answer: nobody is told late
// because somebody else's question hangs, and what others give back is heard of.
#include <atomic>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/shared_place_under_test.h"
#include "store/waiting.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::string_view kSharedPlaces =
    "store: redis://x\nrules: [{ name: x, key: user, limit: 1 concurrent lease 1h }]";
constexpr std::string_view kBuckets =
    "store: redis://x\nrules: [{ name: x, key: user, limit: 1/min }]";

class AwaitedAnswer {
 public:
  Engine::WaitDone Done() {
    return [this](const Answer& answer, std::span<const RuleDecision> each) {
      each_.assign(each.begin(), each.end());
      told_.set_value(answer);
    };
  }
  bool IsTold() { return IsToldWithin(seconds(0)); }
  // The clock stands still, so this is only how long a test takes to fail.
  bool IsToldSoon() { return IsToldWithin(seconds(10)); }
  Decision Told() { return future_.get().decision; }
  const std::vector<RuleDecision>& each() const { return each_; }

 private:
  bool IsToldWithin(seconds time) { return future_.wait_for(time) == std::future_status::ready; }

  std::promise<Answer> told_;
  std::shared_future<Answer> future_ = told_.get_future().share();
  std::vector<RuleDecision> each_;
};

class SharedWaitTest : public testing::Test {
 protected:
  Engine Make(std::string_view yaml) {
    return EngineParts::Make(PolicyOf(yaml), {.clock = &clock_},
                             std::make_unique<PlaceUnderTest>(world_));
  }
  Engine& Start(std::string_view yaml) { return engine_.emplace(Make(yaml)); }
  WaitId Begin(AwaitedAnswer& waited, std::string_view user, Duration patience) {
    return engine_->CheckThen({.user = user}, {}, patience, waited.Done());
  }
  // Returns when the store was asked about the key so often since.
  void AwaitAsked(std::string_view key, int times = 1) {
    for (int seen = 0; seen < times; std::this_thread::yield()) {
      for (const SharedWorld::Seen& charge : world_.TakeSeen()) seen += charge.key == key ? 1 : 0;
    }
  }
  // Whoever was asked for before has taken in the answer then: they are served in that order.
  void AwaitAnswers() {
    AwaitedAnswer witness;
    Begin(witness, "witness", Duration(0));
    witness.Told();
  }
  std::uint64_t Denials() {
    std::uint64_t denials = 0;
    for (const RuleCount& count : engine_->RuleCounts()) {
      if (count.outcome == "denied") denials += count.count;
    }
    return denials;
  }
  // One for whom there is no room now.
  void BeginInLine(AwaitedAnswer& waited, std::string_view user, Duration patience) {
    world_.TakeSeen();
    Begin(waited, user, patience);
    AwaitAsked("user=" + std::string(user));
    AwaitAnswers();
    while (clock_.Waiting() == 0) std::this_thread::yield();
  }

  ManualClock clock_;
  SharedWorld world_{clock_.Read()};
  std::optional<Engine> engine_;
};

TEST_F(SharedWaitTest, TellsOneWhoseTimeHasComeWhileAnotherIsAskedFor) {
  Engine& engine = Start(kBuckets);
  engine.Check({.user = "ann"});
  AwaitedAnswer ann;
  AwaitedAnswer bob;
  BeginInLine(ann, "ann", minutes(1));
  world_.Hold("user=bob");
  Begin(bob, "bob", minutes(1));
  AwaitAsked("user=bob");
  clock_.Advance(minutes(1));
  EXPECT_TRUE(ann.IsToldSoon());
  EXPECT_FALSE(bob.IsTold());
  world_.Hold("");
  EXPECT_TRUE(bob.IsToldSoon());
  EXPECT_TRUE(ann.Told().allowed);
}

TEST_F(SharedWaitTest, AsksForOthersWhileOneIsAskedFor) {
  Engine& engine = Start(kSharedPlaces);
  world_.Hold("user=bob");
  AwaitedAnswer bob;
  AwaitedAnswer carl;
  AwaitedAnswer dora;
  Begin(bob, "bob", minutes(1));
  AwaitAsked("user=bob");
  engine.Check({.user = "carl"});
  Begin(carl, "carl", seconds(5));
  Begin(dora, "dora", minutes(1));
  EXPECT_TRUE(dora.IsToldSoon());
  AwaitAnswers();
  clock_.Advance(seconds(5));
  ASSERT_TRUE(carl.IsToldSoon());
  EXPECT_EQ(carl.Told().reason, Reason::kLimited);
  EXPECT_FALSE(bob.IsTold());
  world_.Hold("");
  EXPECT_TRUE(bob.IsToldSoon());
}

TEST_F(SharedWaitTest, TellsOneBehindOthersAtItsDeadlineWithoutAskingTheStore) {
  Engine& engine = Start(kSharedPlaces);
  engine.Check({.user = "ann"});
  AwaitedAnswer first;
  AwaitedAnswer second;
  BeginInLine(first, "ann", minutes(1));
  Begin(second, "ann", seconds(5));
  world_.Hold("user=ann");
  world_.TakeSeen();
  clock_.Advance(seconds(5));
  ASSERT_TRUE(second.IsToldSoon());
  const Decision told = second.Told();
  EXPECT_FALSE(told.allowed);
  EXPECT_EQ(told.reason, Reason::kLimited);
  EXPECT_EQ(told.rule, "x");
  EXPECT_EQ(told.limit, 1);
  EXPECT_EQ(told.remaining, 0);
  // As of now, not of when the first was told so.
  EXPECT_EQ(told.retry_after, minutes(60) - seconds(5));
  ASSERT_EQ(second.each().size(), 1U);
  EXPECT_EQ(second.each()[0].decision.limit, 1);
  EXPECT_EQ(Denials(), 1U);
  for (const auto& charge : world_.TakeSeen()) EXPECT_EQ(charge.verb, Verb::kCheck);
  EXPECT_FALSE(first.IsTold());
  engine_.reset();
}

TEST_F(SharedWaitTest, CountsThoseToldWithoutAskingTowardsABan) {
  Engine& engine = Start(
      "store: redis://x\nrules:\n"
      "  - { name: x, key: user, limit: 1 concurrent lease 1h,\n"
      "      block: { after: 2 denials in 10min, for: 2h } }\n");
  engine.Check({.user = "ann"});
  AwaitedAnswer first;
  AwaitedAnswer second;
  AwaitedAnswer third;
  BeginInLine(first, "ann", minutes(1));
  Begin(second, "ann", seconds(5));
  Begin(third, "ann", seconds(5));
  clock_.Advance(seconds(5));
  EXPECT_TRUE(second.IsToldSoon());
  EXPECT_TRUE(third.IsToldSoon());
  while (engine.Peek({.user = "ann"}).decision.reason != Reason::kBanned) {
    std::this_thread::yield();
  }
  engine_.reset();
}

TEST_F(SharedWaitTest, HearsOfAPlaceThatAnotherProcessGaveBack) {
  Start(kSharedPlaces);
  Engine other = Make(kSharedPlaces);
  const Answer holder = other.Check({.user = "ann"});
  AwaitedAnswer ann;
  BeginInLine(ann, "ann", seconds(30));
  ASSERT_TRUE(other.Release(holder.decision.reservation).has_value());
  EXPECT_FALSE(ann.IsTold());
  clock_.Advance(milliseconds(100));
  ASSERT_TRUE(ann.IsToldSoon());
  EXPECT_TRUE(ann.Told().allowed);
}

TEST_F(SharedWaitTest, DoesNotAskEarlierWhereItIsKnownWhenThereIsRoom) {
  Engine& engine = Start(
      "store: redis://x\nrules:\n"
      "  - { name: x, key: user, limit: 1 concurrent lease 1h }\n"
      "  - { name: y, key: user, limit: 1/10s, algorithm: sliding_log }\n");
  engine.Check({.user = "ann"});
  AwaitedAnswer ann;
  BeginInLine(ann, "ann", seconds(30));
  world_.TakeSeen();
  for (int i = 0; i < 99; ++i) {
    clock_.Advance(milliseconds(100));
    AwaitAnswers();
  }
  for (const auto& charge : world_.TakeSeen()) EXPECT_NE(charge.key, "user=ann");
  clock_.Advance(milliseconds(100));
  AwaitAsked("user=ann");
  AwaitAnswers();
  clock_.Advance(milliseconds(100));
  AwaitAsked("user=ann");  // Now only the place is missing.
  engine_.reset();
}

TEST_F(SharedWaitTest, GivesBackWhatACancelledAttemptTook) {
  Engine& engine = Start(kSharedPlaces);
  world_.Hold("user=ann");
  AwaitedAnswer cancelled;
  AwaitedAnswer next;
  const WaitId id = Begin(cancelled, "ann", minutes(1));
  AwaitAsked("user=ann");
  EXPECT_TRUE(engine.CancelWait(id));
  EXPECT_FALSE(engine.CancelWait(id));
  Begin(next, "ann", minutes(1));
  world_.Hold("");
  // Without time passing: it hears of what the first had.
  ASSERT_TRUE(next.IsToldSoon());
  EXPECT_TRUE(next.Told().allowed);
  EXPECT_FALSE(cancelled.IsTold());
  EXPECT_EQ(engine.Stats().store.waiters, 0U);
  EXPECT_TRUE(engine.Release(next.Told().reservation).has_value());
  EXPECT_TRUE(engine.Check({.user = "ann"}).decision.allowed);
}

TEST_F(SharedWaitTest, GivesBackWhatAnAttemptTookWhenTheEngineEnds) {
  world_.timeout = std::chrono::hours(1);
  Start(kSharedPlaces);
  world_.Hold("*", SharedWorld::Decided::kAtOnce);
  AwaitedAnswer ann;
  AwaitedAnswer bob;
  // He takes nothing, so there is nothing to be given back, and that is soon done.
  engine_->CheckThen({.user = "bob"}, {.cost = 0}, minutes(1), bob.Done());
  Begin(ann, "ann", minutes(1));
  // She has her place, but does not know it yet.
  while (world_.held_and_decided < 2) std::this_thread::yield();
  std::thread ending([this] { engine_.reset(); });
  EXPECT_TRUE(ann.IsToldSoon());
  EXPECT_EQ(ann.Told().reason, Reason::kOverload);
  world_.Hold("");
  ending.join();
  EXPECT_TRUE(Make(kSharedPlaces).Check({.user = "ann"}).decision.allowed);
}

TEST_F(SharedWaitTest, EndsWithoutTheAnswersItWaitsFor) {
  Engine& engine = Start(kSharedPlaces);
  world_.silent = true;
  AwaitedAnswer ann;
  AwaitedAnswer bob;
  AwaitedAnswer behind;
  Begin(ann, "ann", minutes(1));
  Begin(behind, "ann", minutes(1));
  const WaitId cancelled = Begin(bob, "bob", minutes(1));
  AwaitAsked("user=bob");
  EXPECT_TRUE(engine.CancelWait(cancelled));
  std::thread ending([this] { engine_.reset(); });
  EXPECT_TRUE(ann.IsToldSoon());
  EXPECT_TRUE(behind.IsToldSoon());
  world_.silent = false;
  ending.join();
  EXPECT_EQ(ann.Told().reason, Reason::kOverload);
  EXPECT_EQ(behind.Told().reason, Reason::kOverload);
  EXPECT_FALSE(bob.IsTold());
}

TEST_F(SharedWaitTest, AsksForManyAtATime) {
  constexpr std::size_t kMany = 3'000;
  Engine& engine = Start(kSharedPlaces);
  world_.Hold("*");
  std::atomic<std::size_t> told{0};
  std::atomic<std::size_t> allowed{0};
  std::vector<std::string> users;
  for (std::size_t i = 0; i < kMany; ++i) users.push_back("u" + std::to_string(i));
  for (const std::string& user : users) {
    engine.CheckThen({.user = user}, {}, minutes(1),
                     [&](const Answer& answer, std::span<const RuleDecision>) {
                       allowed += answer.decision.allowed ? 1 : 0;
                       ++told;
                     });
  }
  // None is answered before all of these are asked for.
  for (std::size_t asked = 0; asked < Waiting::kMostAttempts; std::this_thread::yield()) {
    asked += world_.TakeSeen().size();
  }
  EXPECT_EQ(told, 0U);
  world_.Hold("");
  while (told < kMany) std::this_thread::yield();
  EXPECT_EQ(allowed, kMany);
}

TEST_F(SharedWaitTest, LosesNobodyAndNoPlaceWhenAllHappensAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 150;
  Engine& engine = Start(kSharedPlaces);
  std::mutex mutex;
  std::deque<ReservationId> given;
  std::atomic<int> ended{0};
  std::atomic<int> told{0};
  std::atomic<int> cancelled{0};
  std::atomic<bool> stop{false};
  const auto release = [&] {
    std::unique_lock lock(mutex);
    if (given.empty()) return;
    const ReservationId place = given.front();
    given.pop_front();
    lock.unlock();
    EXPECT_TRUE(engine.Release(place).has_value());
  };
  std::jthread releaser([&] {
    while (!stop) {
      release();
      clock_.Advance(milliseconds(1));
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const std::string user = t % 2 == 0 ? "ann" : "bob";
        for (int i = 0; i < kEach; ++i) {
          const WaitId id =
              engine.CheckThen({.user = user}, {}, milliseconds(i % 5 * 300),
                               [&](const Answer& answer, std::span<const RuleDecision>) {
                                 const ReservationId place = answer.decision.reservation;
                                 const std::scoped_lock lock(mutex);
                                 if (place != ReservationId::kNone) given.push_back(place);
                                 ++told;
                                 ++ended;
                               });
          if (i % 3 == 0 && engine.CancelWait(id)) {
            ++cancelled;
            ++ended;
          }
        }
      });
    }
  }
  while (ended < kThreads * kEach) std::this_thread::yield();
  // What cancelled attempts took is on its way back.
  while (engine.Stats().store.waiters > 0) std::this_thread::yield();
  stop = true;
  releaser.join();
  while (!given.empty()) release();
  while (world_.state.Stats().reservations > 0) std::this_thread::yield();
  EXPECT_EQ(told + cancelled, kThreads * kEach);
}

}  // namespace
}  // namespace weir
