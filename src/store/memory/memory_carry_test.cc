// Limits that change while keys are counted under them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class LimitChange : public testing::TestWithParam<AlgorithmCase> {
 protected:
  Limit WithCount(const Limit& before, std::int64_t count) {
    LimitSpec spec = before.spec();
    spec.count = count;
    return Limit::Make(spec)->Replacing(before, under_test_.clock.Read());
  }
  const Limit& limit() const { return GetParam().limit; }
  bool is_queue() const { return limit().spec().queue; }
  // What is left under `limit`, a queue's one more included.
  std::int64_t Left(const Limit& limit) {
    return under_test_.Exhaust("ann", limit, 1'000) - (is_queue() ? 1 : 0);
  }

  StoreUnderTest under_test_;
};

TEST_P(LimitChange, ToALargerCountKeepsWhatWasUsedInProportion) {
  under_test_.Check("ann", limit(), 5);
  const Limit larger = WithCount(limit(), 20);
  EXPECT_EQ(Left(larger), GetParam().is_concurrency() ? 15 : 10);
}

TEST_P(LimitChange, ToASmallerCountKeepsWhatWasUsedInProportionRoundedUp) {
  under_test_.Check("ann", limit(), 5);
  const Limit smaller = WithCount(limit(), 3);
  // 1.5 of 3 are used. A bucket keeps the half; a lease is a lease.
  EXPECT_EQ(Left(smaller), GetParam().is_concurrency() ? 0 : 1);
}

TEST_P(LimitChange, KeepsAKeyThatIsUsedUpUsedUp) {
  under_test_.Check("ann", limit(), GetParam().at_once);
  EXPECT_EQ(under_test_.Exhaust("ann", WithCount(limit(), 3)), 0);
  under_test_.Check("bob", limit(), GetParam().at_once);
  const Limit larger = WithCount(limit(), 20);
  EXPECT_EQ(under_test_.Exhaust("bob", larger), GetParam().is_concurrency() ? 10 : 0);
}

TEST_P(LimitChange, LeavesAFreshKeyFreshAndAbsent) {
  const Limit changed = WithCount(limit(), 20);
  EXPECT_EQ(under_test_.Remaining("ann", changed), 20);
  EXPECT_EQ(under_test_.store.Stats().entries, 0U);
  EXPECT_EQ(Left(changed), 20);
}

TEST_P(LimitChange, ThatChangesNothingKeepsTheState) {
  under_test_.Check("ann", limit(), 4);
  const std::int64_t left = under_test_.Remaining("ann", limit());
  const Limit same = Limit::Make(limit().spec())->Replacing(limit(), under_test_.clock.Read());
  EXPECT_EQ(under_test_.Remaining("ann", same), left);
}

TEST_P(LimitChange, CarriesOverOnce) {
  under_test_.Check("ann", limit(), 5);
  const Limit changed = WithCount(limit(), 20);
  under_test_.Check("ann", changed, 1);
  under_test_.Do(Verb::kReset, "ann", changed);
  EXPECT_EQ(under_test_.Remaining("ann", changed), 20);
  EXPECT_EQ(Left(changed), 20);
}

// Requests that had taken up the old limit when it changed are decided by it, and still count.
TEST_P(LimitChange, CountsWhatIsChargedToTheOldLimitAfterwards) {
  under_test_.Check("ann", limit(), 4);
  const Limit changed = WithCount(limit(), 20);
  EXPECT_TRUE(under_test_.Check("ann", changed, 1).allowed);
  for (int late = 0; late < 2; ++late) {
    under_test_.clock.Advance(Duration(1));
    EXPECT_TRUE(under_test_.Check("ann", limit(), 2).allowed);
    EXPECT_TRUE(under_test_.Check("ann", changed, 1).allowed);
  }
  // 4 and 1 and twice 2 and 1; of the old limit's each counts for two.
  EXPECT_EQ(Left(changed), GetParam().is_concurrency() ? 9 : 1);
}

TEST_P(LimitChange, CountsAtOnceWhatIsChargedToSeveralOldLimitsAfterwards) {
  if (GetParam().is_concurrency()) return;  // All of its limits count in one place.
  const Limit second = WithCount(limit(), 20);
  const Limit third = WithCount(second, 40);
  under_test_.Check("ann", third, 1);
  under_test_.Check("ann", second, 3);
  under_test_.Check("ann", limit(), 2);
  EXPECT_EQ(Left(third), 40 - 1 - 3 * 2 - 2 * 4);
}

TEST_P(LimitChange, IsFollowedByTheFirstVerbWhateverItIs) {
  for (const Verb verb : {Verb::kPeek, Verb::kRefund, Verb::kPenalize}) {
    under_test_.Do(Verb::kReset, "ann", limit());
    under_test_.Check("ann", limit(), 10);
    const Limit changed = WithCount(limit(), 30);
    under_test_.Do(verb, "ann", changed, verb == Verb::kPeek ? 1 : 3);
    const std::int64_t left = under_test_.Remaining("ann", changed);
    const std::int64_t full = GetParam().is_concurrency() ? 20 : is_queue() ? 1 : 0;
    EXPECT_EQ(left, verb == Verb::kRefund     ? full + 3
                    : verb == Verb::kPenalize ? std::max<std::int64_t>(0, full - 3)
                                              : full);
    under_test_.Do(Verb::kReset, "ann", changed);
  }
}

TEST_P(LimitChange, ReachesGroupsAsWell) {
  under_test_.Check("ann", limit(), 5);
  const Limit changed = WithCount(limit(), 20);
  const Limit other = LimitOf("unlimited");
  const auto ask = [&](std::int64_t cost) {
    return under_test_
        .Ask({under_test_.ChargeFor("ann", changed, cost), under_test_.ChargeFor("bob", other)})
        .allowed;
  };
  const std::int64_t left = GetParam().is_concurrency() ? 15 : 10 + (is_queue() ? 1 : 0);
  EXPECT_FALSE(ask(left + 1));
  EXPECT_TRUE(ask(left));
}

TEST_P(LimitChange, AfterAnotherKeepsWhatWasUsedThroughAllOfThem) {
  for (const bool touched : {false, true}) {
    SCOPED_TRACE(touched);
    const std::string key = touched ? "touched" : "untouched";
    under_test_.Check(key, limit(), 8);
    std::vector<Limit> limits{limit()};
    for (const std::int64_t count : {20, 5, 40, 10, 20}) {
      limits.push_back(WithCount(limits.back(), count));
      if (touched) under_test_.Do(Verb::kPeek, key, limits.back());
    }
    const std::int64_t left = under_test_.Exhaust(key, limits.back()) - (is_queue() ? 1 : 0);
    EXPECT_EQ(left, GetParam().is_concurrency() ? 12 : 4);
  }
}

TEST_P(LimitChange, LeavesNothingToCarryOnceTheOldLimitsTimeIsOver) {
  under_test_.Check("ann", limit(), 8);
  const Limit changed = WithCount(limit(), 20);
  under_test_.clock.Advance(limit().time_to_fresh() + seconds(1));
  EXPECT_EQ(Left(changed), 20);
}

TEST_P(LimitChange, GivesBackWhatWasReservedBeforeItInProportion) {
  const Decision reserved =
      under_test_.Ask({under_test_.ChargeFor("ann", limit(), 6)}, Action::kReserve);
  under_test_.Check("ann", limit(), 2);
  const Limit changed = WithCount(limit(), 20);
  const Charge in_force = under_test_.ChargeFor("", changed);
  const Result<Decision> settled = under_test_.Cancel(reserved.reservation, {&in_force, 1});
  ASSERT_TRUE(settled);
  EXPECT_EQ(settled->rule, "rule");
  EXPECT_EQ(settled->limit, 20);
  EXPECT_EQ(Left(changed), GetParam().is_concurrency() ? 18 : 16);
}

TEST_P(LimitChange, GivesBackNoMoreThanWasCarriedOver) {
  const Decision reserved =
      under_test_.Ask({under_test_.ChargeFor("ann", limit(), 5)}, Action::kReserve);
  under_test_.Check("ann", limit(), 5);
  const Limit changed = WithCount(limit(), 5);
  const Charge in_force = under_test_.ChargeFor("", changed);
  ASSERT_TRUE(under_test_.Cancel(reserved.reservation, {&in_force, 1}));
  // Half of five; of the places, the five that others hold are all there are.
  EXPECT_EQ(Left(changed), GetParam().is_concurrency() ? 0 : 2);
}

TEST_P(LimitChange, ChargesWhatIsCommittedAboveToTheNewLimit) {
  const Decision reserved =
      under_test_.Ask({under_test_.ChargeFor("ann", limit(), 5)}, Action::kReserve);
  const Limit changed = WithCount(limit(), 20);
  const Charge in_force = under_test_.ChargeFor("", changed);
  ASSERT_TRUE(under_test_.Commit(reserved.reservation, 8, {&in_force, 1}));
  EXPECT_EQ(Left(changed), GetParam().is_concurrency() ? 20 : 7);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, LimitChange, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

// --- What only some algorithms do ---

TEST(BucketChange, KeepsTheTimeToFullWhenThePeriodChanges) {
  StoreUnderTest under_test;
  const Limit before = LimitOf("10/10s");
  under_test.Check("ann", before, 6);
  const Limit after = LimitOf("10/100s").Replacing(before, under_test.clock.Read());
  const Decision decision = under_test.Do(Verb::kPeek, "ann", after);
  EXPECT_EQ(decision.reset_after, seconds(6));
  EXPECT_EQ(decision.remaining, 9);
}

TEST(BucketChange, ClampsTheTimeToFullToTheNewCapacity) {
  StoreUnderTest under_test;
  const Limit before = LimitOf("10/10s");
  under_test.Check("ann", before, 8);
  const Limit after = LimitOf("10/10s burst 3").Replacing(before, under_test.clock.Read());
  const Decision decision = under_test.Do(Verb::kPeek, "ann", after);
  EXPECT_EQ(decision.reset_after, seconds(3));
  EXPECT_EQ(decision.remaining, 0);
}

TEST(BucketChange, ForgivesTheDebtThatTheNewCapacityDoesNotHold) {
  StoreUnderTest under_test;
  const Limit before = LimitOf("10/10s");
  under_test.Do(Verb::kPenalize, "ann", before, 20);
  const Limit after = LimitOf("20/20s").Replacing(before, under_test.clock.Read());
  EXPECT_EQ(under_test.Do(Verb::kPeek, "ann", after).reset_after, seconds(20));
  const Limit smaller = LimitOf("5/5s").Replacing(after, under_test.clock.Read());
  EXPECT_EQ(under_test.Do(Verb::kPeek, "ann", smaller).reset_after, seconds(5));
}

TEST(WindowChange, KeepsWhereWindowsEnd) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindow}) {
    StoreUnderTest under_test;
    under_test.clock.Advance(seconds(3));
    const LimitSpec spec{.algorithm = algorithm};
    const Limit before = LimitOf("10/10s", spec);
    const Duration reset_after = under_test.Check("ann", before, 10).reset_after;
    const Limit after = LimitOf("20/10s", spec).Replacing(before, under_test.clock.Read());
    EXPECT_EQ(under_test.Do(Verb::kPeek, "ann", after).reset_after, reset_after);
  }
}

TEST(LimitReplaced, ToAnotherAlgorithmOrWindowStartsAnew) {
  const Limit unlimited = LimitOf("unlimited");
  const Limit deny = LimitOf("deny");
  for (const AlgorithmCase& before : EveryAlgorithm()) {
    for (const AlgorithmCase& other : EveryAlgorithm()) {
      if (before.name == other.name) continue;
      SCOPED_TRACE(before.name + " to " + other.name);
      StoreUnderTest under_test;
      under_test.Exhaust("ann", before.limit);
      const Limit after = other.limit.Replacing(before.limit, under_test.clock.Read());
      EXPECT_EQ(under_test.Exhaust("ann", after), other.at_once);
    }
    if (before.is_bucket()) continue;
    StoreUnderTest under_test;
    under_test.Exhaust("ann", before.limit);
    const Limit after =
        before.is_concurrency()
            ? LimitOf("10 concurrent lease 11s").Replacing(before.limit, under_test.clock.Read())
            : LimitOf("10/11s", before.limit.spec())
                  .Replacing(before.limit, under_test.clock.Read());
    EXPECT_EQ(under_test.Exhaust("ann", after), 10) << before.name;
  }
}

TEST(LimitReplaced, ToUnlimitedOrDenyAndBackStartsAnew) {
  StoreUnderTest under_test;
  const Limit before = LimitOf("10/10s");
  under_test.Exhaust("ann", before);
  const Now now = under_test.clock.Read();
  const Limit open = LimitOf("unlimited").Replacing(before, now);
  EXPECT_TRUE(under_test.Check("ann", open).allowed);
  const Limit closed = LimitOf("deny").Replacing(open, now);
  EXPECT_FALSE(under_test.Check("ann", closed).allowed);
  const Limit back = LimitOf("10/10s").Replacing(closed, now);
  EXPECT_EQ(under_test.Exhaust("ann", back), 10);
}

TEST(ConcurrencyChange, LeavesEveryLeaseToItsHolder) {
  StoreUnderTest under_test;
  std::vector<Limit> limits{LimitOf("10 concurrent lease 1min")};
  std::vector<ReservationId> leases;
  for (int i = 0; i < 8; ++i) {
    leases.push_back(under_test.Check("ann", limits.back()).reservation);
    under_test.clock.Advance(milliseconds(1));
  }
  for (const char* text :
       {"5 concurrent lease 1min", "20 concurrent lease 1min", "6 concurrent lease 1min"}) {
    limits.push_back(LimitOf(text).Replacing(limits.back(), under_test.clock.Read()));
  }
  const Limit& now = limits.back();
  const Charge in_force = under_test.ChargeFor("", now);
  EXPECT_FALSE(under_test.Check("ann", now).allowed);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(under_test.Cancel(leases[static_cast<std::size_t>(i)], {&in_force, 1}));
  }
  EXPECT_EQ(under_test.Exhaust("ann", now), 1);
  // And the dead ones end when they would have.
  under_test.clock.Advance(minutes(1));
  EXPECT_EQ(under_test.Exhaust("ann", now), 6);
}

TEST(ConcurrencyChange, MovesItsEventsRatherThanCopyingThem) {
  StoreUnderTest under_test;
  const Limit before = LimitOf("100 concurrent lease 1min");
  for (int i = 0; i < 50; ++i) {
    under_test.Check("ann", before);
    under_test.clock.Advance(milliseconds(1));
  }
  const std::size_t chunks = under_test.store.Stats().event_chunks;
  const Limit after =
      LimitOf("60 concurrent lease 1min").Replacing(before, under_test.clock.Read());
  EXPECT_EQ(under_test.Remaining("ann", after), 10);
  EXPECT_EQ(under_test.store.Stats().event_chunks, chunks);
  under_test.Do(Verb::kReset, "ann", after);
  EXPECT_EQ(under_test.store.Stats().event_chunks, 0U);
}

}  // namespace
}  // namespace weir
