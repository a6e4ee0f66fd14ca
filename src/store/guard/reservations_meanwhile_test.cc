// Reservations and leases that begin or end while the store is down.
#include <algorithm>

#include <gtest/gtest.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

using std::chrono::seconds;

class Meanwhile : public testing::Test {
 protected:
  Meanwhile() : process_({.fleet_size = 4}) { process_.behind.Fail(); }

  static bool IsShared(ReservationId id) {
    return (std::to_underlying(id) & kSharedReservation) != 0;
  }
  std::vector<LimitInForce> InForce() const {
    return {{.rule = process_.guard.hasher()("rule"), .name = "rule", .limit = &limit_}};
  }

  GuardedUnderTest process_;
  const Limit limit_ = LimitOf("100/h");
};

TEST_F(Meanwhile, AReservationIsKeptHere) {
  const Group taken = process_.Ask({process_.ChargeFor("ann", limit_, 20)}, Action::kReserve);
  ASSERT_TRUE(taken.decision.allowed);
  ASSERT_NE(taken.reservation, ReservationId::kNone);
  EXPECT_FALSE(IsShared(taken.reservation));
  EXPECT_EQ(taken.decision.reservation, taken.reservation);
  EXPECT_EQ(process_.decisions[0].reservation, taken.reservation);
  const Group settled = process_.Settle(Action::kCommit, taken.reservation, 5, InForce());
  EXPECT_FALSE(settled.error);
  EXPECT_EQ(settled.decision.rule, "rule");
  EXPECT_EQ(settled.decision.source, Source::kFallback);
  EXPECT_EQ(settled.decision.remaining, 20);
  EXPECT_TRUE(process_.Settle(Action::kCommit, taken.reservation, 5, InForce()).error);
}

TEST_F(Meanwhile, AReservationIsSettledHereEvenWhenTheStoreIsBack) {
  const Group taken = process_.Ask({process_.ChargeFor("ann", limit_, 20)}, Action::kReserve);
  process_.behind.Recover();
  const std::size_t submitted = process_.behind.submitted;
  EXPECT_FALSE(process_.Settle(Action::kCancel, taken.reservation, 0, InForce()).error);
  EXPECT_EQ(process_.behind.submitted, submitted);
  process_.behind.Fail();
  EXPECT_EQ(process_.Exhaust("ann", limit_), 25);
}

TEST_F(Meanwhile, AReservationOfTheStoreCannotBeSettled) {
  process_.behind.Recover();
  const Group taken = process_.Ask({process_.ChargeFor("ann", limit_, 20)}, Action::kReserve);
  EXPECT_TRUE(IsShared(taken.reservation));
  process_.behind.Fail();
  const Group settled = process_.Settle(Action::kCommit, taken.reservation, 5, InForce());
  ASSERT_TRUE(settled.error.has_value());
  EXPECT_EQ(settled.error->code, ErrorCode::kDeadline);
  EXPECT_TRUE(process_.guard.IsDegraded());
  process_.behind.Recover();
  EXPECT_FALSE(process_.Settle(Action::kCommit, taken.reservation, 5, InForce()).error);
}

TEST_F(Meanwhile, WhatIsLetThroughCanBeSettledLikeAnyOther) {
  const Group taken =
      process_.Ask({process_.ChargeFor("ann", limit_, 20, FailureMode::kOpen)}, Action::kReserve);
  ASSERT_TRUE(taken.decision.allowed);
  ASSERT_NE(taken.reservation, ReservationId::kNone);
  EXPECT_FALSE(process_.Settle(Action::kCommit, taken.reservation, 5, InForce()).error);
  const Limit places = LimitOf("10 concurrent lease 30s");
  const Group lease = process_.Ask({process_.ChargeFor("ann", places, 1, FailureMode::kOpen)});
  ASSERT_NE(lease.reservation, ReservationId::kNone);
  EXPECT_FALSE(process_.Settle(Action::kCancel, lease.reservation).error);
}

TEST_F(Meanwhile, NothingIsReservedWhenARuleIsClosed) {
  const Group taken = process_.Ask({process_.ChargeFor("ann", limit_, 20, FailureMode::kClosed),
                                    process_.ChargeFor("bob", limit_, 20)},
                                   Action::kReserve);
  EXPECT_FALSE(taken.decision.allowed);
  EXPECT_EQ(taken.reservation, ReservationId::kNone);
  EXPECT_EQ(process_.guard.stats().local.reservations, 0u);
  EXPECT_EQ(process_.Exhaust("bob", limit_), 25);
}

TEST_F(Meanwhile, LeasesAreGivenUpToTheShare) {
  const Limit places = LimitOf("8 concurrent lease 30s");
  const Group first = process_.Ask({process_.ChargeFor("ann", places)});
  EXPECT_TRUE(process_.Check("ann", places).allowed);
  EXPECT_FALSE(process_.Check("ann", places).allowed);
  EXPECT_FALSE(IsShared(first.reservation));
  EXPECT_FALSE(process_.Settle(Action::kCancel, first.reservation).error);
  EXPECT_TRUE(process_.Check("ann", places).allowed);
}

TEST_F(Meanwhile, GroupsKeptHereAndThereMayComeTogether) {
  const Group local = process_.Ask({process_.ChargeFor("ann", limit_, 20)}, Action::kReserve);
  process_.behind.Recover();
  const Charge charge = process_.ChargeFor("bob", limit_);
  std::vector<Decision> decisions(3);
  std::vector<Group> groups{
      {.charges = {&charge, 1}, .decisions = {&decisions[0], 1}},
      {.action = Action::kCancel, .reservation = local.reservation},
      {.charges = {&charge, 1}, .decisions = {&decisions[1], 1}},
      {.charges = {&charge, 1}, .decisions = {&decisions[2], 1}},
  };
  DecidedGroups told;
  process_.store->Submit(groups, process_.loop.now(), told);
  ASSERT_EQ(told.groups.size(), 4u);
  for (Group& group : groups) EXPECT_FALSE(group.error);
  EXPECT_EQ(groups[3].decision.remaining, 97);
  EXPECT_EQ(groups[3].decision.source, Source::kStore);
}

}  // namespace
}  // namespace weir
