#include "algorithm/leaky_bucket.h"

#include <string_view>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

DrivenKey Queue(std::string_view text) {
  LimitSpec defaults;
  defaults.algorithm = Algorithm::kLeakyBucket;
  defaults.queue = true;
  return DrivenKey(Limit::Parse(text, defaults).value());
}

TEST(LeakyBucket, AsAMeterIsATokenBucket) {
  LimitSpec defaults;
  defaults.algorithm = Algorithm::kLeakyBucket;
  DrivenKey key(Limit::Parse("10/s burst 3", defaults).value());
  EXPECT_TRUE(key.Check(3).allowed);
  EXPECT_EQ(key.Check().retry_after, 100ms);
  key.Advance(100ms);
  const Decision decision = key.Check();
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.delay, 0s);
}

TEST(LeakyQueue, SpreadsABurstEvenlyAndDeniesWhenItsQueueIsFull) {
  DrivenKey key = Queue("10/s burst 3");
  for (int i = 0; i < 4; ++i) {  // One is served, three wait.
    const Decision decision = key.Check();
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.delay, i * 100ms);
    EXPECT_EQ(decision.remaining, 3 - i);
    EXPECT_EQ(decision.reset_after, (i + 1) * 100ms);
  }
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.retry_after, 100ms);
  EXPECT_EQ(denial.limit, 3);
  EXPECT_EQ(denial.remaining, 0);
  EXPECT_EQ(denial.delay, 0s);
}

TEST(LeakyQueue, NeverShowsMoreThanItsLimitAsRemaining) {
  DrivenKey key = Queue("10/s burst 3");
  EXPECT_EQ(key.Peek().remaining, 3);
  EXPECT_EQ(key.Check().remaining, 3);
  EXPECT_EQ(key.Check().remaining, 2);
}

TEST(LeakyQueue, LetsOutAtMostTheLargestCostAndTheRate) {
  DrivenKey key = Queue("10/s burst 5");
  // As much as it takes, at random moments, and when each goes ahead.
  Duration now{0};
  Duration last_end{0};
  for (int i = 0; i < 500; ++i) {
    const Duration step = Duration((i * 7919) % 130 * 1'000'000);
    key.Advance(step);
    now += step;
    const std::int64_t cost = 1 + i % 3;
    const Decision decision = key.Check(cost);
    if (!decision.allowed) continue;
    // Nobody goes ahead before the one before has had its time.
    EXPECT_GE(now + decision.delay, last_end);
    last_end = now + decision.delay + cost * 100ms;
  }
}

TEST(LeakyQueue, FitsOneMoreThanItsCapacityAndNeverMore) {
  DrivenKey key = Queue("10/s burst 3");
  EXPECT_EQ(key.Check(5).reason, Reason::kNeverFits);
  EXPECT_EQ(key.Check(5).retry_after, kNever);
  EXPECT_EQ(key.Check(kHuge).reason, Reason::kNeverFits);
  EXPECT_EQ(key.bucket.theoretical_arrival, Ticks(0));
  EXPECT_TRUE(key.Check(4).allowed);
  EXPECT_EQ(key.Check(4).reason, Reason::kLimited);
  EXPECT_EQ(key.Check(4).retry_after, 400ms);
}

TEST(LeakyQueue, ServesOneWhoNamesAWaitOnlyIfItsTurnComesWithinIt) {
  DrivenKey key = Queue("10/s burst 3");
  EXPECT_TRUE(key.Check(2).allowed);
  const Decision denial = key.Check(1, 150ms);
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.retry_after, 50ms);
  EXPECT_EQ(key.Check(1, 200ms).delay, 200ms);
  // Both too full and too long: the longer counts.
  EXPECT_EQ(key.Check(3, 1ms).retry_after, 299ms);
  EXPECT_EQ(key.Check(3, 250ms).retry_after, 200ms);
  EXPECT_EQ(key.Check().delay, 300ms);
}

TEST(LeakyQueue, TakesNothingWhenItIsOnlyAsked) {
  DrivenKey key = Queue("10/s burst 3");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Peek(2).delay, 200ms);
  EXPECT_EQ(key.Check(0).delay, 200ms);
  EXPECT_EQ(key.Check(0).remaining, 2);
  EXPECT_EQ(key.Peek(3).retry_after, 100ms);
  EXPECT_EQ(key.Peek().reset_after, 200ms);
}

TEST(LeakyQueue, LeavesTheStateAsItWasWhenItDenies) {
  DrivenKey key = Queue("10/s burst 1");
  EXPECT_TRUE(key.Check(2).allowed);
  const Ticks before = key.bucket.theoretical_arrival;
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_FALSE(key.Check(9).allowed);
  EXPECT_EQ(key.bucket.theoretical_arrival, before);
}

TEST(LeakyQueue, SaysToTheNanosecondWhenARequestWillPass) {
  DrivenKey key = Queue("3/s burst 2");
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

TEST(LeakyQueue, GivesAPlaceBackOnlyToTheLastInLine) {
  DrivenKey key = Queue("10/s burst 3");
  EXPECT_TRUE(key.Check(1).allowed);
  const DrivenKey::Receipt first = key.receipt();
  EXPECT_TRUE(key.Check(2).allowed);
  const DrivenKey::Receipt last = key.receipt();
  EXPECT_EQ(key.Unbook(first).remaining, 1);
  EXPECT_EQ(key.Unbook(last).remaining, 3);
  EXPECT_EQ(key.Check().delay, 100ms);
}

TEST(LeakyQueue, CanBeRefundedPenalizedSettledAndReset) {
  DrivenKey key = Queue("10/s burst 3");
  EXPECT_TRUE(key.Check(4).allowed);
  const DrivenKey::Receipt receipt = key.receipt();
  EXPECT_EQ(receipt.charged, 4);
  EXPECT_EQ(key.Refund(1).remaining, 1);
  EXPECT_EQ(key.Settle(receipt, 5).remaining, 0);
  EXPECT_EQ(key.Settle(receipt, 2).remaining, 2);
  EXPECT_EQ(key.Penalize(kHuge).reset_after, 600ms);
  EXPECT_EQ(key.Reset().remaining, 3);
  EXPECT_EQ(key.Check().delay, 0s);
}

TEST(LeakyQueue, ShutsNobodyOutForLongerThanAFullDrainWhenTheClockStepsBack) {
  DrivenKey key = Queue("1/s burst 5");
  EXPECT_TRUE(key.Check(6).allowed);
  key.Advance(-24h * 100);
  const Duration drain = 2 * 5s + 60s;
  EXPECT_EQ(key.Check().reset_after, drain);
  for (Duration passed = 0s; passed < drain - 5s; passed += 1s) {
    EXPECT_FALSE(key.Check().allowed);
    key.Advance(1s);
  }
  EXPECT_EQ(key.Check().delay, 5s);
}

TEST(LeakyQueue, ThatIsFullStaysFullUnderANewCapacity) {
  DrivenKey key = Queue("10/min burst 10");
  EXPECT_TRUE(key.Check(11).allowed);
  key.ChangeTo(Queue("10/min burst 2").limit());
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_EQ(key.Peek().reset_after, 18s);  // Two that wait, and the one being served.
}

}  // namespace
}  // namespace weir
