// threads
// Requests that are ready to wait for their turn, under the rules of a policy.
#include <array>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_under_test.h"
#include "store/wait_answers.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr Request kAnn{.ip = "192.0.2.1", .user = "ann", .path = "/"};
constexpr Request kBob{.ip = "192.0.2.2", .user = "bob", .path = "/"};

constexpr std::string_view kBucket =
    "rules: [ { name: steady, key: user, limit: 1/s burst 1, message: Slow down } ]";
constexpr std::string_view kQueue =
    "rules: [ { name: shape, key: user, limit: 50/s burst 1000, algorithm: leaky_bucket, "
    "queue: true } ]";
constexpr std::string_view kWindow =
    "rules: [ { name: window, key: user, limit: 1/10s, algorithm: fixed_window } ]";
constexpr std::string_view kOnePlacePerUser =
    "rules: [ { name: places, key: user, limit: 1 concurrent lease 30s } ]";

// Answers with everything they bring, besides the decision.
class EngineWait : public testing::Test {
 protected:
  void Start(std::string_view yaml, std::size_t max_waiters = 10'000) {
    under_test_.emplace(PolicyOf(yaml), 65'536, max_waiters);
  }
  Engine& engine() { return under_test_->engine; }
  ManualClock& clock() { return under_test_->clock; }
  WaitId Wait(const std::string& name, const Request& request, Duration patience,
              std::int64_t cost = 1) {
    return engine().CheckThen(request, {.cost = cost}, patience,
                              [note = answers_.For(name), this](
                                  const Answer& answer, std::span<const RuleDecision> each) {
                                {
                                  const std::scoped_lock lock(mutex_);
                                  last_ = answer;
                                  each_.assign(each.begin(), each.end());
                                }
                                note(answer.decision);
                              });
  }
  void Serve(Duration step) { AdvanceAndServe(clock(), step); }

  std::mutex mutex_;
  Answer last_;
  std::vector<RuleDecision> each_;
  WaitAnswers answers_;
  std::optional<EngineUnderTest> under_test_;
};

TEST_F(EngineWait, AnswersAtOnceWhatNeedNotWait) {
  Start(kBucket);
  EXPECT_EQ(Wait("a", kAnn, seconds(5)), WaitId{0});
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(last_.rules, 1U);
  ASSERT_EQ(each_.size(), 1U);
  EXPECT_EQ(each_[0].decision.rule, "steady");
  EXPECT_EQ(each_[0].window, seconds(1));
  EXPECT_EQ(engine().Stats().store.waiters, 0U);
}

TEST_F(EngineWait, BooksABucketAheadAndHoldsTheAnswer) {
  Start(kBucket);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  EXPECT_NE(Wait("a", kAnn, seconds(5)), WaitId{0});
  Wait("b", kAnn, seconds(5));
  EXPECT_EQ(engine().Stats().store.waiters, 2U);
  Serve(seconds(1) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock().Advance(Duration(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("a"));
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.At(0).delay, Duration(0));
  Serve(seconds(1));
  EXPECT_THAT(answers_.Names(2), ElementsAre("a", "b"));
  EXPECT_EQ(each_.at(0).decision.delay, Duration(0));
}

TEST_F(EngineWait, RefusesABucketAtOnceThatIsBookedForLongerThanThePatience) {
  Start(kBucket);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, milliseconds(900));
  const Decision denied = answers_.At(0);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.retry_after, milliseconds(100));
  EXPECT_EQ(last_.message, "Slow down");
}

TEST_F(EngineWait, IsACheckWithoutPatience) {
  Start(kQueue);
  Wait("first", kAnn, Duration(0));
  Wait("second", kAnn, Duration(0));
  Wait("third", kAnn, seconds(-1));
  EXPECT_EQ(answers_.At(0).delay, Duration(0));
  EXPECT_EQ(answers_.At(1).delay, milliseconds(20));
  EXPECT_EQ(answers_.At(2).delay, milliseconds(40));
  EXPECT_EQ(each_.size(), 1U);
}

TEST_F(EngineWait, SpreadsOutWhatComesAtOnceToAQueueInOrder) {
  Start(kQueue);
  constexpr int kRequests = 500;
  std::vector<std::pair<int, SteadyTime>> served;
  for (int i = 0; i < kRequests; ++i) {
    engine().CheckThen(kAnn, {}, seconds(30),
                       [&, i](const Answer& answer, std::span<const RuleDecision>) {
                         EXPECT_TRUE(answer.decision.allowed);
                         EXPECT_EQ(answer.decision.delay, Duration(0));
                         const std::scoped_lock lock(mutex_);
                         served.emplace_back(i, clock().Read().steady);
                       });
  }
  ASSERT_EQ(served.size(), 1U);
  const SteadyTime start = served[0].second;
  for (int i = 1; i < kRequests; ++i) Serve(milliseconds(20));
  ASSERT_EQ(served.size(), static_cast<std::size_t>(kRequests));
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_EQ(served[static_cast<std::size_t>(i)].first, i);
    EXPECT_EQ(served[static_cast<std::size_t>(i)].second - start, milliseconds(20) * i);
  }
}

TEST_F(EngineWait, IsDeniedByAQueueWhoseDelayIsLongerThanThePatience) {
  Start(kQueue);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, milliseconds(59));
  EXPECT_FALSE(answers_.At(0).allowed);
  EXPECT_NE(Wait("b", kAnn, milliseconds(60)), WaitId{0});
}

TEST_F(EngineWait, ServesThoseOfOneKeyInTheOrderInWhichTheyCame) {
  Start(kWindow);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  for (const char* name : {"a", "b", "c"}) Wait(name, kAnn, seconds(60));
  Wait("other", kBob, seconds(60));
  EXPECT_THAT(answers_.Names(1), ElementsAre("other"));
  for (int i = 0; i < 3; ++i) Serve(seconds(10));
  EXPECT_THAT(answers_.Names(4), ElementsAre("other", "a", "b", "c"));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(answers_.At(i).allowed);
}

TEST_F(EngineWait, EndsWithADenialWhenThePatienceIsOver) {
  Start(kWindow);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, seconds(4));
  Serve(seconds(4) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock().Advance(Duration(1));
  const Decision denied = answers_.At(0);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.rule, "window");
  EXPECT_EQ(denied.retry_after, seconds(6));
  EXPECT_EQ(each_.size(), 1U);
}

TEST_F(EngineWait, LastsNoLongerThanThePolicyAllows) {
  Start(
      "max_wait: 2s\n"
      "rules: [ { name: window, key: user, limit: 1/10s, algorithm: fixed_window } ]");
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, Duration::max());
  AwaitSleep(clock());
  clock().Advance(seconds(2));
  EXPECT_FALSE(answers_.At(0).allowed);
}

TEST_F(EngineWait, IsOverWhenAPlaceIsReleased) {
  Start(kOnePlacePerUser);
  const Decision first = under_test_->Check(kAnn);
  Wait("a", kAnn, seconds(20));
  Wait("b", kAnn, seconds(20));
  AwaitSleep(clock());
  EXPECT_TRUE(engine().Release(first.reservation).has_value());
  EXPECT_THAT(answers_.Names(1), ElementsAre("a"));
  const Decision second = answers_.At(0);
  EXPECT_TRUE(second.allowed);
  EXPECT_NE(second.reservation, ReservationId::kNone);
  EXPECT_TRUE(engine().Release(second.reservation).has_value());
  EXPECT_THAT(answers_.Names(2), ElementsAre("a", "b"));
}

TEST_F(EngineWait, IsOverWhenSomethingIsGivenBackOrTheKeyIsReset) {
  Start(kWindow);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, seconds(5));
  AwaitSleep(clock());
  engine().Refund(kAnn);
  EXPECT_TRUE(answers_.At(0).allowed);
  Wait("b", kAnn, seconds(5));
  AwaitSleep(clock());
  engine().Reset(kAnn);
  EXPECT_TRUE(answers_.At(1).allowed);
}

TEST_F(EngineWait, IsOverWhenACommitIsBelowItsEstimate) {
  Start("rules: [ { name: window, key: user, limit: 10/10s, algorithm: fixed_window } ]");
  const Answer reserved = engine().Reserve(kAnn, {.cost = 10});
  Wait("a", kAnn, seconds(5));
  AwaitSleep(clock());
  EXPECT_TRUE(engine().Commit(reserved.decision.reservation, 3).has_value());
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(EngineWait, BooksNothingUntilAllRulesPass) {
  Start(R"(
rules:
  - { name: steady, key: user, limit: 1/s burst 10 }
  - { name: window, key: ip, limit: 1/10s, algorithm: fixed_window }
)");
  EXPECT_TRUE(under_test_->Allows(kAnn));
  EXPECT_EQ(under_test_->Remaining("steady", kAnn), 9);
  const WaitId id = Wait("a", kAnn, seconds(20));
  AwaitSleep(clock());
  EXPECT_EQ(under_test_->Remaining("steady", kAnn), 9);
  EXPECT_TRUE(engine().CancelWait(id));
  EXPECT_EQ(under_test_->Remaining("steady", kAnn), 9);
}

TEST_F(EngineWait, TakesNoPlaceWhileABucketFills) {
  Start(R"(
rules:
  - { name: places, key: user, limit: 1 concurrent lease 30s }
  - { name: steady, key: ip, limit: 1/s burst 1 }
)");
  const Request elsewhere{.ip = kAnn.ip, .user = "bob"};
  EXPECT_TRUE(under_test_->Allows(elsewhere));
  Wait("a", kAnn, seconds(20));
  AwaitSleep(clock());
  EXPECT_EQ(under_test_->Remaining("places", kAnn), 1);
  Serve(seconds(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(under_test_->Remaining("places", kAnn), 0);
}

TEST_F(EngineWait, IsCancelledForGoodAndGivesBackWhatItBookedLast) {
  Start(kBucket);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  const WaitId first = Wait("a", kAnn, seconds(5));
  const WaitId last = Wait("b", kAnn, seconds(5));
  EXPECT_TRUE(engine().CancelWait(last));
  EXPECT_FALSE(engine().CancelWait(last));
  Wait("c", kAnn, seconds(5));  // In the place of b.
  EXPECT_TRUE(engine().CancelWait(first));
  Wait("d", kAnn, seconds(5));  // Behind c: the place of a is lost.
  Serve(seconds(2));
  EXPECT_THAT(answers_.Names(1), ElementsAre("c"));
  Serve(seconds(1));
  EXPECT_THAT(answers_.Names(2), ElementsAre("c", "d"));
  EXPECT_FALSE(engine().CancelWait(WaitId{0}));
}

TEST_F(EngineWait, GivesBackABookingWhosePolicyIsGone) {
  Start(kBucket);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  const WaitId id = Wait("a", kAnn, seconds(5));
  under_test_->Apply(std::string("max_wait: 60s\n") + std::string(kBucket));
  EXPECT_TRUE(engine().CancelWait(id));
  Wait("b", kAnn, seconds(1));
  AwaitSleep(clock());
  clock().Advance(seconds(1));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(EngineWait, IsRefusedWhenTooManyWaitAndTakesNothing) {
  Start(kBucket, /*max_waiters=*/1);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, seconds(5));
  Wait("b", kAnn, seconds(5));
  const Decision refused = answers_.At(0);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.reason, Reason::kOverload);
  EXPECT_EQ(refused.retry_after, seconds(2));
  EXPECT_EQ(refused.delay, Duration(0));
  Wait("c", kBob, seconds(5));  // Need not wait.
  EXPECT_TRUE(answers_.At(1).allowed);
  Serve(seconds(1));
  EXPECT_THAT(answers_.Names(3), ElementsAre("b", "c", "a"));
  Serve(seconds(1));
  EXPECT_TRUE(under_test_->Allows(kAnn));  // Nothing was booked for b.
}

TEST_F(EngineWait, IsRefusedWhenTooManyStandInLine) {
  Start(kWindow, /*max_waiters=*/1);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, seconds(30));
  Wait("b", kAnn, seconds(30));
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
  EXPECT_FALSE(answers_.At(0).allowed);
}

TEST_F(EngineWait, GoesOnUnderTheNextPolicy) {
  Start(kOnePlacePerUser);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, seconds(9));
  AwaitSleep(clock());
  under_test_->Apply("rules: [ { name: places, key: user, limit: 2 concurrent lease 30s } ]");
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.At(0).limit, 2);
}

TEST_F(EngineWait, EndsWhenTheNextPolicyHasNoRuleForIt) {
  Start(kOnePlacePerUser);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("a", kAnn, seconds(9));
  AwaitSleep(clock());
  under_test_->Apply("rules: [ { name: other, match: { path: /x }, key: ip, limit: 1/s } ]");
  EXPECT_EQ(answers_.At(0).reason, Reason::kNoRule);
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(EngineWait, StandsInTheLineOfARuleThatCameLater) {
  Start(kWindow);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  under_test_->Apply(kOnePlacePerUser);
  const Decision place = under_test_->Check(kAnn);
  under_test_->Apply(kWindow);
  Wait("a", kAnn, seconds(25));
  AwaitSleep(clock());
  under_test_->Apply(kOnePlacePerUser);
  AwaitSleep(clock());
  EXPECT_EQ(answers_.size(), 0U);
  EXPECT_TRUE(engine().Release(place.reservation).has_value());
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(EngineWait, LeavesShadowsWithoutASay) {
  Start(R"(
rules:
  - { name: trial, key: user, limit: 1/h, algorithm: fixed_window, mode: shadow }
  - { name: steady, key: user, limit: 100/s }
)");
  Wait("a", kAnn, seconds(5));
  Wait("b", kAnn, seconds(5));
  EXPECT_TRUE(answers_.At(1).allowed);
  ASSERT_EQ(each_.size(), 2U);
  EXPECT_TRUE(each_[0].shadow);
  EXPECT_FALSE(each_[0].decision.allowed);
}

TEST_F(EngineWait, AnswersListsAtOnce) {
  Start("deny: { ip: 192.0.2.1 }\nrules: [ { name: all, key: ip, limit: 1/s } ]");
  Wait("a", kAnn, seconds(5));
  EXPECT_EQ(answers_.At(0).reason, Reason::kDenyList);
  EXPECT_TRUE(each_.empty());
}

TEST_F(EngineWait, StopsAtOnceWhereWaitingDoesNotHelp) {
  Start(kWindow);
  Wait("a", kAnn, seconds(5), /*cost=*/2);
  EXPECT_EQ(answers_.At(0).reason, Reason::kNeverFits);
  Wait("b", kAnn, seconds(5), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(answers_.At(1).cost, kMaxCount);
}

TEST_F(EngineWait, CountsTowardsABanOncePerRequest) {
  Start(R"(
rules:
  - { name: window, key: user, limit: 1/10s, algorithm: fixed_window,
      block: { after: 3 denials in 10min, for: 1h } }
)");
  EXPECT_TRUE(under_test_->Allows(kAnn));
  for (std::size_t i = 0; i < 2; ++i) {
    Wait("a", kAnn, seconds(2));
    AwaitSleep(clock());
    for (int nudges = 0; nudges < 5; ++nudges) {
      engine().Refund(kAnn, {.cost = 0});
      AwaitSleep(clock());
    }
    clock().Advance(seconds(2));
    EXPECT_EQ(answers_.At(i).reason, Reason::kLimited);
    AwaitSleep(clock());
  }
  EXPECT_EQ(under_test_->Peek(kAnn).reason, Reason::kLimited);
  Wait("b", kAnn, seconds(2));
  AwaitSleep(clock());
  clock().Advance(seconds(2));
  EXPECT_EQ(answers_.At(2).reason, Reason::kBanned);
  EXPECT_EQ(answers_.At(2).retry_after, hours(1));
  Wait("c", kAnn, seconds(60));  // One who is banned does not wait.
  EXPECT_EQ(answers_.At(3).reason, Reason::kBanned);
}

TEST_F(EngineWait, IsToldOverloadWhenTheEngineEnds) {
  Start(kBucket);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("booked", kAnn, seconds(5));
  Start(kWindow);  // Ends the other first.
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  Wait("in line", kAnn, seconds(5));
  under_test_.reset();
  EXPECT_EQ(answers_.At(1).reason, Reason::kOverload);
  EXPECT_FALSE(answers_.At(1).allowed);
  EXPECT_TRUE(each_.empty());
}

TEST_F(EngineWait, LetsACallbackUseTheEngine) {
  Start(kBucket);
  EXPECT_TRUE(under_test_->Allows(kAnn));
  std::promise<std::uint64_t> version;
  engine().CheckThen(kAnn, {}, seconds(5), [&](const Answer&, std::span<const RuleDecision>) {
    version.set_value(engine().Apply(PolicyOf(kWindow))->version);
  });
  AwaitSleep(clock());
  clock().Advance(seconds(1));
  EXPECT_EQ(version.get_future().get(), 2U);
  AwaitSleep(clock());
}

}  // namespace
}  // namespace weir
