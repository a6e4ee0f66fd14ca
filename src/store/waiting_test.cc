// threads
#include "store/waiting.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/wait_answers.h"

namespace weir {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

// What a waiter does; the parts that a test does not care about do nothing.
struct Script {
  std::function<Waiter::Answer(Now, Waiter::Turn, Duration)> attempt{};
  std::function<void(Now)> give_back = [](Now) {};
  Limiter::WaitDone done{};
};

class ScriptedWaiter final : public Waiter {
 public:
  explicit ScriptedWaiter(Script script) : script_(std::move(script)) {}
  std::optional<Answer> Attempt(const Chance& chance) override {
    return script_.attempt(chance.now, chance.turn, chance.patience);
  }
  void GiveBack(Now now) override { script_.give_back(now); }
  void Done(const Decision& decision) override { script_.done(decision); }

 private:
  Script script_;
};

class WaitingTest : public testing::Test {
 protected:
  // Passes while there are places, and is told to come again after `retry_after`.
  Script ForAPlace(const std::string& name, Duration retry_after = seconds(1'000)) {
    return {.attempt =
                [this, retry_after](Now, Waiter::Turn turn, Duration) {
                  ++attempts_;
                  if (turn == Waiter::Turn::kNow && places_.load() > 0) {
                    --places_;
                    return Waiter::Answer{{.allowed = true, .reason = Reason::kOk}};
                  }
                  return Waiter::Answer{{.reason = Reason::kLimited, .retry_after = retry_after},
                                        /*again=*/true};
                },
            .give_back = [this](Now) { ++given_back_; },
            .done = answers_.For(name)};
  }
  std::optional<WaitId> InLine(Script script, std::vector<std::uint64_t> keys, Duration patience) {
    const SteadyTime now = clock_.Read().steady;
    std::unique_ptr<Waiter> waiter = std::make_unique<ScriptedWaiter>(std::move(script));
    return waiting_->StandInLine(waiter, keys, now, now + patience);
  }
  std::optional<WaitId> InLine(const std::string& name, std::uint64_t key, Duration patience,
                               Duration retry_after = seconds(1'000)) {
    return InLine(ForAPlace(name, retry_after), {key}, patience);
  }
  // A wait that has its place already.
  std::optional<WaitId> Booked(Limiter::WaitDone done, Duration delay) {
    std::unique_ptr<Waiter> waiter = std::make_unique<ScriptedWaiter>(
        Script{.give_back = [this](Now) { ++given_back_; }, .done = std::move(done)});
    return waiting_->Hold(waiter, {.allowed = true, .reason = Reason::kOk},
                          clock_.Read().steady + delay);
  }
  std::optional<WaitId> Booked(const std::string& name, Duration delay) {
    return Booked(answers_.For(name), delay);
  }
  void Nudge(std::uint64_t key) { waiting_->Nudge({&key, 1}); }
  bool HasLine(std::uint64_t key) { return waiting_->HasLine({&key, 1}); }
  // Returns when everybody who was due has been served.
  void AwaitAttempts(int count) {
    while (attempts_ < count) std::this_thread::yield();
    AwaitSleep(clock_);
  }

  ManualClock clock_;
  WaitAnswers answers_;
  std::atomic<int> places_{0};
  std::atomic<int> attempts_{0};
  std::atomic<int> given_back_{0};
  std::unique_ptr<Waiting> waiting_ = std::make_unique<Waiting>(clock_, 4);
};

TEST_F(WaitingTest, StartsNoThreadBeforeItIsNeeded) {
  Nudge(7);
  waiting_->NudgeAll();
  EXPECT_FALSE(waiting_->IsServing());
  EXPECT_FALSE(waiting_->Cancel(WaitId{1}));
  EXPECT_EQ(waiting_->size(), 0U);
  EXPECT_EQ(clock_.Waiting(), 0);
}

TEST_F(WaitingTest, TellsABookedWaitWhenItsTimeHasComeAndNotBefore) {
  ASSERT_TRUE(Booked("a", seconds(5)));
  AdvanceAndServe(clock_, seconds(5) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(0).allowed);
  AwaitSleep(clock_);
  EXPECT_EQ(waiting_->size(), 0U);
}

TEST_F(WaitingTest, ServesBookedWaitsInTheOrderOfTheirTimes) {
  ASSERT_TRUE(Booked("late", seconds(9)));
  ASSERT_TRUE(Booked("early", seconds(3)));
  ASSERT_TRUE(Booked("middle", seconds(6)));
  AwaitSleep(clock_);
  clock_.Advance(seconds(10));
  EXPECT_THAT(answers_.Names(3), ElementsAre("early", "middle", "late"));
}

TEST_F(WaitingTest, ServesALineInTheOrderInWhichItCame) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(InLine(name, 7, seconds(60)));
  }
  EXPECT_TRUE(HasLine(7));
  EXPECT_FALSE(HasLine(8));
  for (std::size_t served = 1; served <= 3; ++served) {
    places_ = 1;
    Nudge(7);
    answers_.Names(served);
  }
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
  EXPECT_FALSE(HasLine(7));
}

TEST_F(WaitingTest, LetsTheNextTryAsSoonAsTheFirstIsThrough) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(InLine(name, 7, seconds(60)));
  }
  AwaitSleep(clock_);
  places_ = 3;
  Nudge(7);
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
}

TEST_F(WaitingTest, LetsTheNextTryWhenTheFirstGoesAway) {
  const auto first = InLine("a", 7, seconds(60));
  ASSERT_TRUE(InLine("b", 7, seconds(60)));
  AwaitSleep(clock_);
  places_ = 1;
  EXPECT_TRUE(waiting_->Cancel(*first));
  EXPECT_THAT(answers_.Names(1), ElementsAre("b"));
}

TEST_F(WaitingTest, KeepsLinesApart) {
  ASSERT_TRUE(InLine("a", 1, seconds(60)));
  ASSERT_TRUE(InLine("b", 2, seconds(60)));
  AwaitSleep(clock_);
  places_ = 2;
  waiting_->NudgeAll();
  answers_.Names(2);
  EXPECT_EQ(places_, 0);
}

TEST_F(WaitingTest, DisturbsOnlyThoseWhoseKeysGotSomethingBack) {
  ASSERT_TRUE(InLine(ForAPlace("a"), {1, 2}, seconds(60)));
  ASSERT_TRUE(InLine(ForAPlace("b"), {2, 3}, seconds(60)));
  ASSERT_TRUE(InLine(ForAPlace("c"), {4}, seconds(60)));
  AwaitAttempts(3);
  const auto attempts_after = [&](std::vector<std::uint64_t> keys, int more) {
    attempts_ = 0;
    waiting_->Nudge(keys);
    AwaitAttempts(more);
    return attempts_.load();
  };
  EXPECT_EQ(attempts_after({1}, 1), 1);
  EXPECT_EQ(attempts_after({2}, 2), 2);
  EXPECT_EQ(attempts_after({5}, 0), 0);
  EXPECT_EQ(attempts_after({1, 3, 4, 5}, 3), 3);
  places_ = 1;
  Nudge(3);
  EXPECT_THAT(answers_.Names(1), ElementsAre("b"));
  AwaitSleep(clock_);
  EXPECT_EQ(attempts_after({2}, 1), 1);  // A line that is no more is not looked for.
}

TEST_F(WaitingTest, LetsOthersInDuringAnAttempt) {
  std::promise<void> begun;
  std::promise<void> may_end;
  Script slow = ForAPlace("slow");
  slow.attempt = [&](Now, Waiter::Turn, Duration) {
    if (++attempts_ > 1) return Waiter::Answer{{.allowed = true, .reason = Reason::kOk}};
    begun.set_value();
    may_end.get_future().wait();
    return Waiter::Answer{{.reason = Reason::kLimited, .retry_after = seconds(1'000)}, true};
  };
  ASSERT_TRUE(InLine(slow, {7}, seconds(60)));
  begun.get_future().wait();
  EXPECT_EQ(waiting_->size(), 1U);
  const auto other = InLine("other", 8, seconds(60));
  ASSERT_TRUE(other);
  EXPECT_TRUE(waiting_->Cancel(*other));
  // What is given back during the attempt comes too late for it, and is not forgotten.
  Nudge(7);
  may_end.set_value();
  EXPECT_THAT(answers_.Names(1), ElementsAre("slow"));
  EXPECT_EQ(attempts_, 2);
}

TEST_F(WaitingTest, CancelsOneInTheMiddleOfAnAttemptWhenThatIsOver) {
  for (const Duration delay : {Duration(0), Duration(seconds(5))}) {
    std::promise<void> begun;
    std::promise<void> may_end;
    Script slow = ForAPlace("slow");
    slow.attempt = [&](Now, Waiter::Turn, Duration) {
      begun.set_value();
      may_end.get_future().wait();
      return Waiter::Answer{{.allowed = true, .reason = Reason::kOk, .delay = delay}};
    };
    const auto id = InLine(slow, {7}, seconds(60));
    ASSERT_TRUE(id);
    begun.get_future().wait();
    auto cancelled = std::async(std::launch::async, [&] { return waiting_->Cancel(*id); });
    may_end.set_value();
    // Let through at once it is over; with a delay there is still time.
    EXPECT_EQ(cancelled.get(), delay > Duration(0));
    AwaitSleep(clock_);
    EXPECT_EQ(given_back_, delay > Duration(0) ? 1 : 0);
    EXPECT_EQ(answers_.size(), 1U);
    EXPECT_EQ(waiting_->size(), 0U);
  }
}

TEST_F(WaitingTest, HoldsAnAnswerThatHasADelayAndLetsTheNextTry) {
  Script delayed = ForAPlace("delayed");
  Duration patience(0);
  delayed.attempt = [&](Now, Waiter::Turn, Duration left) {
    patience = left;
    return Waiter::Answer{{.allowed = true, .reason = Reason::kOk, .delay = seconds(5)}};
  };
  places_ = 1;
  const auto id = InLine(delayed, {7}, seconds(60));
  ASSERT_TRUE(InLine("next", 7, seconds(60)));
  EXPECT_THAT(answers_.Names(1), ElementsAre("next"));
  EXPECT_EQ(patience, seconds(60));
  EXPECT_FALSE(HasLine(7));
  AdvanceAndServe(clock_, seconds(5) - Duration(1));
  EXPECT_EQ(answers_.size(), 1U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(1).allowed);
  EXPECT_EQ(answers_.At(1).delay, Duration(0));
  EXPECT_FALSE(waiting_->Cancel(*id));
}

TEST_F(WaitingTest, GivesBackWhatOneHadWhoseAnswerWasHeld) {
  Script delayed = ForAPlace("delayed");
  delayed.attempt = [&](Now, Waiter::Turn, Duration) {
    ++attempts_;
    return Waiter::Answer{{.allowed = true, .reason = Reason::kOk, .delay = seconds(5)}};
  };
  const auto id = InLine(delayed, {7}, seconds(60));
  AwaitAttempts(1);
  EXPECT_TRUE(waiting_->Cancel(*id));
  EXPECT_EQ(given_back_, 1);
  EXPECT_EQ(waiting_->size(), 0U);
}

TEST_F(WaitingTest, KnowsTheThreadThatServes) {
  std::promise<bool> serving;
  ASSERT_TRUE(
      Booked([&](const Decision&) { serving.set_value(waiting_->IsServing()); }, Duration(0)));
  EXPECT_TRUE(serving.get_future().get());
  EXPECT_FALSE(waiting_->IsServing());
  AwaitSleep(clock_);  // Until the callback is done with the promise.
}

TEST_F(WaitingTest, TriesAgainWhenItWasToldTo) {
  ASSERT_TRUE(InLine("a", 7, seconds(60), seconds(10)));
  while (attempts_ < 1) std::this_thread::yield();
  AwaitSleep(clock_);
  places_ = 1;
  AdvanceAndServe(clock_, seconds(10) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(WaitingTest, GivesUpAtTheDeadlineAndNotBefore) {
  ASSERT_TRUE(InLine("a", 7, seconds(20)));
  AdvanceAndServe(clock_, seconds(20) - Duration(1));
  EXPECT_EQ(answers_.size(), 0U);
  clock_.Advance(Duration(1));
  const Decision decision = answers_.At(0);
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kLimited);
}

TEST_F(WaitingTest, MovesOneToTheLineThatItSaysItBelongsTo) {
  const std::vector<std::uint64_t> other = {9};
  const auto moving = [&](const std::string& name) {
    Script script = ForAPlace(name);
    script.attempt = [&, attempt = script.attempt](Now now, Waiter::Turn turn, Duration patience) {
      Waiter::Answer answer = attempt(now, turn, patience);
      answer.keys = other;
      return answer;
    };
    return script;
  };
  ASSERT_TRUE(InLine(moving("a"), {7}, seconds(60)));
  AwaitAttempts(2);  // Once more after it has moved.
  EXPECT_FALSE(HasLine(7));
  EXPECT_TRUE(HasLine(9));
  ASSERT_TRUE(InLine(moving("b"), {8}, seconds(60)));
  AwaitAttempts(3);
  ASSERT_TRUE(InLine("c", 9, seconds(60)));
  places_ = 1;
  Nudge(7);  // Nobody is there any more.
  AwaitSleep(clock_);
  EXPECT_EQ(answers_.size(), 0U);
  for (std::size_t served = 1; served <= 3; ++served) {
    places_ = 1;
    Nudge(9);
    answers_.Names(served);
  }
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
}

TEST_F(WaitingTest, LetsOneWhoMovesGoBeforeThoseWhoCameLater) {
  std::atomic<bool> moves{false};
  const std::vector<std::uint64_t> other = {9};
  Script script = ForAPlace("early");
  script.attempt = [&, attempt = script.attempt](Now now, Waiter::Turn turn, Duration patience) {
    Waiter::Answer answer = attempt(now, turn, patience);
    if (moves) answer.keys = other;
    return answer;
  };
  ASSERT_TRUE(InLine(script, {7}, seconds(60)));
  ASSERT_TRUE(InLine("late", 9, seconds(60), seconds(5)));
  AwaitAttempts(2);
  moves = true;
  Nudge(7);
  AwaitAttempts(4);
  // The later one is looked at when its pause is over, and goes on waiting.
  AdvanceAndServe(clock_, seconds(5));
  EXPECT_EQ(answers_.size(), 0U);
  places_ = 2;
  Nudge(9);
  EXPECT_THAT(answers_.Names(2), ElementsAre("early", "late"));
}

TEST_F(WaitingTest, GivesUpOnOneInTheMiddleOfALineWithoutDisturbingTheOthers) {
  ASSERT_TRUE(InLine("a", 7, seconds(60)));
  ASSERT_TRUE(InLine("b", 7, seconds(5)));
  ASSERT_TRUE(InLine("c", 7, seconds(60)));
  AwaitSleep(clock_);
  clock_.Advance(seconds(5));
  EXPECT_THAT(answers_.Names(1), ElementsAre("b"));
  EXPECT_FALSE(answers_.At(0).allowed);
  places_ = 2;
  Nudge(7);
  EXPECT_THAT(answers_.Names(3), ElementsAre("b", "a", "c"));
}

TEST_F(WaitingTest, TakesWhatThereIsAtTheVeryDeadline) {
  ASSERT_TRUE(InLine("a", 7, seconds(5)));
  while (attempts_ < 1) std::this_thread::yield();
  AwaitSleep(clock_);
  places_ = 1;
  clock_.Advance(seconds(5));
  EXPECT_TRUE(answers_.At(0).allowed);
}

TEST_F(WaitingTest, StopsAtOnceWhenWaitingDoesNotHelp) {
  ASSERT_TRUE(InLine({.attempt =
                          [](Now, Waiter::Turn, Duration) {
                            return Waiter::Answer{
                                {.reason = Reason::kNeverFits, .retry_after = kNever}};
                          },
                      .done = answers_.For("a")},
                     {7}, seconds(60)));
  EXPECT_EQ(answers_.At(0).reason, Reason::kNeverFits);
}

TEST_F(WaitingTest, RefusesMoreThanItsCapacityUntilSomebodyLeaves) {
  std::optional<WaitId> last;
  for (int i = 0; i < 4; ++i) last = Booked("a", seconds(5));
  ASSERT_TRUE(last);
  EXPECT_FALSE(Booked("b", seconds(5)));
  EXPECT_FALSE(InLine("b", 7, seconds(5)));
  EXPECT_FALSE(HasLine(7));
  EXPECT_EQ(waiting_->size(), 4U);
  EXPECT_TRUE(waiting_->Cancel(*last));
  EXPECT_TRUE(Booked("c", seconds(5)));
}

TEST_F(WaitingTest, NeverAnswersAWaitThatWasCancelled) {
  const auto booked = Booked("booked", seconds(1));
  const auto in_line = InLine("in line", 7, seconds(1));
  ASSERT_TRUE(Booked("witness", seconds(2)));
  EXPECT_TRUE(waiting_->Cancel(*booked));
  EXPECT_TRUE(waiting_->Cancel(*in_line));
  EXPECT_FALSE(waiting_->Cancel(*booked));
  EXPECT_EQ(given_back_, 1);
  AwaitSleep(clock_);
  clock_.Advance(seconds(3));
  EXPECT_THAT(answers_.Names(1), ElementsAre("witness"));
}

TEST_F(WaitingTest, CannotCancelAWaitThatIsOver) {
  const auto id = Booked("a", seconds(1));
  AwaitSleep(clock_);
  clock_.Advance(seconds(1));
  answers_.Names(1);
  EXPECT_FALSE(waiting_->Cancel(*id));
  EXPECT_EQ(given_back_, 0);
}

TEST_F(WaitingTest, LetsACallbackWaitAgain) {
  ASSERT_TRUE(Booked([this](const Decision&) { Booked("second", seconds(1)); }, seconds(1)));
  AdvanceAndServe(clock_, seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_THAT(answers_.Names(1), ElementsAre("second"));
}

TEST_F(WaitingTest, TellsThoseStillWaitingWhenItEndsInTheOrderInWhichTheyCame) {
  ASSERT_TRUE(InLine("a", 7, seconds(60)));
  ASSERT_TRUE(Booked("b", seconds(60)));
  ASSERT_TRUE(InLine("c", 7, seconds(60)));
  waiting_.reset();
  EXPECT_THAT(answers_.Names(3), ElementsAre("a", "b", "c"));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(answers_.At(i).allowed);
    EXPECT_EQ(answers_.At(i).reason, Reason::kOverload);
  }
}

TEST_F(WaitingTest, GivesBackThePlacesOfThoseStillWaitingWhenItEndsTheLastFirst) {
  std::vector<std::string> given_back;
  for (const char* const name : {"a", "b"}) {
    std::unique_ptr<Waiter> waiter = std::make_unique<ScriptedWaiter>(Script{
        .give_back = [&, name](Now) { given_back.push_back(name); }, .done = answers_.For(name)});
    ASSERT_TRUE(waiting_->Hold(waiter, {.allowed = true, .reason = Reason::kOk},
                               clock_.Read().steady + seconds(60)));
  }
  ASSERT_TRUE(InLine("c", 7, seconds(60)));
  waiting_.reset();
  EXPECT_THAT(given_back, ElementsAre("b", "a"));
  EXPECT_EQ(given_back_, 0);
}

TEST_F(WaitingTest, RefusesToWaitAgainForACallbackWhenItEnds) {
  std::optional<WaitId> again = WaitId{1};
  Waiting* const waiting = waiting_.get();
  ASSERT_TRUE(Booked(
      [&, waiting](const Decision&) {
        std::unique_ptr<Waiter> waiter =
            std::make_unique<ScriptedWaiter>(Script{.done = answers_.For("never")});
        again = waiting->Hold(waiter, {}, clock_.Read().steady + seconds(1));
        EXPECT_TRUE(waiter);
      },
      seconds(60)));
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
      Nudge(0);
      Nudge(1);
      clock_.Advance(std::chrono::milliseconds(1));
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          const auto id = i % 3 == 0 ? Booked("", std::chrono::milliseconds(i % 5))
                                     : InLine("", static_cast<unsigned>(t % 2), seconds(3'600));
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
