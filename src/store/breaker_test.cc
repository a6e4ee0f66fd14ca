#include "store/breaker.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Outcome = Breaker::Outcome;

constexpr Duration kQuick = milliseconds(1);
constexpr Duration kSlow = milliseconds(26);

class BreakerTest : public testing::Test {
 protected:
  void Note(Outcome outcome, std::uint32_t calls = 1, Duration took = kQuick) {
    breaker_.Note(outcome, took, now_, calls);
  }
  void NoteEach(Outcome outcome, int times, Duration took = kQuick) {
    for (int i = 0; i < times; ++i) Note(outcome, 1, took);
  }
  void Open() {
    NoteEach(Outcome::kRefused, 3);
    ASSERT_FALSE(breaker_.IsClosed());
  }
  // Waits until a probe may be made, and makes it.
  void Probe(bool succeeded) {
    now_ += breaker_.UntilProbe(now_);
    ASSERT_TRUE(breaker_.TakeProbe(now_));
    breaker_.NoteProbe(succeeded, now_);
  }

  Breaker breaker_{{.slow = milliseconds(25), .seed = 7}};
  SteadyTime now_{seconds(1000)};
};

TEST_F(BreakerTest, StaysClosedWhileCallsAreAnswered) {
  for (int i = 0; i < 10'000; ++i) {
    Note(Outcome::kAnswered);
    now_ += kQuick;
  }
  EXPECT_TRUE(breaker_.IsClosed());
  EXPECT_EQ(breaker_.openings(), 0u);
  EXPECT_EQ(breaker_.UntilProbe(now_), Duration(0));
  EXPECT_FALSE(breaker_.TakeProbe(now_));
}

TEST_F(BreakerTest, OpensWhenHalfOfTwentyCallsFailed) {
  NoteEach(Outcome::kAnswered, 10);
  NoteEach(Outcome::kFailed, 9);
  EXPECT_TRUE(breaker_.IsClosed());
  Note(Outcome::kFailed);
  EXPECT_FALSE(breaker_.IsClosed());
  EXPECT_EQ(breaker_.openings(), 1u);
}

TEST_F(BreakerTest, OpensAtTheTwentiethCallEvenIfThatOneWasAnswered) {
  NoteEach(Outcome::kFailed, 19);
  EXPECT_TRUE(breaker_.IsClosed());
  Note(Outcome::kAnswered);
  EXPECT_FALSE(breaker_.IsClosed());
}

TEST_F(BreakerTest, TakesSlowAnswersForFailures) {
  NoteEach(Outcome::kAnswered, 10, kQuick);
  NoteEach(Outcome::kAnswered, 9, kSlow);
  EXPECT_TRUE(breaker_.IsClosed());
  Note(Outcome::kAnswered, 1, kSlow);
  EXPECT_FALSE(breaker_.IsClosed());
}

TEST_F(BreakerTest, StaysClosedIfLessThanHalfFailed) {
  for (int i = 0; i < 1'000; ++i) {
    NoteEach(Outcome::kAnswered, 2);
    Note(Outcome::kFailed);
    now_ += kQuick;
  }
  EXPECT_TRUE(breaker_.IsClosed());
}

TEST_F(BreakerTest, ForgetsCallsAfterASecond) {
  NoteEach(Outcome::kFailed, 19);
  now_ += seconds(1);
  NoteEach(Outcome::kFailed, 19);
  EXPECT_TRUE(breaker_.IsClosed());
  now_ += milliseconds(800);
  Note(Outcome::kFailed);
  EXPECT_FALSE(breaker_.IsClosed());
}

TEST_F(BreakerTest, OpensAtFiveTimeOutsInARow) {
  NoteEach(Outcome::kTimedOut, 4);
  Note(Outcome::kAnswered);
  NoteEach(Outcome::kTimedOut, 4);
  EXPECT_TRUE(breaker_.IsClosed());
  now_ += seconds(60);  // However far apart.
  Note(Outcome::kTimedOut);
  EXPECT_FALSE(breaker_.IsClosed());
}

TEST_F(BreakerTest, CountsEveryCallOfABatchThatTimedOut) {
  Note(Outcome::kTimedOut, 5);
  EXPECT_FALSE(breaker_.IsClosed());
}

TEST_F(BreakerTest, OpensAtThreeRefusedConnectionsInARow) {
  NoteEach(Outcome::kRefused, 2);
  Note(Outcome::kAnswered);
  NoteEach(Outcome::kRefused, 2);
  EXPECT_TRUE(breaker_.IsClosed());
  Note(Outcome::kRefused);
  EXPECT_FALSE(breaker_.IsClosed());
}

TEST_F(BreakerTest, GivesOneProbeToOneCallerAfterHalfASecondToASecond) {
  Open();
  EXPECT_FALSE(breaker_.TakeProbe(now_));
  const Duration wait = breaker_.UntilProbe(now_);
  EXPECT_GE(wait, milliseconds(500));
  EXPECT_LE(wait, seconds(1));
  EXPECT_FALSE(breaker_.TakeProbe(now_ + wait - Duration(1)));
  EXPECT_TRUE(breaker_.TakeProbe(now_ + wait));
  EXPECT_FALSE(breaker_.TakeProbe(now_ + wait));
}

TEST_F(BreakerTest, GivesProbesAtRandomTimes) {
  Open();
  std::vector<Duration> waits;
  for (int i = 0; i < 200; ++i) {
    waits.push_back(breaker_.UntilProbe(now_));
    Probe(false);
  }
  const auto [shortest, longest] = std::ranges::minmax(waits);
  EXPECT_GE(shortest, milliseconds(500));
  EXPECT_LT(shortest, milliseconds(520));
  EXPECT_LE(longest, seconds(1));
  EXPECT_GT(longest, milliseconds(980));
}

TEST_F(BreakerTest, ClosesWhenAProbeSucceedsAndNotBefore) {
  Open();
  Probe(false);
  EXPECT_FALSE(breaker_.IsClosed());
  Probe(true);
  EXPECT_TRUE(breaker_.IsClosed());
  EXPECT_EQ(breaker_.openings(), 1u);
}

TEST_F(BreakerTest, GivesAnotherProbeIfNothingIsHeardOfTheFirst) {
  Open();
  now_ += seconds(1);
  EXPECT_TRUE(breaker_.TakeProbe(now_));
  now_ += seconds(1);
  EXPECT_TRUE(breaker_.TakeProbe(now_));
}

TEST_F(BreakerTest, IgnoresLateNewsWhileItIsOpen) {
  Open();
  NoteEach(Outcome::kAnswered, 1'000);
  EXPECT_FALSE(breaker_.IsClosed());
  NoteEach(Outcome::kTimedOut, 1'000);
  Probe(true);
  Note(Outcome::kTimedOut);
  EXPECT_TRUE(breaker_.IsClosed());
}

TEST_F(BreakerTest, StartsToCountAnewWhenItCloses) {
  NoteEach(Outcome::kFailed, 20);
  Probe(true);
  NoteEach(Outcome::kFailed, 19);
  EXPECT_TRUE(breaker_.IsClosed());
  Note(Outcome::kFailed);
  EXPECT_FALSE(breaker_.IsClosed());
  EXPECT_EQ(breaker_.openings(), 2u);
}

TEST_F(BreakerTest, IgnoresAProbeThatNobodyNeedsAnyMore) {
  breaker_.NoteProbe(false, now_);
  breaker_.NoteProbe(true, now_);
  EXPECT_TRUE(breaker_.IsClosed());
}

TEST_F(BreakerTest, LeavesAServerThatFailsAgainAtOnceAloneForASecond) {
  Open();
  Probe(true);
  now_ += milliseconds(999);
  Open();
  EXPECT_GE(breaker_.UntilProbe(now_), seconds(1));
  EXPECT_LE(breaker_.UntilProbe(now_), milliseconds(1500));
  Probe(true);
  now_ += seconds(1);
  Open();
  EXPECT_LE(breaker_.UntilProbe(now_), seconds(1));
}

TEST_F(BreakerTest, DoesNotToggleMoreThanOnceASecondIfTheServerFlaps) {
  constexpr Duration kStep = milliseconds(5);
  std::vector<SteadyTime> opened;
  std::uint64_t openings = 0;
  for (Duration passed(0); passed < seconds(120); passed += kStep) {
    const bool up = passed / milliseconds(200) % 2 == 0;
    now_ += kStep;
    if (breaker_.IsClosed()) {
      up ? Note(Outcome::kAnswered, 10) : Note(Outcome::kTimedOut, 10, milliseconds(50));
    } else if (breaker_.TakeProbe(now_)) {
      breaker_.NoteProbe(up, now_);
    }
    if (breaker_.openings() != openings) opened.push_back(now_);
    openings = breaker_.openings();
  }
  EXPECT_GT(opened.size(), 10u);
  // The first relapse is not known to be one before it comes.
  for (std::size_t i = 2; i < opened.size(); ++i) {
    EXPECT_GE(opened[i] - opened[i - 1], seconds(1));
  }
}

TEST_F(BreakerTest, IsNotStuckWhenTheClockIsSetBack) {
  Open();
  now_ -= seconds(3600);
  EXPECT_EQ(breaker_.UntilProbe(now_), Duration(0));
  EXPECT_TRUE(breaker_.TakeProbe(now_));
  breaker_.NoteProbe(true, now_);
  NoteEach(Outcome::kFailed, 19);
  now_ -= seconds(3600);
  Note(Outcome::kFailed);  // What was counted in times to come is not counted.
  EXPECT_TRUE(breaker_.IsClosed());
}

// The same by looking at everything that has ever happened.
class Model {
 public:
  bool IsOpenAfter(Outcome outcome, Duration took, SteadyTime now, std::uint32_t calls) {
    const bool bad = outcome != Outcome::kAnswered || took > milliseconds(25);
    calls_.push_back({now, calls, bad});
    if (outcome == Outcome::kAnswered) timed_out_ = refused_ = 0;
    if (outcome == Outcome::kTimedOut) timed_out_ += calls;
    if (outcome == Outcome::kRefused) refused_ += calls;
    std::uint64_t all = 0;
    std::uint64_t failed = 0;
    for (const Call& call : calls_) {
      if (now.time_since_epoch() / milliseconds(100) -
              call.at.time_since_epoch() / milliseconds(100) >=
          10) {
        continue;
      }
      all += call.calls;
      failed += call.bad ? call.calls : 0;
    }
    return timed_out_ >= 5 || refused_ >= 3 || (all >= 20 && 2 * failed >= all);
  }

 private:
  struct Call {
    SteadyTime at;
    std::uint32_t calls;
    bool bad;
  };
  std::vector<Call> calls_;
  std::uint32_t timed_out_ = 0;
  std::uint32_t refused_ = 0;
};

RC_GTEST_PROP(BreakerProperty, OpensExactlyWhenTheModelDoes, ()) {
  Breaker breaker({.seed = 1});
  Model model;
  SteadyTime now{seconds(*rc::gen::inRange(1, 1'000'000))};
  const int bad_percent = *rc::gen::inRange(0, 100);
  const int steps = *rc::gen::inRange(1, 300);
  for (int i = 0; i < steps && breaker.IsClosed(); ++i) {
    now += milliseconds(*rc::gen::inRange(0, 150));
    const bool bad = *rc::gen::inRange(0, 100) < bad_percent;
    const auto outcome =
        bad ? *rc::gen::elementOf(std::vector<Outcome>{Outcome::kAnswered, Outcome::kFailed,
                                                       Outcome::kTimedOut, Outcome::kRefused})
            : Outcome::kAnswered;
    const Duration took = bad ? kSlow : kQuick;
    const auto calls = *rc::gen::inRange<std::uint32_t>(1, 4);
    breaker.Note(outcome, took, now, calls);
    RC_ASSERT(breaker.IsClosed() != model.IsOpenAfter(outcome, took, now, calls));
  }
}

}  // namespace
}  // namespace weir
