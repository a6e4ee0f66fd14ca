// Reservations: what they take, and what becomes of it.
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Under every algorithm.
class Reserving : public testing::TestWithParam<AlgorithmCase> {
 protected:
  const Limit& limit() const { return GetParam().limit; }
  Decision Reserve(std::int64_t cost, Duration ttl = seconds(60)) {
    return under_test_.Ask({under_test_.ChargeFor("ann", limit(), cost)}, Action::kReserve, ttl);
  }
  std::int64_t Used() { return used_at_most_ - under_test_.Remaining("ann", limit()); }

  StoreUnderTest under_test_;
  // A queue shows no more than its capacity, and has room for one more.
  std::int64_t used_at_most_ = GetParam().at_once;
};

TEST_P(Reserving, CommitOfLessGivesTheRestBack) {
  const Decision reserved = Reserve(8);
  ASSERT_NE(reserved.reservation, ReservationId::kNone);
  EXPECT_EQ(Used(), 8);
  const Result<Decision> settled = under_test_.Commit(reserved.reservation, 5);
  ASSERT_TRUE(settled);
  EXPECT_TRUE(settled->allowed);
  EXPECT_EQ(settled->cost, 5);
  EXPECT_EQ(settled->remaining, GetParam().at_once - GetParam().Settled(5));
  EXPECT_EQ(Used(), GetParam().Settled(5));
}

TEST_P(Reserving, CommitOfMoreGoesIntoDebt) {
  if (GetParam().is_concurrency()) return;  // A place cannot be held for longer afterwards.
  const Decision reserved = Reserve(8);
  ASSERT_TRUE(under_test_.Commit(reserved.reservation, 15));
  EXPECT_EQ(under_test_.Remaining("ann", limit()), 0);
  under_test_.Do(Verb::kRefund, "ann", limit(), 5);
  EXPECT_EQ(Used(), 10);
  under_test_.Do(Verb::kRefund, "ann", limit(), 1);
  EXPECT_EQ(Used(), 9);
}

TEST_P(Reserving, CommitOfTheSameChangesNothing) {
  ASSERT_TRUE(under_test_.Commit(Reserve(8).reservation, 8));
  EXPECT_EQ(Used(), GetParam().Settled(8));
}

TEST_P(Reserving, CommitOfAnythingIsChargedWhenNothingWasReserved) {
  const Decision reserved = Reserve(0);
  ASSERT_NE(reserved.reservation, ReservationId::kNone);
  EXPECT_EQ(under_test_.Remaining("ann", limit()), 10);
  ASSERT_TRUE(under_test_.Commit(reserved.reservation, 6));
  EXPECT_EQ(Used(), GetParam().Settled(6));
}

TEST_P(Reserving, CancelGivesAllBack) {
  under_test_.Check("ann", limit(), 2);
  under_test_.clock.Advance(milliseconds(1));
  const Decision reserved = Reserve(6);
  ASSERT_TRUE(under_test_.Cancel(reserved.reservation));
  EXPECT_EQ(Used(), 2);
}

TEST_P(Reserving, IsSettledOnce) {
  const ReservationId id = Reserve(4).reservation;
  ASSERT_TRUE(under_test_.Cancel(id));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(under_test_.Cancel(id).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(under_test_.Commit(id, 9).error().code, ErrorCode::kNotFound);
  }
  EXPECT_EQ(under_test_.Remaining("ann", limit()), 10);
}

TEST_P(Reserving, LeavesTheChargeWhenItIsNotSettledInTime) {
  const Decision early = Reserve(2, milliseconds(10));
  const Decision late = Reserve(2, milliseconds(10));
  under_test_.clock.Advance(milliseconds(10) - Duration(1));
  EXPECT_TRUE(under_test_.Cancel(early.reservation));
  under_test_.clock.Advance(Duration(1));
  EXPECT_EQ(under_test_.Cancel(late.reservation).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Used(), 2);
}

TEST_P(Reserving, GivesNothingBackOnceItNoLongerCounts) {
  const Decision reserved = Reserve(4);
  under_test_.clock.Advance(seconds(25));
  under_test_.Check("ann", limit(), 5);
  const std::int64_t before = under_test_.Remaining("ann", limit());
  ASSERT_TRUE(under_test_.Cancel(reserved.reservation));
  EXPECT_EQ(under_test_.Remaining("ann", limit()), before);
}

TEST_P(Reserving, OfWhatIsDeniedReservesNothing) {
  Reserve(8);
  const Decision denied = Reserve(GetParam().at_once - 7);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reservation, ReservationId::kNone);
  EXPECT_EQ(under_test_.store.Stats().reservations, 1U);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Reserving, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

TEST(Reserve, SettlesAKeyThatIsInItTwiceAtTheCostOfEach) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  const Charge charge = under_test.ChargeFor("ann", limit, 3);
  const Decision reserved = under_test.Ask({charge, charge}, Action::kReserve);
  EXPECT_EQ(under_test.Remaining("ann", limit), 4);
  ASSERT_TRUE(under_test.Commit(reserved.reservation, 2));
  EXPECT_EQ(under_test.Remaining("ann", limit), 6);
}

TEST(Reserve, KeepsAllThatItReservedOfAKeyThatIsInItAtTwoCosts) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  Group commit{.action = Action::kCommit, .keeps_cost = true};
  commit.reservation =
      under_test
          .Ask({under_test.ChargeFor("ann", limit, 3), under_test.ChargeFor("ann", limit, 4)},
               Action::kReserve)
          .reservation;
  under_test.store.Decide(commit, under_test.clock.Read());
  ASSERT_FALSE(commit.error);
  EXPECT_EQ(under_test.Remaining("ann", limit), 3);
}

TEST(Reserve, BeyondTheTableIsAnOverloadAndTakesNothing) {
  StoreUnderTest under_test({.max_reservations = 1});
  const Limit limit = LimitOf("10/10s");
  const Limit places = LimitOf("10 concurrent lease 10s");
  const auto reserve = [&] {
    return under_test.Ask({under_test.ChargeFor("ann", limit, 2)}, Action::kReserve);
  };
  const ReservationId id = reserve().reservation;
  const Decision refused = reserve();
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.reason, Reason::kOverload);
  EXPECT_GT(refused.retry_after, Duration(0));
  EXPECT_EQ(under_test.Remaining("ann", limit), 8);
  EXPECT_EQ(under_test.Check("bob", places).reason, Reason::kOverload);
  EXPECT_EQ(under_test.Remaining("bob", places), 10);
  ASSERT_TRUE(under_test.Cancel(id));
  EXPECT_TRUE(reserve().allowed);
}

TEST(Reserve, BeyondTheTableShowsEveryKeyAsItIs) {
  StoreUnderTest under_test({.max_reservations = 0});
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    SCOPED_TRACE(algorithm.name);
    const Limit unlimited = LimitOf("unlimited");
    under_test.Do(Verb::kPenalize, "ann", algorithm.limit, 3);
    const Decision seen = under_test.Do(Verb::kPeek, "ann", algorithm.limit);
    const std::vector<Charge> charges{under_test.ChargeFor("ann", algorithm.limit, 4),
                                      under_test.ChargeFor("bob", algorithm.limit, 2),
                                      under_test.ChargeFor("bob", unlimited)};
    std::vector<Decision> decisions(3);
    const Group refused = under_test.DecideGroup(charges, decisions, Action::kReserve);
    EXPECT_EQ(refused.decision.reason, Reason::kOverload);
    EXPECT_EQ(decisions[0].remaining, seen.remaining);
    EXPECT_EQ(decisions[0].reset_after, seen.reset_after);
    EXPECT_EQ(decisions[0].cost, 4);
    EXPECT_EQ(decisions[0].delay, Duration(0));
    EXPECT_EQ(decisions[1].remaining, 10);
    EXPECT_EQ(decisions[1].reset_after, Duration(0));
  }
}

TEST(Reserve, UnderUnlimitedIsSettledWithoutEffect) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("unlimited");
  const Decision reserved =
      under_test.Ask({under_test.ChargeFor("ann", limit, 5)}, Action::kReserve);
  ASSERT_TRUE(reserved.allowed);
  const Result<Decision> settled = under_test.Commit(reserved.reservation, 7);
  ASSERT_TRUE(settled);
  EXPECT_TRUE(settled->allowed);
}

TEST(Reserve, UnderOverdraftGivesBackOnlyWhatWasReallyTaken) {
  StoreUnderTest under_test;
  for (const AlgorithmCase& algorithm : EveryAlgorithm({.overdraft = true})) {
    SCOPED_TRACE(algorithm.name);
    const Limit& limit = algorithm.limit;
    const Decision reserved =
        under_test.Ask({under_test.ChargeFor("ann", limit, 1'000)}, Action::kReserve);
    ASSERT_TRUE(reserved.allowed);
    ASSERT_TRUE(under_test.Commit(reserved.reservation, 8));  // Of the 20 that were taken.
    EXPECT_EQ(under_test.Remaining("ann", limit), 2);
  }
}

TEST(Lease, IsReleasedByItsIdWithoutTouchingTheOtherRulesOfItsGroup) {
  StoreUnderTest under_test;
  const Limit places = LimitOf("2 concurrent lease 10s");
  const Limit rate = LimitOf("10/10s");
  const std::vector<Charge> charges{under_test.ChargeFor("ann", places),
                                    under_test.ChargeFor("ann", rate)};
  const Decision first = under_test.Ask(charges);
  const Decision second = under_test.Ask(charges);
  EXPECT_FALSE(under_test.Ask(charges).allowed);
  ASSERT_TRUE(under_test.Cancel(first.reservation));
  EXPECT_EQ(under_test.Remaining("ann", places), 1);
  EXPECT_EQ(under_test.Remaining("ann", rate), 8);
  EXPECT_TRUE(under_test.Ask(charges).allowed);
  ASSERT_TRUE(under_test.Cancel(second.reservation));
  EXPECT_FALSE(under_test.Cancel(second.reservation));
}

TEST(Lease, OfADeadHolderEndsByItself) {
  StoreUnderTest under_test;
  const Limit places = LimitOf("1 concurrent lease 10s");
  const Decision dead = under_test.Check("ann", places);
  under_test.clock.Advance(seconds(10) - Duration(1));
  EXPECT_EQ(under_test.Check("ann", places).retry_after, Duration(1));
  under_test.clock.Advance(Duration(1));
  const Decision heir = under_test.Check("ann", places);
  EXPECT_TRUE(heir.allowed);
  EXPECT_FALSE(under_test.Cancel(dead.reservation));  // Gone: it must not end the heir's.
  EXPECT_FALSE(under_test.Check("ann", places).allowed);
}
}  // namespace
}  // namespace weir
