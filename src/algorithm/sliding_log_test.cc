#include "algorithm/sliding_log.h"

#include <deque>
#include <initializer_list>
#include <string_view>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

LimitSpec Logged() {
  LimitSpec spec;
  spec.algorithm = Algorithm::kSlidingLog;
  return spec;
}
DrivenKey SlidingLogKey(std::string_view text, const LimitSpec& defaults = Logged()) {
  return DrivenKey(Limit::Parse(text, defaults).value());
}

TEST(SlidingLog, DeniesOneMoreThanItsLimitUntilTheOldestIsAPeriodOld) {
  DrivenKey key = SlidingLogKey("3/min");
  EXPECT_EQ(key.Check().remaining, 2);
  key.Advance(20s);
  EXPECT_EQ(key.Check(2).remaining, 0);
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.limit, 3);
  EXPECT_EQ(denial.retry_after, 40s);
  EXPECT_EQ(denial.reset_after, 60s);
  EXPECT_EQ(key.Check(2).retry_after, 60s);
  key.Advance(40s - Duration(1));
  EXPECT_FALSE(key.Check().allowed);
  key.Advance(Duration(1));
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_FALSE(key.Check().allowed);
}

TEST(SlidingLog, DoesNotPassAHundredOneSecondAfterAHundred) {
  DrivenKey key = SlidingLogKey("100/min");
  key.Advance(12h + 59s);
  EXPECT_TRUE(key.Check(100).allowed);
  key.Advance(1s);
  EXPECT_FALSE(key.Check(100).allowed);
  EXPECT_EQ(TakeAll(key), 0);
  key.Advance(59s);
  EXPECT_TRUE(key.Check(100).allowed);
}

TEST(SlidingLog, ReachesItsLimitInEveryWindowAndNeverPassesIt) {
  DrivenKey key = SlidingLogKey("20/s");
  std::deque<Duration> admitted;
  Duration now{0};
  for (int i = 0; i < 20'000; ++i) {
    const Duration step = i % 3 == 0 ? Duration(0) : Duration(i * 7'919'717LL % 90'000'000);
    key.Advance(step);
    now += step;
    while (!admitted.empty() && admitted.front() <= now - 1s) admitted.pop_front();
    const bool room = admitted.size() < 20;
    ASSERT_EQ(key.Check().allowed, room);  // Exact, in both directions.
    if (room) admitted.push_back(now);
  }
}

TEST(SlidingLog, KeepsOneEventForAllOfAnInstant) {
  DrivenKey key = SlidingLogKey("1000/min");
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(key.Check().allowed);
  EXPECT_EQ(key.log.size(), 1);
  EXPECT_EQ(key.log.total(), 500);
}

TEST(SlidingLog, IsFreshBeforeAnythingIsCountedAndOnceAllIsOver) {
  DrivenKey key = SlidingLogKey("3/min");
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(key.Check().reset_after, 60s);
  key.Advance(60s);
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(key.log.size(), 0);
}

TEST(SlidingLog, KnowsWhenItsKeyCanBeForgotten) {
  DrivenKey key = SlidingLogKey("3/min");
  EXPECT_EQ(key.LogStepNow({.cost = 1}, Effect::kApply).fresh_at, key.instant().now + ToTicks(60s));
  key.Reset();
  EXPECT_EQ(key.LogStepNow({.verb = Verb::kPeek}, Effect::kApply).fresh_at, Ticks(0));
}

TEST(SlidingLog, TakesNothingWhenItOnlyDecides) {
  DrivenKey key = SlidingLogKey("3/min");
  const LogStep step = key.LogStepNow({.cost = 2}, Effect::kDecideOnly);
  EXPECT_TRUE(step.decision.allowed);
  EXPECT_EQ(step.decision.remaining, 1);
  EXPECT_EQ(step.charged, 2);
  EXPECT_EQ(step.receipt, key.instant().now);
  EXPECT_EQ(key.log.size(), 0);
  EXPECT_EQ(key.LogStepNow({.verb = Verb::kPenalize, .cost = 9}, Effect::kDecideOnly).charged, 0);
  EXPECT_EQ(key.log.size(), 0);
}

TEST(SlidingLog, DistinguishesNeverFromNotNow) {
  DrivenKey key = SlidingLogKey("3/min");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check(3).reason, Reason::kLimited);
  EXPECT_EQ(key.Check(4).reason, Reason::kNeverFits);
  EXPECT_EQ(key.Check(kHuge).retry_after, kNever);
}

TEST(SlidingLog, LeavesWhatCountsAsItWasWhenItDeniesOrIsOnlyAsked) {
  DrivenKey key = SlidingLogKey("3/min");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_FALSE(key.Check(2).allowed);
  EXPECT_TRUE(key.Peek().allowed);
  EXPECT_TRUE(key.Check(0).allowed);
  EXPECT_EQ(key.log.total(), 2);
}

TEST(SlidingLog, KeepsEventsThatAreLaterThanTheClockAndStaysInOrder) {
  DrivenKey key = SlidingLogKey("3/min");
  key.Advance(60s);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(-30s);
  EXPECT_EQ(key.Peek().remaining, 1);
  EXPECT_EQ(key.Check().reset_after, 90s);
  EXPECT_EQ(key.Check().retry_after, 90s);
  EXPECT_EQ(key.log.size(), 1);
}

TEST(SlidingLog, CountsWhatIsMoreThanAPeriodLaterAsOfNow) {
  DrivenKey key = SlidingLogKey("3/min");
  key.Advance(59s);
  EXPECT_TRUE(key.Check().allowed);
  key.Advance(1s);
  EXPECT_TRUE(key.Check().allowed);
  key.Advance(24h);
  EXPECT_FALSE(key.Check(4).allowed);
  EXPECT_TRUE(key.Check().allowed);
  key.Advance(-24h - 60s);
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check().retry_after, 60s);
  key.Advance(60s);
  EXPECT_EQ(TakeAll(key), 3);
}

TEST(SlidingLog, RefundsTheOldestFirst) {
  DrivenKey key = SlidingLogKey("10/min");
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(1s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Advance(1s);
  EXPECT_TRUE(key.Check(4).allowed);
  EXPECT_EQ(key.Refund(4).remaining, 5);
  // All of the first is gone, and two of the second.
  EXPECT_EQ(key.Check(7).retry_after, 60s);
  EXPECT_EQ(key.Check(6).retry_after, 59s);
  EXPECT_EQ(key.Refund(kHuge).remaining, 10);
  EXPECT_EQ(key.Peek().reset_after, 0s);
}

TEST(SlidingLog, RefundsAReservationWhereItWasCharged) {
  DrivenKey key = SlidingLogKey("10/min");
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(1s);
  EXPECT_TRUE(key.Check(3).allowed);
  const DrivenKey::Receipt second = key.receipt();
  key.Advance(1s);
  EXPECT_TRUE(key.Check(4).allowed);
  EXPECT_EQ(key.Settle(second, 1).remaining, 3);
  EXPECT_EQ(key.Check(5).retry_after, 58s);
  EXPECT_EQ(key.Check(6).retry_after, 59s);
  EXPECT_EQ(key.Unbook({1, second.at}).remaining, 4);
  EXPECT_EQ(key.Unbook({1, second.at}).remaining, 4);  // It is gone.
  key.Advance(59s);
  EXPECT_EQ(key.Cancel(second).remaining, 6);  // It no longer counts.
}

TEST(SlidingLog, FindsTheWholeOfAChargeThatMendingGaveTheDateOfOthers) {
  DrivenKey key = SlidingLogKey("10/min");
  key.Advance(24h);
  EXPECT_TRUE(key.Check(2).allowed);
  key.Advance(1s);
  EXPECT_TRUE(key.Check(3).allowed);
  key.Advance(-24h);
  EXPECT_TRUE(key.Check(4).allowed);  // All three have one date now, in events of their own.
  EXPECT_EQ(key.Cancel(key.receipt()).remaining, 5);
}

TEST(SlidingLog, CommitAboveWhatWasReservedIsChargedNow) {
  DrivenKey key = SlidingLogKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  EXPECT_EQ(key.Settle(receipt, 4).remaining, 6);
  key.Advance(10s);
  EXPECT_EQ(key.Settle(receipt, 7).remaining, 3);
  EXPECT_EQ(key.Peek().reset_after, 60s);
  EXPECT_EQ(key.Check(7).retry_after, 50s);
}

TEST(SlidingLog, DebtEndsAtTwiceTheLimit) {
  DrivenKey key = SlidingLogKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  EXPECT_EQ(key.Settle(key.receipt(), kHuge).remaining, 0);
  EXPECT_EQ(key.log.total(), 20);
  EXPECT_EQ(key.Penalize(kHuge).remaining, 0);
  EXPECT_EQ(key.log.total(), 20);
}

TEST(SlidingLog, OverdraftAllowsAsLongAsAnythingIsLeft) {
  LimitSpec defaults = Logged();
  defaults.overdraft = true;
  DrivenKey key = SlidingLogKey("10/min", defaults);
  EXPECT_TRUE(key.Check(9).allowed);
  key.Advance(1s);
  EXPECT_TRUE(key.Check(kHuge).allowed);
  EXPECT_EQ(key.receipt().charged, 11);
  const Decision denial = key.Check(5);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.retry_after, 60s);
}

TEST(SlidingLog, IsFreshAfterAReset) {
  DrivenKey key = SlidingLogKey("10/min");
  EXPECT_TRUE(key.Check(4).allowed);
  key.Advance(1s);
  key.Penalize(kHuge);
  EXPECT_EQ(key.Reset().remaining, 10);
  EXPECT_EQ(key.log.size(), 0);
  EXPECT_EQ(TakeAll(key), 10);
}

// What cannot be remembered must not be let through.
TEST(SlidingLog, DeniesWithOverloadWhenThereIsNoMemoryForOneMoreEvent) {
  DrivenKey key = SlidingLogKey("10/min");
  key.log = DequeLog(1);
  EXPECT_TRUE(key.Check().allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  key.Advance(1s);
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kOverload);
  EXPECT_EQ(denial.retry_after, 60s);
  EXPECT_EQ(denial.reset_after, 59s);
  EXPECT_EQ(denial.remaining, 9);
  EXPECT_EQ(key.log.total(), 1);
  EXPECT_EQ(key.Penalize(1).reason, Reason::kOverload);
  EXPECT_EQ(key.Settle(receipt, 5).reason, Reason::kOverload);
  EXPECT_EQ(key.Unbook({-1, receipt.at}).reason, Reason::kOverload);  // Of more than it booked.
  // What needs no room is done all the same.
  EXPECT_TRUE(key.Peek().allowed);
  EXPECT_EQ(key.Cancel(receipt).remaining, 10);
  key.log = DequeLog(0);
  EXPECT_EQ(key.Check().reason, Reason::kOverload);
  EXPECT_EQ(key.Check().reset_after, 0s);
}

TEST(SlidingLog, StaysAboutAsLongAsWhatCountsHoweverMuchIsGivenBack) {
  DrivenKey key = SlidingLogKey("1000/h");
  EXPECT_TRUE(key.Check().allowed);
  for (int i = 0; i < 3000; ++i) {
    key.Advance(1ms);
    EXPECT_TRUE(key.Check().allowed);
    const DrivenKey::Receipt receipt = key.receipt();
    key.Advance(1ms);
    EXPECT_TRUE(key.Check().allowed);
    const DrivenKey::Receipt next = key.receipt();
    key.Cancel(receipt);
    if (i % 100 != 0) key.Cancel(next);
    EXPECT_LE(key.log.size(), 2 * key.log.total() + 9);
  }
  EXPECT_EQ(key.Peek().remaining, 1000 - 31);
}

TEST(SlidingLog, SweepsHolesOutOfTheMiddleAndKeepsTheOrder) {
  DrivenKey key = SlidingLogKey("100/h");
  DrivenKey::Receipt receipts[20];
  for (DrivenKey::Receipt& receipt : receipts) {
    key.Advance(1s);
    EXPECT_TRUE(key.Check().allowed);
    receipt = key.receipt();
  }
  for (int i = 2; i < 18; ++i) key.Cancel(receipts[i]);
  EXPECT_LE(key.log.size(), 13);
  EXPECT_EQ(key.log.total(), 4);
  // The third oldest of those left was the nineteenth.
  EXPECT_EQ(key.Check(99).retry_after, 1h - 1s);
  EXPECT_EQ(key.Check(98).retry_after, 1h - 18s);
  // A hole at the end is dropped at once.
  key.Cancel(receipts[19]);
  EXPECT_EQ(key.log.Last()->at, receipts[18].at);
}

TEST(EventLog, KeepsItsBooksWhileEventsAreEmptiedAndFilled) {
  DequeLog log;
  log.Append({.at = Ticks(1), .cost = 5});
  log.Append({.at = Ticks(2), .cost = 3});
  log.Change(*log.First(), -9);  // Never below nothing.
  EXPECT_EQ(log.total(), 3);
  log.Change(*log.First(), 0);
  log.Change(*log.First(), 4);
  EXPECT_EQ(log.total(), 7);
  log.Change(*log.Last(), -3);
  log.Tidy();
  EXPECT_EQ(log.size(), 1);
  EXPECT_EQ(log.total(), 4);
  log.Clear();
  EXPECT_EQ(log.size(), 0);
  EXPECT_EQ(log.total(), 0);
}

TEST(SlidingLog, KeepsItsCountInProportionRoundedUpUnderANewLimit) {
  DrivenKey key = SlidingLogKey("100/min");
  for (int i = 0; i < 11; ++i) {
    EXPECT_TRUE(key.Check().allowed);
    key.Advance(1s);
  }
  key.ChangeTo(SlidingLogKey("10/min").limit());
  EXPECT_EQ(key.Peek().remaining, 8);
  key.ChangeTo(SlidingLogKey("100/min").limit());
  EXPECT_EQ(key.Peek().remaining, 80);
}

TEST(SlidingLog, AddsUpWhatWasCountedInTwoPlaces) {
  const Limit limit = SlidingLogKey("10/min").limit();
  const auto fill = [](DequeLog& log, std::initializer_list<Event> events) {
    for (const Event& event : events) log.Append(event);
  };
  DequeLog log(3);
  fill(log, {{Ticks(10), 1}, {Ticks(20), 2}});
  DequeLog late;
  fill(late, {{Ticks(5), 1}, {Ticks(10), 1}, {Ticks(15), 1}, {Ticks(25), 1}, {Ticks(30), 1}});
  MergeSlidingLogs(limit, log, late);
  // Each with the next that there is; the last two have one event between them, for lack of room.
  ASSERT_EQ(log.size(), 3);
  EXPECT_EQ(log.total(), 8);
  EXPECT_EQ(log.events()[0].at, Ticks(10));
  EXPECT_EQ(log.events()[0].cost, 3);
  EXPECT_EQ(log.events()[1].at, Ticks(20));
  EXPECT_EQ(log.events()[1].cost, 3);
  EXPECT_EQ(log.events()[2].at, Ticks(30));
  EXPECT_EQ(log.events()[2].cost, 2);
}

TEST(SlidingLog, AddsUpNoMoreThanTwiceTheLimitAndWithoutMemoryNothing) {
  const Limit limit = SlidingLogKey("10/min").limit();
  DequeLog late;
  late.Append({Ticks(5), 15});
  late.Append({Ticks(6), 15});
  late.Append({Ticks(7), 15});
  DequeLog log;
  MergeSlidingLogs(limit, log, late);
  EXPECT_EQ(log.total(), 20);
  EXPECT_EQ(log.size(), 2);
  DequeLog no_memory(0);
  MergeSlidingLogs(limit, no_memory, late);
  EXPECT_EQ(no_memory.total(), 0);
}

}  // namespace
}  // namespace weir
