// The engine as ever, with its state in a store that other processes share: whoever asks waits for
// the answer.
#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/loop_engine.h"
#include "engine/shared_place_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::string_view kSharedPolicy = R"(
store: redis://x
rules:
  - { name: per-user, key: user, limit: 2/min }
  - { name: total, key: global, limit: 1000/min }
)";

class SharedEngineTest : public testing::Test {
 protected:
  Engine& Start(std::string_view yaml = kSharedPolicy) {
    engine_.emplace(EngineParts::Make(
        PolicyOf(yaml),
        {.clock = &clock_,
         .on_notice = [this](std::string_view text) { notices_.emplace_back(text); }},
        std::make_unique<PlaceUnderTest>(world_)));
    return *engine_;
  }

  ManualClock clock_;
  SharedWorld world_{clock_.Read()};
  std::vector<std::string> notices_;
  std::optional<Engine> engine_;
};

TEST_F(SharedEngineTest, DecidesByTheSharedState) {
  Engine& engine = Start();
  Engine other = EngineParts::Make(PolicyOf(kSharedPolicy), {.clock = &clock_},
                                   std::make_unique<PlaceUnderTest>(world_));
  EXPECT_EQ(engine.Check({.user = "ann"}).decision.source, Source::kStore);
  EXPECT_EQ(other.Check({.user = "ann"}).decision.remaining, 0);
  EXPECT_FALSE(engine.Check({.user = "ann"}).decision.allowed);
  EXPECT_EQ(world_.beating, 2);
}

TEST_F(SharedEngineTest, HasAllVerbs) {
  Engine& engine = Start();
  const Request ann{.user = "ann"};
  std::array<RuleDecision, 4> each;
  EXPECT_EQ(engine.Check(ann, {}, each).rules, 2U);
  EXPECT_EQ(each[1].decision.remaining, 999);
  engine.Refund(ann);
  EXPECT_EQ(engine.Peek(ann).decision.remaining, 2);
  engine.Penalize(ann, {.cost = 2});
  EXPECT_FALSE(engine.Check(ann).decision.allowed);
  engine.Reset(ann);
  const Answer reserved = engine.Reserve(ann, {.cost = 2});
  ASSERT_NE(reserved.decision.reservation, ReservationId::kNone);
  EXPECT_TRUE(engine.Commit(reserved.decision.reservation, 1).has_value());
  EXPECT_EQ(engine.Check(ann).decision.remaining, 0);
  EXPECT_FALSE(engine.Cancel(reserved.decision.reservation).has_value());
  EXPECT_EQ(engine.Explain(ann).rules.at(0).key, "user=ann");
}

TEST_F(SharedEngineTest, AsksForManyTogether) {
  Engine& engine = Start(
      "store: redis://x\nallow: { user: boss }\n"
      "rules: [{ name: x, key: user, limit: 1/h }]");
  std::vector<std::string> users;
  for (int i = 0; i < 80; ++i) users.push_back(i % 10 == 0 ? "boss" : "u" + std::to_string(i));
  std::vector<BatchRequest> batch(users.size());
  for (std::size_t i = 0; i < users.size(); ++i) batch[i].request.user = users[i];
  engine.CheckBatch(batch, clock_.Read());
  for (std::size_t i = 0; i < users.size(); ++i) {
    EXPECT_TRUE(batch[i].answer.decision.allowed) << i;
    EXPECT_EQ(batch[i].answer.decision.reason, i % 10 == 0 ? Reason::kAllowList : Reason::kOk);
  }
  EXPECT_EQ(world_.turns, 3);  // 32 at a time.
  engine.CheckBatch(batch, clock_.Read());
  EXPECT_FALSE(batch[1].answer.decision.allowed);
  EXPECT_EQ(batch[1].answer.decision.rule, "x");
}

TEST_F(SharedEngineTest, CountsUnderLimitsThatComeWithRequests) {
  Engine& engine = Start();
  const Limit limit = *Limit::Parse("1/min");
  const Limit beyond = *Limit::Parse("5M/s");
  std::array<LimitRequest, 3> requests = {{{.key = "a", .limit = &limit},
                                           {.key = "b", .limit = &beyond},
                                           {.key = "a", .limit = &limit}}};
  engine.CheckLimits(requests, clock_.Read());
  EXPECT_TRUE(requests[0].decision.allowed);
  EXPECT_EQ(requests[1].decision.reason, Reason::kNeverFits);
  EXPECT_FALSE(requests[2].decision.allowed);
  EXPECT_EQ(world_.TakeSeen().at(0).key, "key=a");
}

TEST_F(SharedEngineTest, ServesManyThreads) {
  Engine& engine = Start("store: redis://x\nrules: [{ name: x, key: global, limit: 100/h }]");
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) admitted += engine.Check({}).decision.allowed ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 100);
  EXPECT_LE(world_.turns, 400);
}

TEST_F(SharedEngineTest, BansThoseDeniedTooOften) {
  Engine& engine = Start(R"(
store: redis://x
rules:
  - { name: login, key: ip, limit: 1/min, block: { after: 2 denials in 10min, for: 5min } }
)");
  const Request request{.ip = "192.0.2.1"};
  engine.Check(request);
  engine.Check(request);
  EXPECT_EQ(engine.Check(request).decision.reason, Reason::kBanned);
  for (const auto& charge : world_.TakeSeen()) EXPECT_EQ(charge.key, "ip=192.0.2.1");
  engine.Reset(request);
  EXPECT_TRUE(engine.Check(request).decision.allowed);
}

TEST_F(SharedEngineTest, AnswersWithinOneDeadlineHoweverLongDenialsTakeToCount) {
  Engine& engine = Start(R"(
store: redis://x
rules:
  - { name: login, key: ip, limit: 1/min, block: { after: 2 denials in 10min, for: 5min } }
)");
  const Request request{.ip = "192.0.2.1"};
  engine.Check(request);
  engine.Check(request);
  world_.TakeSeen();
  world_.holds_bans = true;
  auto denied = std::async(std::launch::async, [&] { return engine.Check(request); });
  const auto counts = [&] {
    return std::ranges::any_of(world_.TakeSeen(),
                               [](const auto& seen) { return seen.aspect == Aspect::kDenials; });
  };
  while (!counts()) std::this_thread::yield();
  EXPECT_NE(denied.wait_for(milliseconds(0)), std::future_status::ready);
  clock_.Advance(SharedWorld::kTimeout);
  EXPECT_EQ(denied.wait_for(seconds(10)), std::future_status::ready);
  world_.holds_bans = false;
  while (engine.Peek(request).decision.reason != Reason::kBanned) std::this_thread::yield();
  EXPECT_EQ(denied.get().decision.reason, Reason::kLimited);
}

TEST_F(SharedEngineTest, DeniesWhereNobodyAnswersInTheStoresPlace) {
  Engine& engine = Start();
  world_.fails = true;
  EXPECT_EQ(engine.Check({.user = "ann"}).decision.reason, Reason::kStoreFailure);
  EXPECT_FALSE(engine.Commit(ReservationId{5}, 1).has_value());
  EXPECT_TRUE(engine.Health().degraded);
  EXPECT_EQ(engine.Health().fleet_size, 3);
  world_.fails = false;
  EXPECT_TRUE(engine.Check({.user = "ann"}).decision.allowed);
}

// --- Another store ---

class MovingEngineTest : public SharedEngineTest {
 protected:
  MovingEngineTest() { world_.successor = &elsewhere_; }
  ~MovingEngineTest() override { engine_.reset(); }
  // With the rules of kSharedPolicy.
  static Policy At(std::string_view store) {
    return PolicyOf(std::string(store) + "\n" +
                    std::string(kSharedPolicy.substr(kSharedPolicy.find("rules:"))));
  }
  Decision Check(std::string_view user) { return engine_->Check({.user = user}).decision; }
  template <typename IsSo>
  static bool Eventually(const IsSo& is_so) {
    for (int i = 0; i < 5'000 && !is_so(); ++i) std::this_thread::sleep_for(milliseconds(1));
    return is_so();
  }

  SharedWorld elsewhere_{MemoryStoreOptions{.hasher = world_.state.hasher()}, clock_.Read()};
};

TEST_F(MovingEngineTest, CountsInTheStoreOfThePolicyInForce) {
  Engine& engine = Start();
  EXPECT_EQ(Check("ann").remaining, 1);
  const Result<PolicyChange> change = engine.Apply(At("store: redis://y"));
  ASSERT_TRUE(change);
  EXPECT_TRUE(change->store_changed);
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_EQ(Check("ann").remaining, 0);
  EXPECT_FALSE(Check("ann").allowed);
  EXPECT_EQ(elsewhere_.beating, 1);
  EXPECT_EQ(world_.left, 1);
  EXPECT_EQ(elsewhere_.left, 0);
  // Connections, threads and heartbeats of the one before end.
  EXPECT_TRUE(Eventually([this] { return world_.open == 0; }));
}

TEST_F(MovingEngineTest, GoesOnWithTheSameStoreUnderOtherSettings) {
  Engine& engine = Start();
  world_.successor = &world_;
  EXPECT_EQ(Check("ann").remaining, 1);
  const Result<PolicyChange> change =
      engine.Apply(At("store: redis://x\nredis: { timeout: 10ms }"));
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->store_changed);
  EXPECT_EQ(Check("ann").remaining, 0);
  EXPECT_EQ(world_.opened, 2);
  EXPECT_TRUE(Eventually([this] { return world_.open == 1; }));
}

TEST_F(MovingEngineTest, TakesUpPasswordsThatWereReplaced) {
  Engine& engine = Start();
  world_.successor = &world_;
  ASSERT_TRUE(engine.Apply(At("store: redis://x")));
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_EQ(world_.opened, 1);
  world_.is_left = true;
  const Result<PolicyChange> change = engine.Apply(At("store: redis://x"));
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->store_changed);
  EXPECT_EQ(world_.opened, 2);
}

TEST_F(MovingEngineTest, DecidesNothingElsewhereBeforeItIsKnownHowThatFares) {
  Engine& engine = Start();
  elsewhere_.connects = true;
  std::thread applies([&] { ASSERT_TRUE(engine.Apply(At("store: redis://y"))); });
  EXPECT_TRUE(Eventually([this] { return elsewhere_.open == 1; }));
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_TRUE(elsewhere_.TakeSeen().empty());
  elsewhere_.connects = false;
  applies.join();
  EXPECT_EQ(Check("ann").remaining, 1);
  EXPECT_FALSE(elsewhere_.TakeSeen().empty());
}

// One that stands in line goes by what others heard, for as long as it stands there.
TEST_F(MovingEngineTest, HoldsOnToNoStoreForTheSakeOfThoseInLine) {
  constexpr std::string_view kPlaces =
      "rules: [{ name: p, key: user, limit: 1 concurrent lease 1h }]";
  Engine& engine = Start("store: redis://x\n" + std::string(kPlaces));
  std::atomic<int> told{0};
  world_.Hold("*", SharedWorld::Decided::kAtOnce);
  for (int i = 0; i < 3; ++i) {
    engine.CheckThen({.user = "ann"}, {}, seconds(30), [&](const Answer&, auto) { ++told; });
  }
  ASSERT_TRUE(Eventually([this] { return world_.held_and_decided > 0; }));
  ASSERT_TRUE(engine.Apply(PolicyOf("store: memory\n" + std::string(kPlaces))));
  world_.Hold("");
  // Two are let through, the first elsewhere; the third waits for its place.
  EXPECT_TRUE(Eventually([&] { return told == 2; }));
  EXPECT_TRUE(Eventually([this] { return world_.open == 0; }));
  engine_.reset();
  EXPECT_EQ(told, 3);
}

TEST_F(MovingEngineTest, ChangesNothingIfTheStoreCannotBeUsed) {
  Engine& engine = Start();
  world_.successor = nullptr;
  EXPECT_EQ(Check("ann").remaining, 1);
  const Result<PolicyChange> change =
      engine.Apply(PolicyOf("store: redis://u:s3cret@y\nrules: []"));
  ASSERT_FALSE(change);
  EXPECT_EQ(change.error().message, "store: there is none");
  EXPECT_EQ(Check("ann").remaining, 0);
  EXPECT_EQ(engine.Stats().version, 1U);
  EXPECT_EQ(world_.open, 1);
}

TEST_F(MovingEngineTest, ComesHomeToMemoryAndForgetsWhatWasCountedElsewhere) {
  Engine& engine = Start();
  EXPECT_FALSE(Check("ann").source == Source::kMemory);
  const Answer reserved = engine.Reserve({.user = "bob"});
  ASSERT_NE(reserved.decision.reservation, ReservationId::kNone);
  const Result<PolicyChange> change = engine.Apply(At("store: memory"));
  ASSERT_TRUE(change && change->store_changed);
  EXPECT_THAT(change->started_anew, testing::IsEmpty());
  const Decision first = Check("ann");
  EXPECT_EQ(first.source, Source::kMemory);
  EXPECT_EQ(first.remaining, 1);
  EXPECT_FALSE(engine.Health().shared);
  EXPECT_EQ(engine.Commit(reserved.decision.reservation, 1).error().code, ErrorCode::kNotFound);
  // As exact as in an engine that was in memory all along.
  Engine other = *Engine::Make(At("store: memory"), {.clock = &clock_});
  std::ignore = other.Check({.user = "ann"});
  for (int i = 0; i < 3; ++i) {
    const Decision here = Check("ann");
    const Decision there = other.Check({.user = "ann"}).decision;
    EXPECT_EQ(here.retry_after, there.retry_after);
    EXPECT_EQ(here.reset_after, there.reset_after);
  }
  EXPECT_TRUE(Eventually([this] { return world_.open == 0; }));
}

TEST_F(MovingEngineTest, KeepsWhatItHasCountedInMemoryWhateverRedisSays) {
  engine_.emplace(*Engine::Make(At("store: memory"), {.clock = &clock_}));
  EXPECT_EQ(Check("ann").remaining, 1);
  ASSERT_TRUE(engine_->Apply(At("redis: { timeout: 10ms }")));
  EXPECT_EQ(Check("ann").remaining, 0);
}

TEST_F(MovingEngineTest, AsksAgainElsewhereForThoseWhoWait) {
  Engine& engine = Start(R"(
store: redis://x
rules: [{ name: places, key: user, limit: 1 concurrent lease 1h }]
)");
  ASSERT_TRUE(engine.Check({.user = "ann"}).decision.allowed);
  std::promise<Answer> told;
  engine.CheckThen({.user = "ann"}, {}, seconds(30),
                   [&](const Answer& answer, auto) { told.set_value(answer); });
  std::future<Answer> answer = told.get_future();
  EXPECT_EQ(answer.wait_for(milliseconds(50)), std::future_status::timeout);
  for (const std::string_view store : {"store: redis://y", "store: memory"}) {
    ASSERT_TRUE(engine.Apply(
        PolicyOf(std::string(store) +
                 "\nrules: [{ name: places, key: user, limit: 1 concurrent lease 1h }]")));
  }
  EXPECT_TRUE(answer.get().decision.allowed);
  EXPECT_TRUE(Eventually([this] { return world_.open == 0 && elsewhere_.open == 0; }));
}

TEST_F(MovingEngineTest, GivesBackWhatAWaiterBookedWhereItBookedIt) {
  Engine& engine = Start("store: redis://x\nrules: [{ name: r, key: user, limit: 1/min }]");
  ASSERT_TRUE(engine.Check({.user = "ann"}).decision.allowed);
  const WaitId wait = engine.CheckThen({.user = "ann"}, {}, minutes(1), [](const Answer&, auto) {});
  // Booked ahead: who comes next would have to wait for two minutes.
  ASSERT_TRUE(
      Eventually([&] { return engine.Peek({.user = "ann"}).decision.retry_after > minutes(1); }));
  ASSERT_TRUE(engine.Apply(PolicyOf("rules: [{ name: r, key: user, limit: 1/min }]")));
  EXPECT_TRUE(engine.Check({.user = "ann"}).decision.allowed);
  EXPECT_TRUE(engine.CancelWait(wait));
  Engine other =
      EngineParts::Make(PolicyOf("store: redis://x\nrules: [{ name: r, key: user, limit: 1/min }]"),
                        {.clock = &clock_}, std::make_unique<PlaceUnderTest>(world_));
  EXPECT_TRUE(
      Eventually([&] { return other.Peek({.user = "ann"}).decision.retry_after <= minutes(1); }));
  EXPECT_FALSE(engine.Check({.user = "ann"}).decision.allowed);
}

TEST_F(MovingEngineTest, EndsWhileAStoreThatItLeftIsStillAsked) {
  Engine& engine = Start();
  world_.Hold("*");
  engine.CheckThen({.user = "ann"}, {}, seconds(30), [](const Answer&, auto) {});
  ASSERT_TRUE(Eventually([this] { return world_.turns > 0; }));
  ASSERT_TRUE(engine.Apply(At("store: memory")));
  engine_.reset();
  EXPECT_EQ(world_.open, 0);
}

TEST_F(SharedEngineTest, TakesUpAnotherFleetSizeWhenAPolicyIsApplied) {
  Engine& engine = Start();
  ASSERT_TRUE(engine.Apply(PolicyOf("store: redis://x\nfleet_size: 7\nrules: []")));
  EXPECT_EQ(engine.Health().fleet_size, 7);
  EXPECT_TRUE(notices_.empty());
}

// --- Waiting ---

struct WaitResult {
  std::promise<Answer> told;
  std::future<Answer> future = told.get_future();
  Engine::WaitDone Done() {
    return [this](const Answer& answer, std::span<const RuleDecision>) { told.set_value(answer); };
  }
  bool IsTold() { return future.wait_for(seconds(0)) == std::future_status::ready; }
};

TEST_F(SharedEngineTest, WaitsWithoutHoldingUpWhoeverBegins) {
  Engine& engine = Start();
  world_.held = true;
  WaitResult ann;
  const WaitId id = engine.CheckThen({.user = "ann"}, {}, seconds(30), ann.Done());
  EXPECT_NE(id, WaitId{0});
  EXPECT_FALSE(ann.IsTold());
  // Even while it is being asked for.
  EXPECT_TRUE(engine.CancelWait(id));
  EXPECT_FALSE(ann.IsTold());
  world_.held = false;
}

TEST_F(SharedEngineTest, HoldsAWaitUntilItsTimeHasCome) {
  Engine& engine = Start("store: redis://x\nrules: [{ name: x, key: user, limit: 1/min }]");
  engine.Check({.user = "ann"});
  WaitResult ann;
  engine.CheckThen({.user = "ann"}, {}, minutes(1), ann.Done());
  while (clock_.Waiting() == 0 || world_.TakeSeen().empty()) std::this_thread::yield();
  EXPECT_FALSE(ann.IsTold());
  // Whoever comes too late for its patience is told at once.
  WaitResult late;
  engine.CheckThen({.user = "ann"}, {}, seconds(30), late.Done());
  EXPECT_FALSE(late.future.get().decision.allowed);
  while (clock_.Waiting() == 0) std::this_thread::yield();
  clock_.Advance(minutes(1));
  const Decision decision = ann.future.get().decision;
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.delay, Duration(0));
}

TEST_F(SharedEngineTest, GivesBackWhatACancelledWaitHadBooked) {
  Engine& engine = Start("store: redis://x\nrules: [{ name: x, key: user, limit: 1/min }]");
  engine.Check({.user = "ann"});
  world_.TakeSeen();
  WaitResult ann;
  const WaitId id = engine.CheckThen({.user = "ann"}, {}, minutes(1), ann.Done());
  while (engine.Peek({.user = "ann"}).decision.retry_after <= minutes(1)) std::this_thread::yield();
  EXPECT_TRUE(engine.CancelWait(id));
  while (engine.Peek({.user = "ann"}).decision.retry_after > minutes(1)) std::this_thread::yield();
  EXPECT_FALSE(ann.IsTold());
  bool unbooked = false;
  for (const auto& charge : world_.TakeSeen()) {
    unbooked |= charge.verb == Verb::kUnbook && charge.key == "user=ann" && charge.rule == "x";
  }
  EXPECT_TRUE(unbooked);
}

TEST_F(SharedEngineTest, ServesThoseWhoWaitForOneKeyInTheirOrder) {
  Engine& engine = Start(
      "store: redis://x\nmax_wait: 1h\n"
      "rules: [{ name: x, key: user, limit: 1/min, algorithm: sliding_log }]");
  engine.Check({.user = "ann"});
  std::mutex mutex;
  std::vector<int> order;
  for (int i = 0; i < 4; ++i) {
    engine.CheckThen({.user = "ann"}, {}, minutes(60),
                     [&, i](const Answer& answer, std::span<const RuleDecision>) {
                       const std::scoped_lock lock(mutex);
                       if (answer.decision.allowed) order.push_back(i);
                     });
  }
  const auto served = [&] {
    const std::scoped_lock lock(mutex);
    return order.size();
  };
  while (served() < 4) {
    // What was asked for before is answered when this is: nobody's patience runs out meanwhile.
    WaitResult witness;
    engine.CheckThen({.user = "witness"}, {}, Duration(0), witness.Done());
    witness.future.get();
    clock_.Advance(seconds(20));
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(SharedEngineTest, AsksOnceForOneWithoutPatience) {
  Engine& engine = Start(
      "store: redis://x\nmax_wait: 0s\nrules:\n"
      "  - { name: q, key: user, limit: 1/s burst 5, algorithm: leaky_bucket, queue: true }\n");
  WaitResult first;
  WaitResult second;
  engine.CheckThen({.user = "ann"}, {}, seconds(9), first.Done());
  engine.CheckThen({.user = "ann"}, {}, seconds(9), second.Done());
  EXPECT_EQ(first.future.get().decision.delay, Duration(0));
  const Decision told = second.future.get().decision;
  EXPECT_TRUE(told.allowed);
  EXPECT_EQ(told.delay, seconds(1));  // Told, not waited for.
}

TEST_F(SharedEngineTest, WakesWaitersWhenAPlaceIsGivenBackOnALoop) {
  Engine& engine = Start("store: redis://x\nrules: [{ name: x, key: user, limit: 1 concurrent }]");
  const Answer holder = engine.Check({.user = "ann"});
  WaitResult ann;
  engine.CheckThen({.user = "ann"}, {}, seconds(20), ann.Done());
  while (clock_.Waiting() == 0 || world_.TakeSeen().empty()) std::this_thread::yield();
  EXPECT_FALSE(ann.IsTold());
  EXPECT_TRUE(engine.Release(holder.decision.reservation).has_value());
  EXPECT_TRUE(ann.future.get().decision.allowed);
}

TEST_F(SharedEngineTest, TellsThoseWhoStillWaitWhenItEnds) {
  Start("store: redis://x\nrules: [{ name: x, key: user, limit: 1 concurrent }]");
  engine_->Check({.user = "ann"});
  WaitResult ann;
  engine_->CheckThen({.user = "ann"}, {}, seconds(20), ann.Done());
  engine_.reset();
  EXPECT_EQ(ann.future.get().decision.reason, Reason::kOverload);
}

}  // namespace
}  // namespace weir
