#include "store/guard/share.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

__extension__ using Wide = __int128;

TEST(ShareOf, ABucketHasItsPartOfTheRateAndOfTheBurst) {
  const Limit share = ShareOf(LimitOf("100/s burst 50"), 4);
  EXPECT_EQ(share.capacity(), 12);
  EXPECT_EQ(share.emission_interval(), 4 * LimitOf("100/s").emission_interval());
}

TEST(ShareOf, AWindowHasItsPartOfTheCount) {
  for (const Algorithm algorithm :
       {Algorithm::kFixedWindow, Algorithm::kSlidingWindow, Algorithm::kSlidingLog}) {
    const Limit share = ShareOf(LimitOf("100/min", {.algorithm = algorithm}), 3);
    EXPECT_EQ(share.capacity(), 33);
    EXPECT_EQ(share.spec().period, seconds(60));
  }
  EXPECT_EQ(ShareOf(LimitOf("20 concurrent lease 30s"), 3).capacity(), 6);
}

TEST(ShareOf, IsNeverLessThanOne) {
  EXPECT_EQ(ShareOf(LimitOf("3/s"), 1'000).capacity(), 1);
  EXPECT_EQ(ShareOf(LimitOf("3/min", {.algorithm = Algorithm::kSlidingLog}), 1'000).capacity(), 1);
  EXPECT_EQ(ShareOf(LimitOf("2 concurrent lease 30s"), 1'000).capacity(), 1);
}

TEST(ShareOf, WhatIsAloneIsTheWholeLimit) {
  const Limit limit = LimitOf("100/s burst 50");
  EXPECT_EQ(ShareOf(limit, 1).spec(), limit.spec());
}

TEST(ShareOf, WhatCountsNothingStaysAsItIs) {
  EXPECT_EQ(ShareOf(LimitOf("deny"), 5).kind(), LimitKind::kDeny);
  EXPECT_EQ(ShareOf(LimitOf("unlimited"), 5).kind(), LimitKind::kUnlimited);
}

TEST(ShareOf, KeepsWhatElseTheLimitSays) {
  const Limit queue = LimitOf("10/s", {.algorithm = Algorithm::kLeakyBucket, .queue = true});
  EXPECT_TRUE(ShareOf(queue, 3).spec().queue);
  const Limit overdraft = LimitOf("10/s", {.overdraft = true});
  EXPECT_TRUE(ShareOf(overdraft, 3).spec().overdraft);
}

TEST(ShareOf, StaysWithinWhatALimitCanBe) {
  const Limit share = ShareOf(*Limit::Make({.count = 8000, .period = kMaxPeriod}), 1'000);
  EXPECT_EQ(share.capacity(), 8);
  EXPECT_EQ(share.spec().count, 8);
  const Limit rare = ShareOf(*Limit::Make({.count = 1, .period = kMaxPeriod}), 2);
  EXPECT_EQ(rare.capacity(), 1);
}

// The same key under a part of another size.
class ChangeOfFleet : public testing::TestWithParam<AlgorithmCase> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, ChangeOfFleet, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

TEST_P(ChangeOfFleet, MakesNoKeyFresh) {
  StoreUnderTest under_test;
  for (const int nodes : {1, 2, 5}) {
    const Limit share = ShareOf(GetParam().limit, nodes);
    under_test.Exhaust("ann", share);
    for (const int others : {1, 2, 3, 5, 8}) {
      const Limit other = ShareOf(GetParam().limit, others);
      EXPECT_EQ(other.state_salt(), share.state_salt());
      // Never more than the parts differ by.
      const std::int64_t more = std::max<std::int64_t>(0, other.capacity() - share.capacity());
      EXPECT_LE(under_test.Remaining("ann", other), more) << nodes << " to " << others;
    }
  }
}

TEST(ShareOf, GoesOnAfterAChangeOfPolicyWithWhatItCounted) {
  StoreUnderTest under_test;
  const Limit before = LimitOf("100/h");
  under_test.Exhaust("ann", ShareOf(before, 4));
  const Limit after = LimitOf("200/h").Replacing(before, under_test.clock.Read());
  ASSERT_NE(after.predecessor(), nullptr);
  EXPECT_LE(under_test.Remaining("ann", ShareOf(after, 4)), 25);
}

RC_GTEST_PROP(Share, OfAFleetNeverAddsUpToMoreThanTheLimit, ()) {
  const int nodes = *rc::gen::inRange(1, 2'000);
  LimitSpec spec;
  spec.count = *rc::gen::inRange<std::int64_t>(1, 1'000'000);
  spec.period = Duration(*rc::gen::inRange<std::int64_t>(1, kMaxPeriod.count() / 1'000)) *
                *rc::gen::element(1, 10, 100, 999);
  spec.burst = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
  const Result<Limit> limit = Limit::Make(spec);
  RC_PRE(limit.has_value());
  const Limit share = ShareOf(*limit, nodes);
  RC_ASSERT(share.kind() == LimitKind::kCounted);
  RC_ASSERT(share.capacity() * nodes <= std::max<std::int64_t>(limit->capacity(), nodes));
  // N / T' <= 1 / T, exactly; but for what a Limit cannot be.
  const Wide whole = Wide{ToTicks(spec.period).count()} * nodes;
  if (whole <= Wide{ToTicks(kMaxPeriod).count()} * spec.count) {
    RC_ASSERT(Wide{share.emission_interval()} * spec.count >= whole);
    // And not much less.
    RC_ASSERT(Wide{share.emission_interval()} * spec.count <= 2 * whole + 2 * spec.count);
  }
}

TEST(Shares, AreWorkedOutOnce) {
  Shares shares;
  const Limit limit = LimitOf("100/s");
  const Limit* const first = &shares.Of(limit, 4);
  shares.Tidy();
  EXPECT_EQ(&shares.Of(limit, 4), first);
  EXPECT_EQ(first->capacity(), 25);
}

TEST(Shares, FollowTheSizeOfTheFleet) {
  Shares shares;
  const Limit limit = LimitOf("100/s");
  const Limit& before = shares.Of(limit, 4);
  const Limit& after = shares.Of(limit, 2);
  EXPECT_EQ(before.capacity(), 25);  // Good until Tidy.
  EXPECT_EQ(after.capacity(), 50);
}

TEST(Shares, AreNotFooledByAnotherLimitAtTheSameAddress) {
  Shares shares;
  std::optional<Limit> limit = LimitOf("100/s");
  EXPECT_EQ(shares.Of(*limit, 4).capacity(), 25);
  limit = LimitOf("200/s");
  EXPECT_EQ(shares.Of(*limit, 4).capacity(), 50);
  const ManualClock clock;
  limit = LimitOf("200/s").ReplacingAmongOthers(LimitOf("200/s"), clock.Read());
  EXPECT_EQ(shares.Of(*limit, 4).state_salt(), limit->state_salt());
}

}  // namespace
}  // namespace weir
