// threads
// Waiting through the embedded API: booked ahead on buckets, in line on everything else.
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/limiter.h>

#include "store/memory/store_under_test.h"
#include "store/wait_answers.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Waits : public testing::Test {
 protected:
  void Make(const Limit& limit, LimiterOptions options = {}) {
    options.clock = &clock_;
    limiter_ = std::make_unique<Limiter>(*Limiter::Make(limit, options));
  }
  void Make(std::string_view limit, const LimitSpec& spec = {}) { Make(LimitOf(limit, spec)); }

  // Begins a wait whose answer arrives in answers_ under `name`.
  WaitId Begin(const std::string& name, Duration patience, Ask ask = {}) {
    return limiter_->WaitThen("ann", patience, answers_.For(name), ask).value();
  }

  ManualClock clock_;
  WaitAnswers answers_;
  std::unique_ptr<Limiter> limiter_;
};

// --- What holds whatever is waited for ---

class EveryWait : public Waits, public testing::WithParamInterface<AlgorithmCase> {
 protected:
  void SetUp() override {
    Make(GetParam().limit);
    Fill();
  }
  // So far that the next has to wait; a queue makes everybody wait but the first.
  void Fill() {
    for (int i = 0; i < (is_queue() ? 3 : 10); ++i) ASSERT_TRUE(limiter_->Check("ann").allowed);
  }
  bool is_queue() const { return GetParam().limit.spec().queue; }
};

TEST_P(EveryWait, PassesAtOnceWhenThereIsNothingToWaitFor) {
  const Result<Decision> decision = limiter_->Wait("bob", seconds(5));
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->allowed);
  EXPECT_EQ(decision->delay, Duration(0));
  EXPECT_EQ(limiter_->Peek("bob")->remaining, is_queue() ? 10 : 9);
}

TEST_P(EveryWait, AnswersFromTheCallingThreadWhenThereIsNothingToWaitFor) {
  std::thread::id answered;
  ASSERT_TRUE(limiter_->WaitThen("bob", seconds(5),
                                 [&](const Decision&) { answered = std::this_thread::get_id(); }));
  EXPECT_EQ(answered, std::this_thread::get_id());
}

TEST_P(EveryWait, BlocksUntilTheRequestPasses) {
  const Duration retry_after = limiter_->Peek("ann")->retry_after;
  auto answer =
      std::async(std::launch::async, [&] { return limiter_->Wait("ann", seconds(30)).value(); });
  while (limiter_->Stats().waiters == 0) std::this_thread::yield();
  AdvanceAndServe(clock_, is_queue() ? seconds(3) : retry_after);
  const Decision decision = answer.get();
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kOk);
  EXPECT_EQ(decision.delay, Duration(0));
  EXPECT_EQ(limiter_->Stats().waiters, 0U);
}

TEST_P(EveryWait, RefusesWithoutPatience) {
  const Result<Decision> decision = limiter_->Wait("ann", Duration(0));
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->allowed);
  EXPECT_EQ(decision->reason, Reason::kLimited);
  EXPECT_GT(decision->retry_after, Duration(0));
}

TEST_P(EveryWait, RefusesAtOnceWhatNeverFits) {
  const Result<Decision> decision = limiter_->Wait("bob", seconds(5), {.cost = 12});
  EXPECT_EQ(decision->reason, Reason::kNeverFits);
}

TEST_P(EveryWait, RefusesPatienceOutOfRangeAndChangesNothing) {
  for (const Duration patience : {Duration(-1), seconds(60) + Duration(1), kNever}) {
    bool called = false;
    const auto refused =
        limiter_->WaitThen("bob", patience, [&](const Decision&) { called = true; });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("patience:"), HasSubstr("0s to 1min")));
    EXPECT_FALSE(called);
  }
  EXPECT_EQ(limiter_->Peek("bob")->remaining, 10);
}

TEST_P(EveryWait, AnswersOverloadToThoseStillWaitingWhenTheLimiterEnds) {
  Begin("first", seconds(30));
  Begin("second", seconds(31));
  ASSERT_EQ(limiter_->Stats().waiters, 2U);
  auto blocked =
      std::async(std::launch::async, [&] { return limiter_->Wait("ann", seconds(32)).value(); });
  while (limiter_->Stats().waiters < 3) std::this_thread::yield();
  limiter_.reset();
  EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
  EXPECT_EQ(blocked.get().reason, Reason::kOverload);
}

TEST_P(EveryWait, BeyondTheCapIsAnOverloadAndTakesNothing) {
  Make(GetParam().limit, {.max_waiters = 1});
  Fill();
  const WaitId first = Begin("first", seconds(30));
  const Decision before = *limiter_->Peek("ann");
  Begin("second", seconds(30));
  EXPECT_THAT(answers_.Names(1), ElementsAre("second"));
  EXPECT_FALSE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
  EXPECT_GT(answers_.At(0).retry_after, Duration(0));
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, before.reset_after);
  EXPECT_TRUE(limiter_->CancelWait(first));
  Begin("third", seconds(30));
  EXPECT_EQ(limiter_->Stats().waiters, 1U);
}

TEST_P(EveryWait, IsNotAnsweredOnceCancelled) {
  const WaitId id = Begin("never", seconds(30));
  EXPECT_TRUE(limiter_->CancelWait(id));
  EXPECT_FALSE(limiter_->CancelWait(id));
  EXPECT_FALSE(limiter_->CancelWait(WaitId{0}));
  AdvanceAndServe(clock_, seconds(60));
  EXPECT_EQ(answers_.size(), 0U);
  EXPECT_EQ(limiter_->Peek("ann")->remaining, 10);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryWait, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

TEST_F(Waits, NeedSomethingToCall) {
  Make("1/s burst 1");
  const Result<WaitId> refused = limiter_->WaitThen("ann", seconds(5), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("done:"));
  EXPECT_EQ(limiter_->Peek("ann")->remaining, 1);
}

TEST_F(Waits, AreRefusedInsideACallbackWhereTheyWouldNeverEnd) {
  Make("1/s burst 1");
  limiter_->Check("ann");
  auto refused = std::make_shared<std::promise<Result<Decision>>>();
  ASSERT_TRUE(limiter_->WaitThen("ann", seconds(5), [&, refused](const Decision&) {
    EXPECT_FALSE(limiter_->AcquireWithin("ann", seconds(5)));
    EXPECT_TRUE(limiter_->WaitThen("ann", seconds(5), answers_.For("again")));
    refused->set_value(limiter_->Wait("ann", seconds(5)));
  }));
  AdvanceAndServe(clock_, seconds(1));
  const Result<Decision> result = refused->get_future().get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  // A callback that came at once is on a thread that may wait.
  ASSERT_TRUE(limiter_->WaitThen(
      "bob", seconds(5), [&](const Decision&) { EXPECT_TRUE(limiter_->Wait("cat", seconds(5))); }));
}

// --- Buckets: booked ahead ---

TEST_F(Waits, OnABucketAreServedInTheOrderTheyCame) {
  Make("1/s burst 1");
  limiter_->Check("ann");
  for (const char* name : {"a", "b", "c"}) Begin(name, seconds(10));
  for (std::size_t served = 0; served < 3; ++served) {
    AdvanceAndServe(clock_, seconds(1) - Duration(1));
    EXPECT_EQ(answers_.size(), served);
    clock_.Advance(Duration(1));
    EXPECT_TRUE(answers_.At(served).allowed);
  }
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
}

TEST_F(Waits, OnABucketAreRefusedAtOnceWhenPatienceIsTooShort) {
  Make("1/s burst 1");
  limiter_->Check("ann");
  Begin("waits", seconds(1));
  Begin("refused", seconds(2) - Duration(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("refused"));
  EXPECT_EQ(answers_.At(0).reason, Reason::kLimited);
  EXPECT_EQ(answers_.At(0).retry_after, Duration(1));
  Begin("waits as well", seconds(2));
  EXPECT_EQ(limiter_->Stats().waiters, 2U);
}

TEST_F(Waits, OnABucketTakeTheirPlaceFromThoseWhoDoNotWait) {
  Make("1/s burst 1");
  limiter_->Check("ann");
  Begin("waits", seconds(10));
  clock_.Advance(seconds(1));
  EXPECT_FALSE(limiter_->Check("ann").allowed);
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(Waits, OnABucketGiveTheirPlaceBackOnlyIfTheyAreTheLast) {
  Make("1/s burst 1");
  limiter_->Check("ann");
  const WaitId first = Begin("first", seconds(10));
  const WaitId last = Begin("last", seconds(10));
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, seconds(3));
  EXPECT_TRUE(limiter_->CancelWait(first));
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, seconds(3));
  EXPECT_TRUE(limiter_->CancelWait(last));
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, seconds(2));
}

TEST_F(Waits, OnABucketSpendTheirCost) {
  Make("1/s burst 5");
  limiter_->Check("ann", Ask{.cost = 5}).value();
  Begin("three", seconds(10), {.cost = 3});
  Begin("two", seconds(10), {.cost = 2});
  AdvanceAndServe(clock_, seconds(3));
  EXPECT_THAT(answers_.Names(1), ElementsAre("three"));
  AdvanceAndServe(clock_, seconds(2));
  EXPECT_THAT(answers_.Names(2), ElementsAre("three", "two"));
}

TEST_F(Waits, OnAnOverdraftGiveBackWhatTheyWereChargedRatherThanWhatTheyAskedFor) {
  Make(LimitOf("1/s burst 5", {.overdraft = true}), {.max_waiters = 1});
  limiter_->Check("ann", Ask{.cost = 5}).value();
  const WaitId id = Begin("waits", seconds(10), {.cost = 100});  // Of which debt takes 15.
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, seconds(20));
  Begin("one too many", seconds(60), {.cost = 100});
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, seconds(20));
  EXPECT_TRUE(limiter_->CancelWait(id));
  EXPECT_EQ(limiter_->Peek("ann")->reset_after, seconds(5));
}

TEST_F(Waits, OnABucketBookNothingWhenTooManyWait) {
  limiter_ = std::make_unique<Limiter>(
      *Limiter::Make({{"slow", LimitOf("1/s burst 1")}, {"other", LimitOf("1/s")}},
                     {.clock = &clock_, .max_waiters = 0}));
  limiter_->Check({"ann", kSkip}).value();
  const std::size_t entries = limiter_->Stats().entries;
  EXPECT_EQ(limiter_->Wait({"ann", "bob"}, seconds(5))->reason, Reason::kOverload);
  EXPECT_EQ(limiter_->Stats().entries, entries);
  EXPECT_TRUE(limiter_->Wait({kSkip, "bob"}, seconds(5))->allowed);
}

TEST_F(Waits, OnAQueueLastUntilTheirTurn) {
  Make("1/s burst 5", {.algorithm = Algorithm::kLeakyBucket, .queue = true});
  EXPECT_TRUE(limiter_->Wait("ann", Duration(0))->allowed);
  EXPECT_FALSE(limiter_->Wait("ann", Duration(0))->allowed);
  Begin("second", seconds(1));
  Begin("third", seconds(2));
  Begin("refused", seconds(2));
  EXPECT_THAT(answers_.Names(1), ElementsAre("refused"));
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_THAT(answers_.Names(2), ElementsAre("refused", "second"));
  EXPECT_EQ(answers_.At(1).delay, Duration(0));
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_THAT(answers_.Names(3), ElementsAre("refused", "second", "third"));
}

TEST_F(Waits, OnLayersOfBucketsWaitForTheSlowestAndBookAllOrNothing) {
  limiter_ = std::make_unique<Limiter>(*Limiter::Make(
      {{"fast", LimitOf("10/s burst 1")}, {"slow", LimitOf("1/s burst 1")}}, {.clock = &clock_}));
  limiter_->Check("ann");
  Begin("waits", seconds(1));
  Begin("refused", seconds(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("refused"));
  EXPECT_EQ(answers_.At(0).rule, "slow");
  // Two were charged to the fast one, not three.
  EXPECT_EQ(limiter_->Peek({"ann", kSkip})->reset_after, milliseconds(200));
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_THAT(answers_.Names(2), ElementsAre("refused", "waits"));
}

TEST_F(Waits, MayLastNoLongerThanTheShortestOfTheLayersAllows) {
  limiter_ = std::make_unique<Limiter>(
      *Limiter::Make({{"one", LimitOf("1/s", {.max_wait = seconds(30)})},
                      {"other", LimitOf("1/s", {.max_wait = seconds(5)})}},
                     {.clock = &clock_}));
  EXPECT_TRUE(limiter_->Wait("ann", seconds(5)));
  EXPECT_FALSE(limiter_->Wait("ann", seconds(6)));
}

// --- Places: in line ---

TEST_F(Waits, ForAPlaceAreServedInTheOrderTheyCameAsPlacesAreReleased) {
  Make("2 concurrent lease 1min");
  std::vector<ReservationId> held{limiter_->Check("ann").reservation,
                                  limiter_->Check("ann").reservation};
  for (const char* name : {"a", "b", "c"}) Begin(name, seconds(50));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(limiter_->Release(held[i]));
    const Decision decision = answers_.At(i);
    ASSERT_TRUE(decision.allowed);
    EXPECT_NE(decision.reservation, ReservationId::kNone);
    held.push_back(decision.reservation);
  }
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
  EXPECT_EQ(limiter_->Stats().reservations, 2U);
}

TEST_F(Waits, ForAPlaceAreWokenWhenALeaseGoesOutOfScope) {
  Make("1 concurrent lease 1min");
  {
    const Result<Lease> lease = limiter_->Acquire("ann");
    Begin("waits", seconds(50));
    EXPECT_EQ(answers_.size(), 0U);
  }
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(Waits, ForAPlaceMayBeForALease) {
  Make("1 concurrent lease 1min");
  {
    const Result<Lease> place = limiter_->AcquireWithin("ann", seconds(1));
    ASSERT_TRUE(place && place->allowed());
    const Result<Lease> none = limiter_->AcquireWithin("ann", seconds(0));
    ASSERT_TRUE(none);
    EXPECT_FALSE(none->allowed());
    EXPECT_FALSE(limiter_->AcquireWithin("ann", seconds(-1)));
  }
  EXPECT_EQ(limiter_->Peek("ann")->remaining, 1);
}

TEST_F(Waits, ForAPlaceAreServedWhenADeadHoldersLeaseEnds) {
  Make("1 concurrent lease 10s");
  limiter_->Check("ann");
  Begin("waits", seconds(50));
  AdvanceAndServe(clock_, seconds(10) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(Waits, ForAPlaceGiveUpAtTheirDeadline) {
  Make("1 concurrent lease 1min");
  limiter_->Check("ann");
  Begin("long", seconds(20));
  Begin("short", seconds(10));
  AdvanceAndServe(clock_, seconds(10));
  EXPECT_THAT(answers_.Names(1), ElementsAre("short"));
  EXPECT_FALSE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.At(0).reason, Reason::kLimited);
  clock_.Advance(seconds(10));
  EXPECT_THAT(answers_.Names(2), ElementsAre("short", "long"));
  EXPECT_FALSE(answers_.At(1).allowed);
}

TEST_F(Waits, ForAPlaceDoNotOvertakeThoseInLine) {
  Make("2 concurrent lease 1min");
  const ReservationId one = limiter_->Check("ann").reservation;
  limiter_->Check("ann");
  Begin("wants two", seconds(50), {.cost = 2});
  ASSERT_TRUE(limiter_->Release(one));
  Begin("wants one", seconds(50));
  const Result<Decision> impatient = limiter_->Wait("ann", Duration(0));
  EXPECT_FALSE(impatient->allowed);
  EXPECT_EQ(impatient->reason, Reason::kLimited);
  EXPECT_EQ(impatient->limit, 2);
  EXPECT_EQ(impatient->retry_after, seconds(60));  // It is known that all will be free then.
  EXPECT_EQ(answers_.size(), 0U);
}

TEST_F(Waits, ForAPlaceOfOneKeyDoNotHoldUpAnothers) {
  Make("1 concurrent lease 1min");
  limiter_->Check("ann");
  Begin("waits", seconds(50));
  EXPECT_TRUE(limiter_->Wait("bob", seconds(50))->allowed);
}

// --- Windows and logs: in line, too ---

class WindowWaits : public Waits, public testing::WithParamInterface<AlgorithmCase> {
 protected:
  void SetUp() override {
    Make(GetParam().limit);
    while (limiter_->Check("ann").allowed) {
    }
    Begin("first", seconds(50));
    Begin("second", seconds(50));
    AwaitSleep(clock_);
  }
};

TEST_P(WindowWaits, AreWokenByARefundInTheOrderTheyCame) {
  ASSERT_TRUE(limiter_->Refund("ann"));
  EXPECT_THAT(answers_.Names(1), ElementsAre("first"));
  ASSERT_TRUE(limiter_->Refund("ann"));
  EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_TRUE(answers_.At(1).allowed);
}

TEST_P(WindowWaits, AreWokenByAReset) {
  ASSERT_TRUE(limiter_->Reset("ann"));
  EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
  EXPECT_EQ(limiter_->Peek("ann")->remaining, 8);
}

TEST_P(WindowWaits, AreWokenByALargerLimitAndCountedUnderIt) {
  LimitSpec spec = GetParam().limit.spec();
  spec.count = 30;
  ASSERT_TRUE(limiter_->SetLimit("", *Limit::Make(spec)));
  if (GetParam().is_concurrency()) {
    EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
    EXPECT_EQ(answers_.At(0).limit, 30);
    EXPECT_EQ(limiter_->Peek("ann")->remaining, 18);
    return;
  }
  // In proportion the key is as used up as before; but what is given back is the new limit's.
  ASSERT_TRUE(limiter_->Refund("ann", {.cost = 2}));
  EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
  EXPECT_EQ(answers_.At(0).limit, 30);
  EXPECT_EQ(limiter_->Peek("ann")->remaining, 0);
}

TEST_P(WindowWaits, AreLetThroughWhenTheLimitIsLifted) {
  ASSERT_TRUE(limiter_->SetLimit("", LimitOf("unlimited")));
  EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
  EXPECT_TRUE(answers_.At(1).allowed);
}

TEST_P(WindowWaits, AreRefusedAtOnceWhenTheLimitBecomesDeny) {
  ASSERT_TRUE(limiter_->SetLimit("", LimitOf("deny")));
  EXPECT_THAT(answers_.Names(2), ElementsAre("first", "second"));
  EXPECT_EQ(answers_.At(0).reason, Reason::kDenyList);
}

TEST_P(WindowWaits, AreServedAtTheirRetryAfter) {
  const Duration retry_after = limiter_->Peek("ann")->retry_after;
  AdvanceAndServe(clock_, retry_after - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.Names(1)[0], "first");
}

std::vector<AlgorithmCase> NoBuckets() {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  std::erase_if(cases, [](const AlgorithmCase& it) { return it.is_bucket(); });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WindowWaits, testing::ValuesIn(NoBuckets()),
                         NameOfAlgorithm());

// --- Many threads ---

TEST_F(Waits, OfManyThreadsNeverHoldMorePlacesThanThereAre) {
  Make("3 concurrent lease 1h");
  std::atomic<int> holding{0};
  std::atomic<int> served{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          const Result<Lease> place = limiter_->AcquireWithin("ann", seconds(60));
          ASSERT_TRUE(place && place->allowed());  // The clock stands still: nobody is ever late.
          EXPECT_LE(++holding, 3);
          ++served;
          --holding;
        }
      });
    }
  }
  EXPECT_EQ(served, 6 * 200);
  EXPECT_EQ(limiter_->Stats().reservations, 0U);
  EXPECT_EQ(limiter_->Peek("ann")->remaining, 3);
}

}  // namespace
}  // namespace weir
