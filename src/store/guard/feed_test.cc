// What the store admits while it is well, and what is left of a key when it fails.
#include <algorithm>

#include <gtest/gtest.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;

class Warmth : public testing::TestWithParam<AlgorithmCase> {
 protected:
  // Of the limit of ten two nodes have five each.
  Warmth() : process_({.fleet_size = 2}) {}

  Group Do(Verb verb, std::int64_t cost) {
    Charge charge = process_.ChargeFor("ann", GetParam().limit, cost);
    charge.verb = verb;
    return process_.Ask({charge});
  }
  // What the process would admit by itself.
  std::int64_t LeftAlone() {
    process_.behind.Fail();
    return process_.Exhaust("ann", GetParam().limit);
  }
  bool is_queue() const { return GetParam().limit.spec().queue; }
  // Of a share of five.
  std::int64_t whole() const { return is_queue() ? 6 : 5; }

  GuardedUnderTest process_;
};
INSTANTIATE_TEST_SUITE_P(Algorithms, Warmth, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

TEST_P(Warmth, TakesOverWithWhatTheStoreAdmitted) {
  EXPECT_TRUE(Do(Verb::kCheck, 3).decision.allowed);
  EXPECT_EQ(LeftAlone(), whole() - 3);
}

TEST_P(Warmth, IsNotFedWithWhatTheStoreDenied) {
  EXPECT_FALSE(Do(Verb::kCheck, 20).decision.allowed);
  EXPECT_EQ(LeftAlone(), whole());
}

TEST_P(Warmth, IsNotFedWithMereQuestions) {
  Do(Verb::kPeek, 3);
  Do(Verb::kCheck, 0);
  EXPECT_EQ(LeftAlone(), whole());
}

TEST_P(Warmth, NeverGoesIntoDebt) {
  EXPECT_TRUE(Do(Verb::kCheck, 9).decision.allowed);
  EXPECT_LE(LeftAlone(), whole() - 5);
  // Nothing but time is owed: a fifth of the share comes back in two seconds, places and windows
  // with the end of what they count.
  process_.loop.clock.Advance(seconds(20));
  process_.behind.Fail();
  EXPECT_EQ(process_.Exhaust("ann", GetParam().limit), whole());
}

TEST_P(Warmth, FollowsARefundAndAReset) {
  if (GetParam().is_concurrency()) GTEST_SKIP() << "places are released, not refunded";
  Do(Verb::kCheck, 4);
  Do(Verb::kRefund, 2);
  Do(Verb::kPenalize, 1);
  process_.behind.Fail();
  EXPECT_EQ(process_.Check("ann", GetParam().limit, 1).remaining,
            std::min<std::int64_t>(5, whole() - 4));
  process_.behind.Recover();
  Do(Verb::kReset, 1);
  EXPECT_EQ(LeftAlone(), whole());
}

TEST(Feed, LeavesOtherModesAlone) {
  GuardedUnderTest process({.fleet_size = 1});
  const Limit limit = LimitOf("10/h");
  process.Check("ann", limit, 8, FailureMode::kOpen);
  process.Check("ann", limit, 1, FailureMode::kClosed);
  EXPECT_EQ(process.guard.stats().local.entries, 0u);
}

TEST(Feed, TakesOfAnOverdraftNoMoreThanThereIs) {
  GuardedUnderTest process({.fleet_size = 2});
  const Limit limit = LimitOf("10/10s", {.overdraft = true});
  EXPECT_TRUE(process.Check("ann", limit, 15).allowed);
  process.behind.Fail();
  EXPECT_FALSE(process.Check("ann", limit).allowed);
  process.loop.clock.Advance(seconds(2));  // A fifth of five.
  EXPECT_TRUE(process.Check("ann", limit).allowed);
}

TEST(Feed, GoesOnAfterAnOutage) {
  GuardedUnderTest process({.fleet_size = 2});
  const Limit limit = LimitOf("10/h");
  process.behind.Fail();
  EXPECT_EQ(process.Exhaust("ann", limit), 5);
  process.behind.Recover();
  // Nothing is replayed: the store knows nothing of these.
  EXPECT_EQ(process.Exhaust("ann", limit), 10);
  process.behind.Fail();
  EXPECT_EQ(process.Exhaust("ann", limit), 0);
}

class Leases : public testing::Test {
 protected:
  Leases() : process_({.fleet_size = 2}) {}
  Group Take(std::int64_t cost = 1) {
    return process_.Ask({process_.ChargeFor("ann", limit_, cost)});
  }
  std::int64_t LeftAlone() {
    process_.behind.Fail();
    const std::int64_t left = Take(100).decision.remaining;
    process_.behind.Recover();
    return left;
  }

  GuardedUnderTest process_;
  const Limit limit_ = LimitOf("10 concurrent lease 30s");
};

TEST_F(Leases, AreTakenInBothAndReleasedInBoth) {
  const Group first = Take(2);
  const Group second = Take(1);
  EXPECT_NE(std::to_underlying(first.reservation) & kSharedReservation, 0u);
  EXPECT_EQ(LeftAlone(), 2);
  EXPECT_FALSE(process_.Settle(Action::kCancel, first.reservation).error);
  EXPECT_EQ(LeftAlone(), 4);
  EXPECT_FALSE(process_.Settle(Action::kCommit, second.reservation, 1).error);
  EXPECT_EQ(LeftAlone(), 5);
}

TEST_F(Leases, AboveTheShareAreTakenAsFarAsThereIsRoom) {
  const Group first = Take(4);
  const Group second = Take(3);
  ASSERT_TRUE(second.decision.allowed);
  EXPECT_EQ(LeftAlone(), 0);
  process_.Settle(Action::kCancel, second.reservation);
  EXPECT_EQ(LeftAlone(), 1);
  process_.Settle(Action::kCancel, first.reservation);
  EXPECT_EQ(LeftAlone(), 5);
}

TEST_F(Leases, OfTheStoreThatEndWhileItIsDownAreFreeHereAtOnce) {
  const Group taken = Take(3);
  process_.behind.Fail();
  const Group settled = process_.Settle(Action::kCancel, taken.reservation);
  EXPECT_TRUE(settled.error.has_value());
  EXPECT_EQ(LeftAlone(), 5);
}

TEST_F(Leases, EndByThemselves) {
  Take(3);
  process_.loop.clock.Advance(seconds(30));
  EXPECT_EQ(LeftAlone(), 5);
}

}  // namespace
}  // namespace weir
