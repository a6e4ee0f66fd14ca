// threads
// Waits on several layers at once: what is booked ahead and what is waited for in line.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/limiter.h>

#include "store/memory/store_under_test.h"
#include "store/wait_answers.h"

namespace weir {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

const Limit kQueue = LimitOf("1/s burst 5", {.algorithm = Algorithm::kLeakyBucket, .queue = true});
const Limit kLog = LimitOf("100/10s", {.algorithm = Algorithm::kSlidingLog});

class LayeredWaits : public testing::Test {
 protected:
  void Make(const std::vector<Layer>& layers, std::size_t max_waiters = 100) {
    limiter_ = std::make_unique<Limiter>(
        *Limiter::Make(layers, {.clock = &clock_, .max_waiters = max_waiters}));
  }
  WaitId Begin(const std::string& name, const Keys& keys, Duration patience) {
    return limiter_->WaitThen(keys, patience, answers_.For(name)).value();
  }
  Duration ResetAfter(const Keys& keys) { return limiter_->Peek(keys)->reset_after; }
  std::int64_t Remaining(const Keys& keys) { return limiter_->Peek(keys)->remaining; }

  ManualClock clock_;
  WaitAnswers answers_;
  std::unique_ptr<Limiter> limiter_;
};

// --- A queue's delay is held, whatever stands beside the queue ---

struct Beside {
  std::string name;
  Layer layer;
  Key key;
};

class QueueBeside : public LayeredWaits, public testing::WithParamInterface<Beside> {
 protected:
  void SetUp() override { Make({{"queue", kQueue}, GetParam().layer}); }
  const Key& key() const { return GetParam().key; }
};

TEST_P(QueueBeside, HoldsTheAnswerUntilItsTurn) {
  EXPECT_TRUE(limiter_->Wait({"ann", key()}, seconds(5))->allowed);
  Begin("second", {"ann", key()}, seconds(5));
  Begin("third", {"ann", key()}, seconds(5));
  EXPECT_EQ(limiter_->Stats().waiters, 2U);
  AdvanceAndServe(clock_, seconds(1) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  AdvanceAndServe(clock_, Duration(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("second"));
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.At(0).delay, Duration(0));
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_THAT(answers_.Names(2), ElementsAre("second", "third"));
}

TEST_P(QueueBeside, RefusesAtOnceWhenPatienceIsShorterThanTheDelay) {
  limiter_->Check({"ann", key()}).value();
  for (const Duration patience : {Duration(0), seconds(1) - Duration(1)}) {
    const Decision refused = limiter_->Wait({"ann", key()}, patience).value();
    EXPECT_FALSE(refused.allowed);
    EXPECT_EQ(refused.reason, Reason::kLimited);
    EXPECT_GT(refused.retry_after, Duration(0));
  }
  EXPECT_EQ(ResetAfter({"ann", kSkip}), seconds(1));
}

TEST_P(QueueBeside, GivesAllBackWhenCancelled) {
  limiter_->Check({"ann", kSkip}).value();
  const std::int64_t before = Remaining({kSkip, key()});
  const WaitId id = Begin("never", {"ann", key()}, seconds(5));
  EXPECT_EQ(ResetAfter({"ann", kSkip}), seconds(2));
  EXPECT_TRUE(limiter_->CancelWait(id));
  EXPECT_EQ(ResetAfter({"ann", kSkip}), seconds(1));
  EXPECT_EQ(Remaining({kSkip, key()}), before);
  EXPECT_EQ(limiter_->Stats().reservations, 0U);
  AdvanceAndServe(clock_, seconds(10));
  EXPECT_EQ(answers_.size(), 0U);
}

TEST_P(QueueBeside, TakesNothingWhenTooManyWait) {
  Make({{"queue", kQueue}, GetParam().layer}, /*max_waiters=*/0);
  limiter_->Check({"ann", kSkip}).value();
  const std::int64_t before = Remaining({kSkip, key()});
  const Decision refused = limiter_->Wait({"ann", key()}, seconds(5)).value();
  EXPECT_EQ(refused.reason, Reason::kOverload);
  EXPECT_EQ(refused.retry_after, seconds(1));
  EXPECT_EQ(ResetAfter({"ann", kSkip}), seconds(1));
  EXPECT_EQ(Remaining({kSkip, key()}), before);
  EXPECT_EQ(limiter_->Stats().reservations, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, QueueBeside,
    testing::Values(Beside{"ABucket", {"other", LimitOf("100/10s")}, "bob"},
                    Beside{"ALog", {"other", kLog}, "bob"},
                    Beside{"ASkippedLog", {"other", kLog}, kSkip},
                    Beside{"AShadowLog", {"other", kLog, /*shadow=*/true}, "bob"},
                    Beside{"AFullShadowLog",
                           {"other", LimitOf("1/10s", {.algorithm = Algorithm::kSlidingLog}), true},
                           "bob"},
                    Beside{"Places", {"other", LimitOf("9 concurrent lease 1min")}, "bob"},
                    Beside{"ShadowPlaces",
                           {"other", LimitOf("9 concurrent lease 1min"), /*shadow=*/true},
                           "bob"},
                    Beside{"Unlimited", {"other", LimitOf("unlimited")}, "bob"}),
    [](const auto& beside) { return beside.param.name; });

// --- First in line, then held ---

class PlacesBehindAQueue : public LayeredWaits {
 protected:
  void SetUp() override {
    Make({{"queue", kQueue}, {"places", LimitOf("1 concurrent lease 1min")}});
    limiter_->Check({"ann", kSkip}).value();
    held_ = limiter_->Check({kSkip, "ann"})->reservation;
    id_ = Begin("waits", "ann", seconds(30));
    AwaitSleep(clock_);
    limiter_->Release(held_).value();
    while (limiter_->Stats().reservations == 0) std::this_thread::yield();
    AwaitSleep(clock_);
  }

  ReservationId held_{};
  WaitId id_{};
};

TEST_F(PlacesBehindAQueue, HoldTheAnswerOfOneWhoStoodInLine) {
  EXPECT_EQ(answers_.size(), 0U);
  AdvanceAndServe(clock_, seconds(1));
  ASSERT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(answers_.At(0).delay, Duration(0));
  EXPECT_TRUE(limiter_->Release(answers_.At(0).reservation));
  EXPECT_EQ(limiter_->Stats().reservations, 0U);
}

TEST_F(PlacesBehindAQueue, AreGivenBackWhenItIsCancelledThen) {
  EXPECT_TRUE(limiter_->CancelWait(id_));
  EXPECT_EQ(limiter_->Stats().reservations, 0U);
  EXPECT_EQ(Remaining({kSkip, "ann"}), 1);
  EXPECT_EQ(ResetAfter({"ann", kSkip}), seconds(1));
}

TEST_F(PlacesBehindAQueue, GoToTheNextInLineWhenItIsCancelledThen) {
  Begin("next", "ann", seconds(30));
  AwaitSleep(clock_);
  EXPECT_TRUE(limiter_->CancelWait(id_));
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("next"));
  EXPECT_TRUE(answers_.At(0).allowed);
}

// --- How long may be waited ---

TEST_F(LayeredWaits, MayLastAsLongAsTheLayersAllowThatMayKeepThemWaiting) {
  const auto limit = [](std::string_view text, Duration max_wait) {
    return LimitOf(text, {.max_wait = max_wait});
  };
  const auto longest = [&](const std::vector<Layer>& layers) {
    Make(layers);
    for (const Duration patience : {seconds(60), seconds(30), seconds(5)}) {
      if (limiter_->Wait("ann", patience)) return patience;
    }
    return Duration(0);
  };
  const Layer thirty{"thirty", limit("9/s", seconds(30))};
  EXPECT_EQ(longest({thirty, {"five", limit("9/s", seconds(5))}}), seconds(5));
  EXPECT_EQ(longest({thirty, {"five", limit("unlimited", seconds(5))}}), seconds(30));
  EXPECT_EQ(longest({{"five", limit("deny", seconds(5))}, thirty}), seconds(30));
  EXPECT_EQ(longest({thirty, {"five", limit("9/s", seconds(5)), /*shadow=*/true}}), seconds(30));
  EXPECT_EQ(longest({{"five", limit("unlimited", seconds(5))}, {"sixty", LimitOf("unlimited")}}),
            seconds(5));
  EXPECT_EQ(longest({{"five", limit("9/s", seconds(5)), /*shadow=*/true}}), seconds(5));
}

// --- Other mixtures ---

TEST_F(LayeredWaits, HoldNoPlaceWhileABucketFills) {
  Make({{"rate", LimitOf("1/s burst 1")}, {"places", LimitOf("1 concurrent lease 1min")}});
  limiter_->Check({"ann", kSkip}).value();
  Begin("waits", "ann", seconds(5));
  AwaitSleep(clock_);
  EXPECT_EQ(Remaining({kSkip, "ann"}), 1);
  clock_.Advance(seconds(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  EXPECT_EQ(Remaining({kSkip, "ann"}), 0);
}

TEST_F(LayeredWaits, AreRefusedAtOnceWhenABucketTakesLongerThanTheirPatience) {
  Make({{"rate", LimitOf("1/s burst 1")}, {"log", kLog}});
  limiter_->Penalize({"ann", kSkip}, {.cost = 2}).value();
  const Decision refused = limiter_->Wait("ann", seconds(2) - Duration(1)).value();
  EXPECT_EQ(refused.reason, Reason::kLimited);
  EXPECT_EQ(refused.rule, "rate");
  EXPECT_EQ(limiter_->Stats().waiters, 0U);
  Begin("patient", "ann", seconds(2));
  AdvanceAndServe(clock_, seconds(2));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(LayeredWaits, StandInLineWithTheirLikesWhateverTheirShadows) {
  Make({{"places", LimitOf("2 concurrent lease 1min")}, {"shadow", kLog, /*shadow=*/true}});
  const ReservationId one = limiter_->Check({"ann", kSkip})->reservation;
  limiter_->Check({"ann", kSkip}).value();
  limiter_->WaitThen({"ann", "x"}, seconds(50), answers_.For("two"), {.cost = 2}).value();
  limiter_->Release(one).value();
  EXPECT_FALSE(limiter_->Wait({"ann", "y"}, Duration(0))->allowed);  // Somebody was there before.
  EXPECT_FALSE(limiter_->Wait({"ann", kSkip}, Duration(0))->allowed);
}

TEST_F(LayeredWaits, AreWokenByWhatACancelledBookingGivesBack) {
  Make({{"rate", LimitOf("1/s burst 1", {.max_wait = seconds(30)})},
        {"places", LimitOf("1 concurrent lease 1min")}});
  const WaitId booked = [&] {
    limiter_->Check({"ann", kSkip}).value();
    return Begin("booked", {"ann", kSkip}, seconds(5));
  }();
  Begin("in line", "ann", seconds(30));
  AwaitSleep(clock_);
  EXPECT_TRUE(limiter_->CancelWait(booked));
  AdvanceAndServe(clock_, seconds(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("in line"));
}

}  // namespace
}  // namespace weir
