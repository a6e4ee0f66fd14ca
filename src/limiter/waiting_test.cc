// threads
#include "limiter/waiting.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "limiter/wait_answers.h"

namespace weir {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

class WaitingTest : public testing::Test {
 protected:
  // A wait that passes once `open` is true, and is told to come again after `retry_after`.
  Wait InLine(const std::string& name, std::uint64_t line, Duration patience,
              Duration retry_after = seconds(1'000)) {
    const SteadyTime now = clock_.Read().steady;
    return {.attempt =
                [this, retry_after](Now, Wait::Turn turn) {
                  ++attempts_;
                  if (turn == Wait::Turn::kNow && places_.load() > 0) {
                    --places_;
                    return Decision{.allowed = true, .reason = Reason::kOk};
                  }
                  return Decision{.reason = Reason::kLimited, .retry_after = retry_after};
                },
            .give_back = nullptr,
            .done = answers_.For(name),
            .line = line,
            .due = now,
            .deadline = now + patience};
  }
  // A wait that has its place already.
  Wait Booked(const std::string& name, Duration delay) {
    const SteadyTime due = clock_.Read().steady + delay;
    return {
        .attempt = [](Now, Wait::Turn) { return Decision{.allowed = true, .reason = Reason::kOk}; },
        .give_back = [this](Now) { ++given_back_; },
        .done = answers_.For(name),
        .line = std::nullopt,
        .due = due,
        .deadline = due};
  }

  ManualClock clock_;
  WaitAnswers answers_;
  std::atomic<int> places_{0};
  std::atomic<int> attempts_{0};
  std::atomic<int> given_back_{0};
  std::unique_ptr<Waiting> waiting_ = std::make_unique<Waiting>(clock_, 4);
};

TEST_F(WaitingTest, StartsNoThreadBeforeItIsNeeded) {
  waiting_->Nudge();
  EXPECT_FALSE(waiting_->Cancel(WaitId{1}));
  EXPECT_EQ(waiting_->size(), 0U);
  EXPECT_EQ(clock_.Waiting(), 0);
}

TEST_F(WaitingTest, TellsABookedWaitWhenItsTimeHasComeAndNotBefore) {
  ASSERT_TRUE(waiting_->Add(Booked("a", seconds(5))));
  AdvanceAndServe(clock_, seconds(5) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  AwaitSleep(clock_);
  EXPECT_EQ(waiting_->size(), 0U);
}

TEST_F(WaitingTest, ServesBookedWaitsInTheOrderOfTheirTimes) {
  ASSERT_TRUE(waiting_->Add(Booked("late", seconds(9))));
  ASSERT_TRUE(waiting_->Add(Booked("early", seconds(3))));
  ASSERT_TRUE(waiting_->Add(Booked("middle", seconds(6))));
  AwaitSleep(clock_);
  clock_.Advance(seconds(10));
  EXPECT_THAT(answers_.Names(3), ElementsAre("early", "middle", "late"));
}

TEST_F(WaitingTest, ServesALineInTheOrderInWhichItCame) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(waiting_->Add(InLine(name, 7, seconds(60))));
  }
  EXPECT_TRUE(waiting_->HasLine(7));
  EXPECT_FALSE(waiting_->HasLine(8));
  for (std::size_t served = 1; served <= 3; ++served) {
    places_ = 1;
    waiting_->Nudge();
    answers_.Names(served);
  }
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
  EXPECT_FALSE(waiting_->HasLine(7));
}

TEST_F(WaitingTest, LetsTheNextTryAsSoonAsTheFirstIsThrough) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(waiting_->Add(InLine(name, 7, seconds(60))));
  }
  AwaitSleep(clock_);
  places_ = 3;
  waiting_->Nudge();
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
}

TEST_F(WaitingTest, LetsTheNextTryWhenTheFirstGoesAway) {
  const auto first = waiting_->Add(InLine("a", 7, seconds(60)));
  ASSERT_TRUE(waiting_->Add(InLine("b", 7, seconds(60))));
  AwaitSleep(clock_);
  places_ = 1;
  EXPECT_TRUE(waiting_->Cancel(*first));
  EXPECT_THAT(answers_.Names(1), ElementsAre("b"));
}

TEST_F(WaitingTest, KeepsLinesApart) {
  ASSERT_TRUE(waiting_->Add(InLine("a", 1, seconds(60))));
  ASSERT_TRUE(waiting_->Add(InLine("b", 2, seconds(60))));
  AwaitSleep(clock_);
  places_ = 2;
  waiting_->Nudge();
  answers_.Names(2);
  EXPECT_EQ(places_, 0);
}

TEST_F(WaitingTest, TriesAgainWhenItWasToldTo) {
  ASSERT_TRUE(waiting_->Add(InLine("a", 7, seconds(60), seconds(10))));
  while (attempts_ < 1) std::this_thread::yield();
  AwaitSleep(clock_);
  places_ = 1;
  AdvanceAndServe(clock_, seconds(10) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(WaitingTest, GivesUpAtTheDeadlineAndNotBefore) {
  ASSERT_TRUE(waiting_->Add(InLine("a", 7, seconds(20))));
  AdvanceAndServe(clock_, seconds(20) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  const Decision decision = answers_.At(0);
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kLimited);
}

TEST_F(WaitingTest, GivesUpOnOneInTheMiddleOfALineWithoutDisturbingTheOthers) {
  ASSERT_TRUE(waiting_->Add(InLine("a", 7, seconds(60))));
  ASSERT_TRUE(waiting_->Add(InLine("b", 7, seconds(5))));
  ASSERT_TRUE(waiting_->Add(InLine("c", 7, seconds(60))));
  AwaitSleep(clock_);
  clock_.Advance(seconds(5));
  EXPECT_THAT(answers_.Names(1), ElementsAre("b"));
  EXPECT_FALSE(answers_.At(0).allowed);
  places_ = 2;
  waiting_->Nudge();
  EXPECT_THAT(answers_.Names(3), ElementsAre("b", "a", "c"));
}

TEST_F(WaitingTest, TakesWhatThereIsAtTheVeryDeadline) {
  ASSERT_TRUE(waiting_->Add(InLine("a", 7, seconds(5))));
  while (attempts_ < 1) std::this_thread::yield();
  AwaitSleep(clock_);
  places_ = 1;
  clock_.Advance(seconds(5));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(WaitingTest, StopsAtOnceWhenWaitingDoesNotHelp) {
  Wait wait = InLine("a", 7, seconds(60));
  wait.attempt = [](Now, Wait::Turn) {
    return Decision{.reason = Reason::kNeverFits, .retry_after = kNever};
  };
  ASSERT_TRUE(waiting_->Add(std::move(wait)));
  EXPECT_EQ(answers_.At(0).reason, Reason::kNeverFits);
}

TEST_F(WaitingTest, RefusesMoreThanItsCapacityUntilSomebodyLeaves) {
  std::optional<WaitId> last;
  for (int i = 0; i < 4; ++i) last = waiting_->Add(Booked("a", seconds(5)));
  ASSERT_TRUE(last);
  EXPECT_FALSE(waiting_->Add(Booked("b", seconds(5))));
  EXPECT_FALSE(waiting_->Add(InLine("b", 7, seconds(5))));
  EXPECT_FALSE(waiting_->HasLine(7));
  EXPECT_EQ(waiting_->size(), 4U);
  EXPECT_TRUE(waiting_->Cancel(*last));
  EXPECT_TRUE(waiting_->Add(Booked("c", seconds(5))));
}

TEST_F(WaitingTest, NeverAnswersAWaitThatWasCancelled) {
  const auto booked = waiting_->Add(Booked("booked", seconds(1)));
  const auto in_line = waiting_->Add(InLine("in line", 7, seconds(1)));
  ASSERT_TRUE(waiting_->Add(Booked("witness", seconds(2))));
  EXPECT_TRUE(waiting_->Cancel(*booked));
  EXPECT_TRUE(waiting_->Cancel(*in_line));
  EXPECT_FALSE(waiting_->Cancel(*booked));
  EXPECT_EQ(given_back_, 1);
  AwaitSleep(clock_);
  clock_.Advance(seconds(3));
  EXPECT_THAT(answers_.Names(1), ElementsAre("witness"));
}

TEST_F(WaitingTest, CannotCancelAWaitThatIsOver) {
  const auto id = waiting_->Add(Booked("a", seconds(1)));
  AwaitSleep(clock_);
  clock_.Advance(seconds(1));
  answers_.Names(1);
  EXPECT_FALSE(waiting_->Cancel(*id));
  EXPECT_EQ(given_back_, 0);
}

TEST_F(WaitingTest, LetsACallbackWaitAgain) {
  Wait wait = Booked("", seconds(1));
  wait.done = [this](const Decision&) { waiting_->Add(Booked("second", seconds(1))); };
  ASSERT_TRUE(waiting_->Add(std::move(wait)));
  AdvanceAndServe(clock_, seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("second"));
}

TEST_F(WaitingTest, TellsThoseStillWaitingWhenItEndsInTheOrderInWhichTheyCame) {
  ASSERT_TRUE(waiting_->Add(InLine("a", 7, seconds(60))));
  ASSERT_TRUE(waiting_->Add(Booked("b", seconds(60))));
  ASSERT_TRUE(waiting_->Add(InLine("c", 7, seconds(60))));
  waiting_.reset();
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(answers_.At(i).allowed);
    EXPECT_EQ(answers_.At(i).reason, Reason::kOverload);
  }
}

TEST_F(WaitingTest, RefusesToWaitAgainForACallbackWhenItEnds) {
  std::optional<WaitId> again = WaitId{1};
  Waiting* const waiting = waiting_.get();
  Wait wait = Booked("", seconds(60));
  wait.done = [&](const Decision&) { again = waiting->Add(Booked("never", seconds(1))); };
  ASSERT_TRUE(waiting_->Add(std::move(wait)));
  waiting_.reset();
  EXPECT_FALSE(again);
  EXPECT_EQ(answers_.size(), 0U);
}

TEST_F(WaitingTest, IsCancelledAndServedByManyThreadsWithoutLosingAnybody) {
  constexpr int kThreads = 4;
  constexpr int kEach = 300;
  waiting_ = std::make_unique<Waiting>(clock_, kThreads * kEach);
  std::atomic<int> cancelled{0};
  std::atomic<bool> stop{false};
  std::thread giver([&] {
    while (!stop) {
      ++places_;
      waiting_->Nudge();
      clock_.Advance(std::chrono::milliseconds(1));
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          const auto id =
              i % 3 == 0 ? waiting_->Add(Booked("", std::chrono::milliseconds(i % 5)))
                         : waiting_->Add(InLine("", static_cast<unsigned>(t % 2), seconds(3'600)));
          ASSERT_TRUE(id);
          if (i % 4 == 0 && waiting_->Cancel(*id)) ++cancelled;
        }
      });
    }
  }
  answers_.Names(static_cast<std::size_t>(kThreads * kEach - cancelled));
  stop = true;
  giver.join();
  EXPECT_EQ(waiting_->size(), 0U);
  EXPECT_EQ(answers_.size(), static_cast<std::size_t>(kThreads * kEach - cancelled));
}

}  // namespace
}  // namespace weir
