#include "algorithm/token_bucket.h"

#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Duration kYear = std::chrono::hours(24 * 365);

DrivenKey Bucket(std::string_view text, const LimitSpec& defaults = {}) {
  return DrivenKey(Limit::Parse(text, defaults).value());
}
DrivenKey OverdrawnBucket(std::string_view text) {
  LimitSpec defaults;
  defaults.overdraft = true;
  return Bucket(text, defaults);
}

TEST(TokenBucket, DeniesOneMoreThanItsBurst) {
  DrivenKey key = Bucket("100/min burst 50");
  EXPECT_EQ(TakeAll(key), 50);
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.limit, 50);
  EXPECT_EQ(denial.remaining, 0);
  EXPECT_EQ(denial.cost, 1);
  EXPECT_EQ(denial.retry_after, 600ms);
  EXPECT_EQ(denial.reset_after, 30s);
}

TEST(TokenBucket, OfTenAtTwoASecondGivesTenAtOnceAndIsFullAgainFiveSecondsLater) {
  DrivenKey key = Bucket("2/s burst 10");
  EXPECT_EQ(TakeAll(key), 10);
  EXPECT_EQ(key.Peek().reset_after, 5s);
  key.Advance(5s - Duration(1));
  EXPECT_EQ(key.Peek().remaining, 9);
  key.Advance(Duration(1));
  EXPECT_EQ(key.Peek().remaining, 10);
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(TokenBucket, OfFiftyAtTenAMinuteGivesFiftyAtOnceAndThenTenAMinute) {
  DrivenKey key = Bucket("10/min burst 50");
  EXPECT_EQ(TakeAll(key), 50);
  for (int minute = 0; minute < 5; ++minute) {
    int taken = 0;
    for (int second = 0; second < 60; ++second) {
      key.Advance(1s);
      taken += TakeAll(key);
    }
    EXPECT_EQ(taken, 10) << minute;
  }
}

TEST(TokenBucket, OfAHundredDoesNotPassAHundredMoreOneSecondLater) {
  DrivenKey key = Bucket("100/min");
  key.Advance(12h + 59s);
  EXPECT_TRUE(key.Check(100).allowed);
  key.Advance(1s);
  EXPECT_FALSE(key.Check(100).allowed);
  EXPECT_EQ(TakeAll(key), 1);  // What a second brings back, and a part of the next.
}

TEST(TokenBucket, SaysToTheNanosecondWhenARequestWillPass) {
  // A third of a second is no whole number of ticks.
  DrivenKey key = Bucket("3/s");
  EXPECT_TRUE(key.Check(3).allowed);
  for (const std::int64_t cost : {1, 2, 3}) {
    const Duration wait = key.Check(cost).retry_after;
    DrivenKey early = key;
    early.Advance(wait - Duration(1));
    EXPECT_FALSE(early.Check(cost).allowed);
    DrivenKey then = key;
    then.Advance(wait);
    EXPECT_TRUE(then.Check(cost).allowed);
  }
}

TEST(TokenBucket, ReachesItsPromiseExactlyAndNeverPassesIt) {
  DrivenKey key = Bucket("1000/s burst 7");
  int admitted = TakeAll(key);
  for (int half_milliseconds = 1; half_milliseconds <= 200; ++half_milliseconds) {
    key.Advance(500us);
    admitted += TakeAll(key);
    EXPECT_EQ(admitted, 7 + half_milliseconds / 2);
  }
}

// throttlecrab clamped what it had stored wrongly, so that a key which had idled for a part of its
// burst got nearly twice its burst in one instant.
TEST(TokenBucket, NeverGivesMoreThanItsBurstAtOnceHoweverLongItIdled) {
  constexpr Duration kIdle[] = {1ns, 1ms, 50ms, 99ms, 100ms, 101ms, 1s, 24h};
  for (const Duration idle : kIdle) {
    for (const int before : {0, 1, 5, 9, 10}) {
      DrivenKey key = Bucket("100/s burst 10");
      for (int i = 0; i < before; ++i) EXPECT_TRUE(key.Check().allowed);
      key.Advance(idle);
      const auto back = static_cast<int>(idle / 10ms);
      EXPECT_EQ(TakeAll(key), std::min(10, 10 - before + back));
    }
  }
}

// redis-cell rounded its interval to whole milliseconds: 6000 a second did not limit at all.
TEST(TokenBucket, KeepsToItsRateFromOneAYearToTenMillionASecond) {
  for (const std::string_view text :
       {"1/366day", "7/day", "1/s", "3/s", "999/s", "6k/s", "16k/s", "333333/s", "1M/s", "3M/s",
        "7777777/s", "9999999/s", "10M/s"}) {
    DrivenKey key = Bucket(text);
    const std::int64_t count = key.limit().spec().count;
    const Duration period = key.limit().spec().period;
    std::int64_t admitted = 0;
    while (key.Peek().remaining > 0) admitted += key.Check(key.Peek().remaining).cost;
    // Four periods, always asking for as much as there is, at odd moments.
    for (int i = 0; i < 400; ++i) {
      key.Advance(period / 100);
      if (key.Peek().allowed) admitted += key.Check(key.Peek().remaining).cost;
    }
    EXPECT_LE(admitted, 5 * count) << text;
    EXPECT_GE(static_cast<double>(admitted), 5 * static_cast<double>(count) * (1 - 6.3e-4) - 2)
        << text;
  }
}

// bucket4j multiplied the rate by the time that had passed, and overflowed after a long idle.
TEST(TokenBucket, IsFullAndNoMoreAfterIdlingForYears) {
  for (const std::string_view text : {"10M/s", "1/366day", "10M/s burst 100G", "1/s burst 31M"}) {
    DrivenKey key = Bucket(text);
    EXPECT_TRUE(key.Check(key.limit().capacity()).allowed);
    key.Advance(4 * kYear);
    EXPECT_EQ(key.Peek().remaining, key.limit().capacity()) << text;
    EXPECT_EQ(key.Peek().reset_after, 0s) << text;
    EXPECT_TRUE(key.Check(key.limit().capacity()).allowed);
    EXPECT_FALSE(key.Check().allowed) << text;
  }
}

// redis-cell multiplied interval and cost unchecked: a huge cost came out cheap, or as a refund.
// throttlecrab cut bursts to 32 bits: 2^32 + 1 behaved as 1.
TEST(TokenBucket, IsNotFooledByCostsAtTheEdgesOfNumbers) {
  constexpr std::int64_t kBurst = (std::int64_t{1} << 32) + 1;
  constexpr std::int64_t kCosts[] = {kBurst + 1, std::int64_t{1} << 53, kHuge - 1, kHuge};
  for (const std::int64_t cost : kCosts) {
    DrivenKey key = Bucket("1M/s burst 4294967297");
    const Decision denial = key.Check(cost);
    EXPECT_FALSE(denial.allowed);
    EXPECT_EQ(denial.reason, Reason::kNeverFits);
    EXPECT_EQ(denial.retry_after, kNever);
    EXPECT_EQ(denial.remaining, kBurst);
    EXPECT_EQ(key.Peek().remaining, kBurst);
    EXPECT_EQ(key.Penalize(cost).remaining, 0);
    EXPECT_EQ(key.Refund(cost).remaining, kBurst);
    EXPECT_TRUE(key.Check(kBurst).allowed);
    EXPECT_FALSE(key.Check().allowed);
  }
}

TEST(TokenBucket, DistinguishesNeverFromNotNow) {
  DrivenKey key = Bucket("5/min");
  EXPECT_TRUE(key.Check(3).allowed);
  EXPECT_EQ(key.Check(5).reason, Reason::kLimited);
  const Decision never = key.Check(6);
  EXPECT_EQ(never.reason, Reason::kNeverFits);
  EXPECT_EQ(never.remaining, 2);
  EXPECT_EQ(never.reset_after, 36s);
}

// upstash/ratelimit took tokens for requests it rejected, and pinned a key for months.
TEST(TokenBucket, LeavesTheStateAsItWasWhenItDenies) {
  DrivenKey key = Bucket("5/min");
  EXPECT_TRUE(key.Check(3).allowed);
  const Ticks before = key.bucket.theoretical_arrival;
  for (const std::int64_t cost : {3, 5, 6, 1000}) {
    EXPECT_FALSE(key.Check(cost).allowed);
    EXPECT_EQ(key.bucket.theoretical_arrival, before);
    EXPECT_EQ(key.receipt().charged, 0);
  }
  key.Advance(1h);
  EXPECT_FALSE(key.Check(6).allowed);
  EXPECT_EQ(key.bucket.theoretical_arrival, before);
}

TEST(TokenBucket, AnswersACostOfNothingAsItWouldOneAndTakesNothing) {
  DrivenKey key = Bucket("2/min");
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(key.Check(0).allowed);
    EXPECT_EQ(key.Check(0).remaining, 2);
  }
  EXPECT_TRUE(key.Check(2).allowed);
  const Decision denial = key.Check(0);
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.cost, 0);
  EXPECT_EQ(denial.retry_after, 30s);
}

TEST(TokenBucket, TakesNothingWhenItIsOnlyLookedAt) {
  DrivenKey key = Bucket("5/min");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(key.Peek(5).allowed);
  EXPECT_EQ(key.Peek(5).remaining, 5);
  EXPECT_EQ(key.Peek(6).reason, Reason::kNeverFits);
  EXPECT_EQ(key.receipt().charged, 0);
}

TEST(TokenBucket, HandsOutNothingWhenTheClockStepsBack) {
  constexpr Duration kSteps[] = {1ns, 1ms, 1s, 1h, 24h * 300};
  for (const Duration back : kSteps) {
    DrivenKey key = Bucket("1/s burst 10");
    key.Advance(24h);
    EXPECT_EQ(TakeAll(key), 10);
    key.Advance(-back);
    EXPECT_FALSE(key.Check().allowed) << back.count();
    EXPECT_EQ(key.Peek().remaining, 0) << back.count();
  }
}

// A clock that stepped back (a processor's counter that differed between cores) made governor say
// half an hour where seconds would have done. Even denials must start the drain, or a key that is
// asked for all the time stays shut for as long as the clock was wrong.
TEST(TokenBucket, ShutsNobodyOutForLongerThanAFullDrainWhenTheClockStepsBack) {
  DrivenKey key = Bucket("1/s burst 10");
  EXPECT_EQ(TakeAll(key), 10);
  key.Advance(-24h * 300);
  const Duration drain = 2 * 10s + 60s;
  EXPECT_EQ(key.Check().reset_after, drain);
  for (Duration passed = 0s; passed < drain - 9s; passed += 1s) {
    EXPECT_FALSE(key.Check().allowed);
    EXPECT_FALSE(key.Check(11).allowed);
    key.Advance(1s);
  }
  EXPECT_TRUE(key.Check().allowed);
}

TEST(TokenBucket, IsFreshAfterAJumpForward) {
  DrivenKey key = Bucket("1/day");
  EXPECT_TRUE(key.Check().allowed);
  key.Advance(kYear);
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_FALSE(key.Check().allowed);
}

TEST(TokenBucket, BooksAheadForThoseWhoWaitFirstComeFirstServed) {
  DrivenKey key = Bucket("1/s burst 2");
  EXPECT_EQ(key.Check(2, 5s).delay, 0s);
  EXPECT_EQ(key.Check(1, 5s).delay, 1s);
  EXPECT_EQ(key.Check(2, 5s).delay, 3s);
  EXPECT_EQ(key.Check(1, 5s).delay, 4s);
  const Decision denial = key.Check(2, 5s);
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.retry_after, 1s);
  EXPECT_EQ(denial.delay, 0s);
  EXPECT_EQ(key.Check().retry_after, 5s);
  EXPECT_EQ(key.Check(1, 5s).delay, 5s);
}

TEST(TokenBucket, TellsHowLongARequestWouldWaitWithoutBookingIt) {
  DrivenKey key = Bucket("1/s burst 2");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Peek(2, 2s).delay, 2s);
  EXPECT_EQ(key.Peek(2, 2s).delay, 2s);
  EXPECT_FALSE(key.Peek(2, 2s - Duration(1)).allowed);
}

TEST(TokenBucket, GivesAPlaceBackOnlyToTheLastInLine) {
  DrivenKey key = Bucket("1/s burst 2");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check(1, 9s).delay, 1s);
  const DrivenKey::Receipt second = key.receipt();
  EXPECT_EQ(key.Check(2, 9s).delay, 3s);
  const DrivenKey::Receipt last = key.receipt();
  EXPECT_EQ(key.Unbook(second).reset_after, 5s);  // Somebody counts on it.
  EXPECT_EQ(key.Unbook(last).reset_after, 3s);
  EXPECT_EQ(key.Check(2, 9s).delay, 3s);
}

TEST(TokenBucket, ForgetsAPlaceThatHasComeUp) {
  DrivenKey key = Bucket("1/s burst 1");
  EXPECT_TRUE(key.Check().allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(1h);
  EXPECT_EQ(key.Unbook(receipt).reset_after, 0s);
  EXPECT_EQ(TakeAll(key), 1);
}

TEST(TokenBucket, NeverGoesPastFreshWhenItIsRefunded) {
  DrivenKey key = Bucket("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  EXPECT_EQ(key.Refund(3).remaining, 9);
  EXPECT_EQ(key.Refund(3).remaining, 10);
  EXPECT_EQ(key.Refund(kHuge).remaining, 10);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(TokenBucket, ChargesWhatAReservationTurnedOutToCost) {
  DrivenKey key = Bucket("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  EXPECT_EQ(receipt.charged, 4);
  DrivenKey same = key;
  EXPECT_EQ(same.Settle(receipt, 4).remaining, 6);
  DrivenKey less = key;
  EXPECT_EQ(less.Settle(receipt, 1).remaining, 9);
  DrivenKey nothing = key;
  EXPECT_EQ(nothing.Cancel(receipt).remaining, 10);
  DrivenKey more = key;
  EXPECT_EQ(more.Settle(receipt, 10).remaining, 0);
  EXPECT_EQ(more.Peek().reset_after, 60s);
  DrivenKey debt = key;
  EXPECT_EQ(debt.Settle(receipt, 15).reset_after, 90s);
  EXPECT_EQ(debt.Settle({0, Ticks(0)}, kHuge).reset_after, 120s);
}

TEST(TokenBucket, IgnoresARefundOnceTheChargeHasComeBackByItself) {
  DrivenKey key = Bucket("10/min");
  EXPECT_TRUE(key.Check(5).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(30s);
  EXPECT_TRUE(key.Check(10).allowed);
  EXPECT_EQ(key.Cancel(receipt).remaining, 0);
}

// The price of remembering no charge: see docs/decisions/0021.
TEST(TokenBucket, MayGiveBackWhatHasDrainedOnceAnEarlierChargeWasGivenBack) {
  DrivenKey key = Bucket("1/s burst 10");
  key.Check(5);
  const DrivenKey::Receipt first = key.receipt();
  key.Check(5);
  const DrivenKey::Receipt second = key.receipt();
  key.Cancel(first);
  key.Advance(5s);
  EXPECT_EQ(key.Peek().remaining, 10);
  EXPECT_TRUE(key.Check(5).allowed);
  EXPECT_EQ(key.Cancel(second).remaining, 10);
}

TEST(TokenBucket, LetsThroughNoMoreThanItsPromiseAndWhatWasGivenBackMeanwhile) {
  struct Event {
    Duration at;
    Duration taken;
    Duration given_back;
  };
  std::minstd_rand dice(1);
  const auto draw = [&](unsigned sides) { return static_cast<std::int64_t>(dice() % sides); };
  for (int round = 0; round < 100; ++round) {
    DrivenKey key = Bucket("1/s burst 10");
    const SteadyTime begin = key.now().steady;
    std::vector<Event> events;
    std::vector<DrivenKey::Receipt> open;
    for (int step = 0; step < 120; ++step) {
      key.Advance(std::chrono::milliseconds(draw(1'500)));
      const Duration at = key.now().steady - begin;
      if (draw(2) == 0) {
        const std::int64_t cost = 1 + draw(5);
        if (!key.Check(cost).allowed) continue;
        open.push_back(key.receipt());
        events.push_back({at, cost * 1s, Duration(0)});
      } else if (!open.empty()) {
        const auto settled = open.begin() + draw(static_cast<unsigned>(open.size()));
        const Duration before = key.Peek().reset_after;
        key.Settle(*settled, draw(static_cast<unsigned>(settled->charged) + 1));
        open.erase(settled);
        events.push_back({at, Duration(0), before - key.Peek().reset_after});
      }
    }
    for (std::size_t i = 0; i < events.size(); ++i) {
      Duration most = 10s;
      Duration sum{0};
      for (std::size_t j = i; j < events.size(); ++j) {
        most += events[j].given_back;
        sum += events[j].taken;
        ASSERT_LE(sum, most + events[j].at - events[i].at) << round;
      }
    }
  }
}

// Giving the whole charge back would let through more than burst + rate * t.
TEST(TokenBucket, GivesBackOnlyWhatOfACancelledChargeStillCounts) {
  DrivenKey key = Bucket("10/s");
  EXPECT_TRUE(key.Check(5).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(300ms);
  EXPECT_TRUE(key.Check(5).allowed);
  key.Advance(100ms);
  key.Cancel(receipt);
  const int more = TakeAll(key);
  EXPECT_EQ(more, 5);
  EXPECT_LE(5 + more, 10 + 1);  // Burst, and what a tenth of a second brings.
}

TEST(TokenBucket, OverdraftAllowsAsLongAsAnythingIsLeftAndChargesAll) {
  DrivenKey key = OverdrawnBucket("10/min");
  EXPECT_TRUE(key.Check(9).allowed);
  const Decision over = key.Check(6);
  EXPECT_TRUE(over.allowed);
  EXPECT_EQ(over.remaining, 0);
  EXPECT_EQ(over.reset_after, 90s);
  EXPECT_EQ(key.receipt().charged, 6);
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.retry_after, 36s);
  key.Advance(36s);
  EXPECT_TRUE(key.Check(1).allowed);
}

TEST(TokenBucket, DebtEndsAtTwiceTheCapacity) {
  DrivenKey key = OverdrawnBucket("10/min");
  EXPECT_TRUE(key.Check(1).allowed);
  const Decision over = key.Check(kHuge);
  EXPECT_TRUE(over.allowed);
  EXPECT_EQ(over.reset_after, 120s);
  EXPECT_EQ(key.receipt().charged, 19);
  EXPECT_EQ(key.Penalize(1000).reset_after, 120s);
}

TEST(TokenBucket, OverdraftThatWaitsIsChargedHoweverLongTheLineIs) {
  DrivenKey key = OverdrawnBucket("1/s burst 1");
  EXPECT_TRUE(key.Check(1).allowed);
  for (int i = 1; i <= 60; ++i) {
    EXPECT_TRUE(key.Check(1, 60s).allowed);
    EXPECT_EQ(key.receipt().charged, 1);
  }
  EXPECT_FALSE(key.Check(1, 60s).allowed);
}

TEST(TokenBucket, OverdraftTakesNothingWhenItIsOnlyAsked) {
  DrivenKey key = OverdrawnBucket("10/min");
  EXPECT_TRUE(key.Peek(1000).allowed);
  EXPECT_TRUE(key.Check(0).allowed);
  EXPECT_EQ(key.Peek().remaining, 10);
}

TEST(TokenBucket, PenaltyIsChargedWhetherItFitsOrNot) {
  DrivenKey key = Bucket("10/min");
  EXPECT_EQ(key.Penalize(3).remaining, 7);
  const Decision penalty = key.Penalize(12);
  EXPECT_TRUE(penalty.allowed);
  EXPECT_EQ(penalty.reason, Reason::kOk);
  EXPECT_EQ(penalty.remaining, 0);
  EXPECT_EQ(penalty.reset_after, 90s);
  EXPECT_EQ(key.Check().retry_after, 36s);
}

TEST(TokenBucket, PenaltyNeverShortensALineThatIsLongerThanAnyDebt) {
  DrivenKey key = Bucket("1/s burst 1");
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(key.Check(1, 60s).allowed);
  EXPECT_EQ(key.Penalize(5).reset_after, 30s);
}

TEST(TokenBucket, IsFreshAfterAReset) {
  DrivenKey key = Bucket("10/min");
  EXPECT_EQ(key.Penalize(20).remaining, 0);
  EXPECT_EQ(key.Reset().remaining, 10);
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(TakeAll(key), 10);
}

TEST(TokenBucket, IsFreshByEveryClockOnceItWasMadeFresh) {
  DrivenKey key = Bucket("1/min");
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_EQ(key.Refund(1).remaining, 1);
  key.Advance(-1s);
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_EQ(key.Reset().remaining, 1);
  key.Advance(-1s);
  EXPECT_TRUE(key.Check().allowed);
  key.Advance(1h);
  EXPECT_EQ(key.Reset().remaining, 1);
  key.Advance(-1h);
  EXPECT_TRUE(key.Check().allowed);
}

TEST(TokenBucket, IsNotTouchedByARefundThatIsIgnored) {
  DrivenKey key = Bucket("1/min");
  EXPECT_TRUE(key.Check().allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(1h);
  EXPECT_EQ(key.Cancel(receipt).remaining, 1);
  EXPECT_EQ(key.Refund(1).remaining, 1);
  EXPECT_EQ(key.bucket.theoretical_arrival, receipt.at);
  key.Advance(-1h);  // The clock had been wrong: the charge still counts.
  EXPECT_FALSE(key.Check().allowed);
}

// The same decision and the same state as the long way round, for every level that matters.
TEST(TokenBucket, DecidesOnOneUnitAsOnAnyOtherRequest) {
  for (const char* text :
       {"1/day", "7/min", "100/s burst 3", "10M/s burst 1", "3/366day", "10G/h"}) {
    SCOPED_TRACE(text);
    const Limit limit = Limit::Parse(text).value();
    ASSERT_TRUE(limit.is_plain_bucket());
    const Ticks now(std::int64_t{1} << 60);
    const std::int64_t interval = limit.emission_interval();
    const std::int64_t tolerance = limit.burst_tolerance();
    for (const std::int64_t level :
         {-tolerance, std::int64_t{0}, tolerance - 2 * interval, tolerance - interval, tolerance,
          tolerance + interval, 2 * tolerance, 2 * tolerance + limit.max_wait(), 3 * tolerance}) {
      for (const std::int64_t nudge : {-1, 0, 1}) {
        const BucketState state{now + Ticks(level + nudge)};
        const OneUnit unit = JudgeOneUnit(limit, state, now);
        const Decision decision = DescribeOneUnit(limit, "rule", unit);
        const Step<BucketState> step = StepTokenBucket(limit, state, {}, now);
        EXPECT_EQ(decision.allowed, step.decision.allowed);
        EXPECT_EQ(decision.reason, step.decision.reason);
        EXPECT_EQ(decision.source, step.decision.source);
        EXPECT_EQ(decision.rule, "rule");
        EXPECT_EQ(decision.limit, step.decision.limit);
        EXPECT_EQ(decision.remaining, step.decision.remaining);
        EXPECT_EQ(decision.cost, step.decision.cost);
        EXPECT_EQ(decision.retry_after, step.decision.retry_after);
        EXPECT_EQ(decision.reset_after, step.decision.reset_after);
        EXPECT_EQ(decision.delay, step.decision.delay);
        EXPECT_EQ(now + Ticks(unit.level), step.next.theoretical_arrival);
      }
    }
  }
}

TEST(TokenBucket, KeepsItsTimeToFullUnderANewRate) {
  DrivenKey key = Bucket("10/min");
  EXPECT_TRUE(key.Check(5).allowed);
  key.ChangeTo(Limit::Parse("100/min").value());
  EXPECT_EQ(key.Peek().reset_after, 30s);
  EXPECT_EQ(key.Peek().remaining, 50);  // The period is the same: what was used, in proportion.
}

TEST(TokenBucket, IsClampedToANewCapacity) {
  DrivenKey key = Bucket("10/min");
  EXPECT_EQ(key.Penalize(20).reset_after, 120s);
  key.ChangeTo(Limit::Parse("10/min burst 2").value());
  EXPECT_EQ(key.Peek().reset_after, 12s);
  key.ChangeTo(Limit::Parse("10/min burst 50").value());
  EXPECT_EQ(key.Peek().reset_after, 12s);
  EXPECT_EQ(key.Peek().remaining, 48);
}

}  // namespace
}  // namespace weir
