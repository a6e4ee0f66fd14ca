// threads
// Attempts that take a while, because somebody else is asked: many are under way at a time, and
// whatever happens meanwhile is not forgotten.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/wait_answers.h"
#include "store/waiting.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

// Where it is asked: the test says when there is an answer, and what it is. Thread-safe.
class Elsewhere {
 public:
  struct Asked {
    WaitId id;
    Waiter::Turn turn;
  };

  void Ask(const Asked& asked) {
    const std::scoped_lock lock(mutex_);
    asked_.push_back(asked);
    changed_.notify_all();
  }
  // The next that was asked.
  Asked Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !asked_.empty(); });
    const Asked next = asked_.front();
    asked_.pop_front();
    return next;
  }
  // What came of it, or will.
  void SetOutcome(std::uint64_t id, const Waiter::Answer& answer) {
    const std::scoped_lock lock(mutex_);
    outcomes_[id] = answer;
  }
  Waiter::Answer OutcomeOf(std::uint64_t id) {
    const std::scoped_lock lock(mutex_);
    return outcomes_.at(id);
  }
  std::size_t pending() {
    const std::scoped_lock lock(mutex_);
    return asked_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Asked> asked_;
  std::map<std::uint64_t, Waiter::Answer> outcomes_;
};

struct HeardDecision final : Waiter::Heard {
  explicit HeardDecision(const Decision& its) : decision(its) {}
  Decision decision;
};

class SlowWaiter final : public Waiter {
 public:
  struct Parts {
    Elsewhere& elsewhere;
    std::atomic<int>& given_back;
    Limiter::WaitDone done;
  };
  explicit SlowWaiter(Parts parts) : parts_(std::move(parts)) {}

  std::optional<Answer> Attempt(const Chance& chance) override {
    id_ = static_cast<std::uint64_t>(chance.id);
    parts_.elsewhere.Ask({chance.id, chance.turn});
    return std::nullopt;
  }
  Answer Outcome() override { return parts_.elsewhere.OutcomeOf(id_); }
  std::optional<Decision> GiveUp(Now, const Heard& heard, Duration age) override {
    Decision decision = static_cast<const HeardDecision&>(heard).decision;
    decision.allowed = false;
    decision.reason = Reason::kLimited;
    decision.retry_after -= age;
    return decision;
  }
  void GiveBack(Now) override { ++parts_.given_back; }
  void Done(const Decision& decision) override { parts_.done(decision); }

 private:
  Parts parts_;
  std::uint64_t id_ = 0;
};

class SlowAttemptsTest : public testing::Test {
 protected:
  static constexpr std::size_t kCapacity = 4'000;

  WaitId InLine(const std::string& name, std::uint64_t key, Duration patience) {
    const SteadyTime now = clock_.Read().steady;
    std::unique_ptr<Waiter> waiter = std::make_unique<SlowWaiter>(
        SlowWaiter::Parts{elsewhere_, given_back_, answers_.For(name)});
    return waiting_->StandInLine(waiter, {&key, 1}, now, now + patience).value();
  }
  // Says what came of the attempt.
  bool Answer(WaitId id, Waiter::Answer answer) {
    answer.heard = std::make_shared<HeardDecision>(answer.decision);
    elsewhere_.SetOutcome(static_cast<std::uint64_t>(id), answer);
    return reports_->Over(id);
  }
  static Waiter::Answer Denial(Duration retry_after = seconds(1'000)) {
    return {.decision = {.reason = Reason::kLimited, .limit = 9, .retry_after = retry_after},
            .again = true};
  }
  static Waiter::Answer Passes() { return {.decision = {.allowed = true, .reason = Reason::kOk}}; }
  bool HasLine(std::uint64_t key) { return waiting_->HasLine({&key, 1}); }
  void Nudge(std::uint64_t key) { waiting_->Nudge({&key, 1}); }
  // All that was told of so far is taken in when a wait that begins later is over.
  void AwaitServed() {
    const std::size_t told = answers_.size();
    const WaitId id = InLine("witness", 12'345, seconds(1));
    EXPECT_EQ(elsewhere_.Next().id, id);
    Answer(id, Passes());
    answers_.Names(told + 1);
  }
  std::vector<std::string> Told() {
    std::vector<std::string> names = answers_.Names(0);
    std::erase(names, "witness");
    return names;
  }

  ManualClock clock_;
  WaitAnswers answers_;
  Elsewhere elsewhere_;
  std::atomic<int> given_back_{0};
  std::unique_ptr<Waiting> waiting_ =
      std::make_unique<Waiting>(clock_, kCapacity, Waiting::Attempts::kTakeAWhile);
  std::shared_ptr<AttemptReports> reports_ = waiting_->reports();
};

TEST_F(SlowAttemptsTest, AreMadeForEveryLineAtATimeAndForTheFirstInEach) {
  const WaitId a = InLine("a", 1, seconds(60));
  const WaitId b = InLine("b", 1, seconds(60));
  const WaitId c = InLine("c", 2, seconds(60));
  EXPECT_EQ(elsewhere_.Next().id, a);
  EXPECT_EQ(elsewhere_.Next().id, c);
  EXPECT_TRUE(Answer(c, Passes()));
  EXPECT_THAT(answers_.Names(1), ElementsAre("c"));
  EXPECT_EQ(elsewhere_.pending(), 0U);
  EXPECT_TRUE(Answer(a, Passes()));
  EXPECT_EQ(elsewhere_.Next().id, b);
  EXPECT_TRUE(Answer(b, Passes()));
  EXPECT_THAT(answers_.Names(3), ElementsAre("c", "a", "b"));
}

TEST_F(SlowAttemptsTest, KeepNobodyElseFromBeingToldInTime) {
  const WaitId delayed = InLine("delayed", 1, seconds(60));
  EXPECT_EQ(elsewhere_.Next().id, delayed);
  Waiter::Answer later = Passes();
  later.decision.delay = seconds(5);
  Answer(delayed, later);
  AwaitServed();
  const WaitId slow = InLine("slow", 2, seconds(60));
  EXPECT_EQ(elsewhere_.Next().id, slow);
  clock_.Advance(seconds(5));
  answers_.Names(2);
  EXPECT_THAT(Told(), ElementsAre("delayed"));
  Answer(slow, Passes());
  answers_.Names(3);
}

TEST_F(SlowAttemptsTest, AreNotMadeForOneBehindOthersWhoseTimeIsOver) {
  const WaitId first = InLine("first", 1, seconds(60));
  InLine("second", 1, seconds(5));
  EXPECT_EQ(elsewhere_.Next().id, first);
  Answer(first, Denial(seconds(20)));
  AwaitServed();
  Nudge(1);
  EXPECT_EQ(elsewhere_.Next().id, first);  // And gets no answer.
  clock_.Advance(seconds(5));
  EXPECT_EQ(answers_.Names(2).back(), "second");
  EXPECT_EQ(answers_.At(1).reason, Reason::kLimited);
  EXPECT_EQ(answers_.At(1).limit, 9);
  EXPECT_EQ(answers_.At(1).retry_after, seconds(15));
  EXPECT_EQ(elsewhere_.pending(), 0U);
}

TEST_F(SlowAttemptsTest, AreMadeForOneBehindOthersIfNothingIsKnown) {
  InLine("first", 1, seconds(60));
  elsewhere_.Next();
  const WaitId second = InLine("second", 1, seconds(5));
  while (clock_.Waiting() == 0) std::this_thread::yield();
  clock_.Advance(seconds(5));
  const Elsewhere::Asked asked = elsewhere_.Next();
  EXPECT_EQ(asked.id, second);
  EXPECT_EQ(asked.turn, Waiter::Turn::kNotYet);
  Answer(second, Denial());
  EXPECT_THAT(answers_.Names(1), ElementsAre("second"));
}

TEST_F(SlowAttemptsTest, EndTheWaitIfTheyTakeLongerThanThePatience) {
  const WaitId id = InLine("a", 1, seconds(5));
  elsewhere_.Next();
  clock_.Advance(seconds(6));
  Answer(id, Denial());
  EXPECT_FALSE(answers_.At(0).allowed);
  EXPECT_EQ(elsewhere_.pending(), 0U);
}

TEST_F(SlowAttemptsTest, AreRepeatedAfterANudgeThatMayHaveComeTooLate) {
  const WaitId id = InLine("a", 1, seconds(60));
  elsewhere_.Next();
  Nudge(1);
  Answer(id, Denial());
  EXPECT_EQ(elsewhere_.Next().id, id);
  Answer(id, Denial());
  AwaitServed();
  EXPECT_EQ(elsewhere_.pending(), 0U);
  EXPECT_EQ(waiting_->size(), 1U);
}

TEST_F(SlowAttemptsTest, HoldUpNobodyWhoCancelsEvenIfThoseFromNowOnAreMadeAtOnce) {
  const WaitId first = InLine("first", 1, seconds(100));
  EXPECT_EQ(elsewhere_.Next().id, first);
  waiting_->SetAttempts(Waiting::Attempts::kAtOnce, 1);
  EXPECT_TRUE(waiting_->Cancel(first));  // Its answer never comes.
  EXPECT_TRUE(Answer(first, Passes()));
  while (given_back_ == 0) std::this_thread::yield();
  EXPECT_EQ(waiting_->size(), 0U);
}

TEST_F(SlowAttemptsTest, GiveBackWhatACancelledOneTookAndLetTheNextTryAtOnce) {
  const WaitId first = InLine("first", 1, seconds(60));
  EXPECT_EQ(elsewhere_.Next().id, first);
  const WaitId second = InLine("second", 1, seconds(60));
  EXPECT_TRUE(waiting_->Cancel(first));
  EXPECT_FALSE(waiting_->Cancel(first));
  EXPECT_EQ(elsewhere_.Next().id, second);
  Answer(first, Passes());
  AwaitServed();
  EXPECT_EQ(given_back_, 1);
  EXPECT_EQ(waiting_->size(), 1U);
  EXPECT_TRUE(waiting_->Cancel(second));
  Answer(second, Denial());
  AwaitServed();
  EXPECT_EQ(given_back_, 1);
  EXPECT_EQ(waiting_->size(), 0U);
  EXPECT_THAT(Told(), ElementsAre());
}

TEST_F(SlowAttemptsTest, AreNotWaitedForAtTheEnd) {
  const WaitId a = InLine("a", 1, seconds(60));
  const WaitId b = InLine("b", 2, seconds(60));
  elsewhere_.Next();
  elsewhere_.Next();
  EXPECT_TRUE(waiting_->Cancel(b));
  waiting_.reset();
  EXPECT_THAT(answers_.Names(1), ElementsAre("a"));
  EXPECT_EQ(answers_.At(0).reason, Reason::kOverload);
  // Whoever comes too late hears of it, and has to give back by itself.
  EXPECT_FALSE(Answer(a, Passes()));
  reports_->Nudge({});
}

TEST_F(SlowAttemptsTest, AreRepeatedWithinATenthOfASecondIfNobodyWouldSayWhenThereIsRoom) {
  const WaitId id = InLine("a", 1, seconds(60));
  elsewhere_.Next();
  Waiter::Answer denial = Denial();
  denial.not_before = Duration(0);
  for (int i = 0; i < 20; ++i) {
    Answer(id, denial);
    AwaitServed();
    clock_.Advance(milliseconds(70));
    AwaitServed();  // Not too often either.
    clock_.Advance(milliseconds(30));
    EXPECT_EQ(elsewhere_.Next().id, id);
  }
  denial.not_before = seconds(10);
  Answer(id, denial);
  AwaitServed();
  clock_.Advance(seconds(10) - Duration(1));
  AwaitServed();
  clock_.Advance(Duration(1));
  EXPECT_EQ(elsewhere_.Next().id, id);
}

TEST_F(SlowAttemptsTest, StandByWhenTooManyAreUnderWay) {
  constexpr std::size_t kMore = 700;
  std::deque<WaitId> under_way;
  for (std::size_t i = 0; i < Waiting::kMostAttempts + kMore; ++i) {
    InLine("x", i, seconds(60));
  }
  for (std::size_t i = 0; i < Waiting::kMostAttempts; ++i)
    under_way.push_back(elsewhere_.Next().id);
  const WaitId cancelled = InLine("cancelled", 1'000'000, seconds(60));
  EXPECT_TRUE(waiting_->Cancel(cancelled));
  EXPECT_EQ(elsewhere_.pending(), 0U);
  std::size_t told = 0;
  for (; !under_way.empty(); under_way.pop_front()) {
    Answer(under_way.front(), Passes());
    answers_.Names(++told);
    if (told <= kMore) under_way.push_back(elsewhere_.Next().id);
  }
  EXPECT_EQ(told, Waiting::kMostAttempts + kMore);
  EXPECT_EQ(waiting_->size(), 0U);
}

TEST_F(SlowAttemptsTest, LoseNobodyWhenAllHappensAtOnce) {
  constexpr int kThreads = 3;
  constexpr int kEach = 400;
  std::atomic<int> cancelled{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> turn{0};
  for (std::uint64_t id = 1; id <= kThreads * kEach; ++id) {
    elsewhere_.SetOutcome(id, id % 3 == 0 ? Denial(milliseconds(5)) : Passes());
  }
  std::jthread answering([&] {
    while (!stop || elsewhere_.pending() > 0) {
      if (elsewhere_.pending() > 0) {
        EXPECT_TRUE(reports_->Over(elsewhere_.Next().id));
      } else {
        clock_.Advance(milliseconds(1));
        Nudge(turn++ % 5);
      }
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          const WaitId id = InLine("", static_cast<unsigned>(i % 5), milliseconds(i % 50));
          if (i % 4 == 0 && waiting_->Cancel(id)) ++cancelled;
        }
      });
    }
  }
  answers_.Names(static_cast<std::size_t>(kThreads * kEach - cancelled));
  while (waiting_->size() > 0) std::this_thread::yield();
  stop = true;
  answering.join();
  EXPECT_EQ(answers_.size(), static_cast<std::size_t>(kThreads * kEach - cancelled));
}

}  // namespace
}  // namespace weir
