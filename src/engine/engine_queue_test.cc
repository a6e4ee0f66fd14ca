// threads
// Requests whose answers are held while a rule queues them, and that wait for nothing else: for
// those who cannot be told of a delay.
#include <future>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "engine/shared_place_under_test.h"
#include "store/wait_answers.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr Request kAnnInQueue{.ip = "192.0.2.1", .user = "ann", .path = "/shaped"};

// One every 100 ms, and five in the queue.
const std::string kShape =
    "{ name: shape, match: { path: /shaped }, key: user, limit: 10/s burst 5, "
    "algorithm: leaky_bucket, queue: true }";

std::string Rules(const std::string& more = "") { return "rules: [ " + kShape + more + " ]"; }

// The same of both stores.
class EngineQueue : public testing::TestWithParam<bool> {
 protected:
  void Start(const std::string& yaml, std::size_t max_waiters = 10'000) {
    const EngineOptions options{.clock = &clock_, .max_waiters = max_waiters};
    if (GetParam()) {
      engine_.emplace(EngineParts::Make(PolicyOf("store: redis://x\n" + yaml), options,
                                        std::make_unique<PlaceUnderTest>(world_)));
    } else {
      engine_.emplace(*Engine::Make(PolicyOf(yaml), options));
    }
  }
  WaitId Ask(const std::string& name, Duration hold, const Request& request = kAnnInQueue) {
    return engine_->CheckThen(
        request, {}, hold,
        [note = answers_.For(name)](const Answer& answer, std::span<const RuleDecision>) {
          note(answer.decision);
        },
        WaitFor::kQueues);
  }
  // Returns when those who asked before are held: answers of a store are taken in in their order.
  void AwaitHeld() {
    std::promise<void> told;
    engine_->CheckThen({.user = "witness", .path = "/shaped"}, {}, Duration(0),
                       [&](const Answer&, std::span<const RuleDecision>) { told.set_value(); });
    told.get_future().wait();
    AwaitSleep(clock_);
  }

  ManualClock clock_;
  SharedWorld world_{clock_.Read()};
  WaitAnswers answers_;
  std::optional<Engine> engine_;
};

TEST_P(EngineQueue, IsHeldUntilItsTurn) {
  Start(Rules());
  Ask("first", seconds(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  Ask("second", seconds(1));
  AwaitHeld();
  AdvanceAndServe(clock_, milliseconds(99));
  EXPECT_EQ(answers_.size(), 1U);
  AdvanceAndServe(clock_, milliseconds(1));
  EXPECT_TRUE(answers_.At(1).allowed);
  EXPECT_EQ(answers_.At(1).delay, Duration(0));
}

TEST_P(EngineQueue, IsDeniedAtOnceIfItWouldBeHeldForTooLong) {
  Start(Rules());
  EXPECT_TRUE(engine_->Check(kAnnInQueue).decision.allowed);
  EXPECT_TRUE(engine_->Check(kAnnInQueue).decision.allowed);
  Ask("third", milliseconds(150));
  const Decision denied = answers_.At(0);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.retry_after, milliseconds(50));
  // And took no place.
  EXPECT_EQ(engine_->Check(kAnnInQueue).decision.delay, milliseconds(200));
}

TEST_P(EngineQueue, IsDeniedWithoutTimeToHoldUnlessItNeedNotWait) {
  Start(Rules());
  Ask("first", Duration(0));
  EXPECT_TRUE(answers_.At(0).allowed);
  Ask("second", Duration(0));
  EXPECT_FALSE(answers_.At(1).allowed);
  EXPECT_EQ(answers_.At(1).reason, Reason::kLimited);
}

TEST_P(EngineQueue, DoesNotWaitForRoomElsewhere) {
  for (const char* rule : {"limit: 1/s burst 1", "limit: 1/s, algorithm: fixed_window",
                           "limit: 1 concurrent lease 30s"}) {
    Start(Rules(", { name: other, key: user, " + std::string(rule) + " }"));
    const std::size_t before = answers_.size();
    const Request somebody{.user = rule, .path = "/shaped"};  // Who is new to all stores.
    Ask("first", seconds(10), somebody);
    EXPECT_TRUE(answers_.At(before).allowed) << rule;
    Ask("second", seconds(10), somebody);
    const Decision denied = answers_.At(before + 1);
    EXPECT_FALSE(denied.allowed) << rule;
    EXPECT_EQ(denied.rule, "other");
    EXPECT_EQ(engine_->Stats().store.waiters, 0U);
    // Nor does it take a place in the queue.
    clock_.Advance(seconds(30));
    EXPECT_EQ(engine_->Check(somebody).decision.delay, Duration(0)) << rule;
  }
}

TEST_P(EngineQueue, GivesItsPlaceBackWhenNobodyWaitsForTheAnswer) {
  Start(Rules());
  EXPECT_TRUE(engine_->Check(kAnnInQueue).decision.allowed);
  const WaitId second = Ask("second", seconds(1));
  AwaitHeld();
  EXPECT_TRUE(engine_->CancelWait(second));
  while (engine_->Peek(kAnnInQueue).decision.delay != milliseconds(100)) std::this_thread::yield();
  EXPECT_EQ(answers_.size(), 0U);
}

TEST_P(EngineQueue, IsRefusedIfTooManyWait) {
  Start(Rules(), 1);
  EXPECT_TRUE(engine_->Check(kAnnInQueue).decision.allowed);
  Ask("second", seconds(1));
  Ask("third", seconds(1));
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
}

TEST_P(EngineQueue, AnswersListsAndRequestsWithoutRules) {
  Start("deny: [ { user: mallory } ]\nallow: [ { user: root } ]\n" + Rules());
  Ask("denied", seconds(1), {.user = "mallory", .path = "/shaped"});
  Ask("allowed", seconds(1), {.user = "root", .path = "/shaped"});
  Ask("unruled", seconds(1), {.user = "ann", .path = "/"});
  EXPECT_EQ(answers_.At(0).reason, Reason::kDenyList);
  EXPECT_EQ(answers_.At(1).reason, Reason::kAllowList);
  EXPECT_EQ(answers_.At(2).reason, Reason::kNoRule);
}

INSTANTIATE_TEST_SUITE_P(Stores, EngineQueue, testing::Values(false, true),
                         [](const auto& its) { return its.param ? "Shared" : "Memory"; });

// Of those that come together each is asked about by itself: none stands behind another.
TEST(EngineQueueShared, DoesNotAskOneAfterTheOther) {
  ManualClock clock;
  SharedWorld world(clock.Read());
  WaitAnswers answers;
  Engine engine = EngineParts::Make(PolicyOf("store: redis://x\n" + Rules()), {.clock = &clock},
                                    std::make_unique<PlaceUnderTest>(world));
  world.Hold("user=ann");
  for (int i = 0; i < 3; ++i) {
    engine.CheckThen(
        kAnnInQueue, {}, seconds(1),
        [note = answers.For("")](const Answer& answer, std::span<const RuleDecision>) {
          note(answer.decision);
        },
        WaitFor::kQueues);
  }
  int asked = 0;
  while (asked < 3) asked += static_cast<int>(world.TakeSeen().size());
  world.Hold("");
  EXPECT_TRUE(answers.At(0).allowed);
}

TEST(EngineMayQueue, IsTrueOfWhatAQueueMatches) {
  const EngineUnderTest under_test(Rules(", { name: other, key: ip, limit: 5/s }"));
  EXPECT_TRUE(under_test.engine.MayQueue(kAnnInQueue));
  EXPECT_FALSE(under_test.engine.MayQueue({.user = "ann", .path = "/"}));
}

TEST(EngineMayQueue, KnowsTheTierOfThoseWhoHaveNone) {
  const EngineUnderTest under_test(
      "tiers: { free: { a: 10/s burst 5 }, pro: { a: 20/s burst 5 } }\n"
      "identity: { tier: { default: free } }\n"
      "rules: [ { name: shape, match: { tier: free }, key: user, limit: { tier: a }, "
      "algorithm: leaky_bucket, queue: true } ]");
  EXPECT_TRUE(under_test.engine.MayQueue({.user = "ann"}));
  EXPECT_FALSE(under_test.engine.MayQueue({.user = "ann", .tier = "pro"}));
}

TEST(EngineMayQueue, IsFalseWhereNoRuleDoesThatHasASay) {
  EngineUnderTest under_test("rules: [ { name: other, key: ip, limit: 5/s } ]");
  EXPECT_FALSE(under_test.engine.MayQueue(kAnnInQueue));
  for (const char* mode : {"shadow", "off"}) {
    std::string rule = kShape;
    rule.insert(rule.size() - 2, ", mode: " + std::string(mode));
    ASSERT_TRUE(under_test.engine.Apply(PolicyOf("rules: [ " + rule + " ]")));
    EXPECT_FALSE(under_test.engine.MayQueue(kAnnInQueue)) << mode;
  }
  ASSERT_TRUE(under_test.engine.Apply(PolicyOf(Rules())));
  EXPECT_TRUE(under_test.engine.MayQueue(kAnnInQueue));
}

}  // namespace
}  // namespace weir
