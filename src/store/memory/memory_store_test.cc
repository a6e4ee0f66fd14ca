// Every verb on every algorithm, through every way into the store.
#include "store/memory/memory_store.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// A charge may be decided by itself, as a group of one, or in a group with others; the answers
// must not differ.
enum class Way { kAlone, kGroupOfOne, kGroupOfTwo, kSubmitted };

struct Kept final : Completion {
  void OnDecided(Group& group) noexcept override { decision = group.decision; }
  Decision decision;
};

class EveryVerb : public testing::TestWithParam<std::tuple<AlgorithmCase, Way>> {
 protected:
  const AlgorithmCase& algorithm() const { return std::get<0>(GetParam()); }
  const Limit& limit() const { return algorithm().limit; }

  Decision Do(Verb verb, std::string_view key, std::int64_t cost = 1) {
    const Charge charge = under_test_.ChargeFor(key, limit(), cost, verb);
    const Charge other = under_test_.ChargeFor("somebody else", no_limit_, cost, verb);
    Decision decisions[2];
    Group group{.charges = {&charge, 1}, .decisions = decisions};
    Kept kept;
    switch (std::get<1>(GetParam())) {
      case Way::kAlone:
        return under_test_.store.Decide(charge, under_test_.clock.Read());
      case Way::kGroupOfOne:
        return under_test_.Ask({charge});
      case Way::kGroupOfTwo:
        return under_test_.Ask({charge, other});
      default:
        under_test_.store.Submit({&group, 1}, under_test_.clock.Read(), kept);
        return kept.decision;
    }
  }
  Decision Check(std::string_view key, std::int64_t cost = 1) {
    return Do(Verb::kCheck, key, cost);
  }
  std::int64_t Exhaust(std::string_view key) {
    std::int64_t admitted = 0;
    while (admitted < 100 && Check(key).allowed) ++admitted;
    return admitted;
  }

  StoreUnderTest under_test_;
  const Limit no_limit_ = LimitOf("unlimited");
};

TEST_P(EveryVerb, CheckAdmitsWhatTheLimitHoldsAndNotOneMore) {
  for (std::int64_t i = 1; i <= algorithm().at_once; ++i) {
    const Decision decision = Check("ann");
    ASSERT_TRUE(decision.allowed) << i;
    EXPECT_EQ(decision.reason, Reason::kOk);
    EXPECT_EQ(decision.source, Source::kMemory);
    EXPECT_EQ(decision.rule, "rule");
    EXPECT_EQ(decision.limit, 10);
    EXPECT_EQ(decision.remaining, std::min<std::int64_t>(10, algorithm().at_once - i));
    EXPECT_EQ(decision.cost, 1);
    EXPECT_EQ(decision.retry_after, Duration(0));
    EXPECT_GT(decision.reset_after, Duration(0));
  }
  const Decision denied = Check("ann");
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.rule, "rule");
  EXPECT_EQ(denied.remaining, 0);
  EXPECT_EQ(denied.limit, 10);
  EXPECT_GT(denied.retry_after, Duration(0));
  EXPECT_EQ(denied.delay, Duration(0));
  EXPECT_EQ(denied.reservation, ReservationId::kNone);
  EXPECT_TRUE(Check("bob").allowed);
}

TEST_P(EveryVerb, CheckTakesItsWholeCostOrNothing) {
  EXPECT_TRUE(Check("ann", 7).allowed);
  EXPECT_FALSE(Check("ann", algorithm().at_once - 6).allowed);
  EXPECT_TRUE(Check("ann", algorithm().at_once - 7).allowed);
  EXPECT_FALSE(Check("ann", 1).allowed);
}

TEST_P(EveryVerb, RetryAfterIsTheFirstInstantAtWhichTheSameRequestPasses) {
  under_test_.clock.Advance(milliseconds(1'234));
  Exhaust("ann");
  under_test_.clock.Advance(milliseconds(321));
  for (const std::int64_t cost : {1, 3}) {
    const Decision denied = Check("ann", cost);
    ASSERT_FALSE(denied.allowed);
    under_test_.clock.Advance(denied.retry_after - Duration(1));
    EXPECT_FALSE(Check("ann", cost).allowed);
    under_test_.clock.Advance(Duration(1));
    EXPECT_TRUE(Check("ann", cost).allowed);
    Exhaust("ann");
  }
}

TEST_P(EveryVerb, ResetAfterIsWhenTheKeyIsAsGoodAsNew) {
  const Decision decision = Check("ann", 4);
  under_test_.clock.Advance(decision.reset_after);
  const Decision peeked = Do(Verb::kPeek, "ann");
  EXPECT_EQ(peeked.remaining, 10);
  EXPECT_EQ(peeked.reset_after, Duration(0));
  EXPECT_EQ(Exhaust("ann"), algorithm().at_once);
}

TEST_P(EveryVerb, PeekAnswersAsCheckWouldAndTakesNothing) {
  for (int i = 0; i < 30; ++i) EXPECT_EQ(Do(Verb::kPeek, "ann", 3).remaining, 10);
  EXPECT_EQ(under_test_.store.Stats().entries, 0U);
  ASSERT_TRUE(Check("ann", 8).allowed);
  const std::int64_t left = algorithm().at_once - 8;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Do(Verb::kPeek, "ann", left).allowed);
    EXPECT_FALSE(Do(Verb::kPeek, "ann", left + 1).allowed);
  }
  const Decision peeked = Do(Verb::kPeek, "ann", left + 1);
  const Decision checked = Check("ann", left + 1);
  EXPECT_EQ(peeked.retry_after, checked.retry_after);
  EXPECT_EQ(peeked.reset_after, checked.reset_after);
  EXPECT_EQ(peeked.remaining, checked.remaining);
  EXPECT_TRUE(Check("ann", left).allowed);
}

TEST_P(EveryVerb, ACheckOfCostZeroAsksWhetherOneWouldPassAndTakesNothing) {
  for (int i = 0; i < 30; ++i) {
    const Decision asked = Check("ann", 0);
    EXPECT_TRUE(asked.allowed);
    EXPECT_EQ(asked.cost, 0);
    EXPECT_EQ(asked.remaining, 10);
    EXPECT_EQ(asked.reservation, ReservationId::kNone);
  }
  EXPECT_EQ(under_test_.store.Stats().entries, 0U);
  Exhaust("ann");
  const Decision asked = Check("ann", 0);
  EXPECT_FALSE(asked.allowed);
  EXPECT_EQ(asked.reason, Reason::kLimited);
  EXPECT_EQ(asked.retry_after, Check("ann", 1).retry_after);
}

TEST_P(EveryVerb, WhatIsAboveTheLimitNeverFits) {
  for (const Verb verb : {Verb::kCheck, Verb::kPeek}) {
    const Decision decision = Do(verb, "ann", algorithm().at_once + 1);
    EXPECT_FALSE(decision.allowed);
    EXPECT_EQ(decision.reason, Reason::kNeverFits);
    EXPECT_EQ(decision.retry_after, kNever);
    EXPECT_EQ(decision.remaining, 10);
  }
  EXPECT_EQ(Do(Verb::kCheck, "ann", kMaxCount).reason, Reason::kNeverFits);
  EXPECT_TRUE(Check("ann", algorithm().at_once).allowed);
}

TEST_P(EveryVerb, RefundGivesBackAndNeverMoreThanWasTaken) {
  Exhaust("ann");
  const Decision refunded = Do(Verb::kRefund, "ann", 3);
  EXPECT_TRUE(refunded.allowed);
  EXPECT_EQ(refunded.remaining, 3);
  EXPECT_EQ(refunded.cost, 3);
  EXPECT_EQ(Exhaust("ann"), 3);
  EXPECT_EQ(Do(Verb::kRefund, "ann", kMaxCount).remaining, 10);
  EXPECT_EQ(Exhaust("ann"), algorithm().at_once);
}

TEST_P(EveryVerb, RefundOfNothingAndOnAFreshKeyChangesNothing) {
  EXPECT_EQ(Do(Verb::kRefund, "ann", 5).remaining, 10);
  Check("ann", 4);
  const std::int64_t left = Do(Verb::kPeek, "ann").remaining;
  EXPECT_EQ(Do(Verb::kRefund, "ann", 0).remaining, left);
  EXPECT_EQ(Do(Verb::kPeek, "ann").remaining, left);
}

TEST_P(EveryVerb, PenalizeTakesWhetherItFitsOrNotUpToTwiceTheCapacity) {
  const Decision first = Do(Verb::kPenalize, "ann", 4);
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.remaining, std::min<std::int64_t>(10, algorithm().at_once - 4));
  EXPECT_EQ(Do(Verb::kPenalize, "ann", kMaxCount).remaining, 0);
  EXPECT_FALSE(Check("ann").allowed);
  // Ten of the twenty are debt.
  EXPECT_EQ(Do(Verb::kRefund, "ann", 10).remaining, algorithm().at_once - 10);
  EXPECT_EQ(Do(Verb::kRefund, "ann", 4).remaining,
            std::min<std::int64_t>(10, algorithm().at_once - 6));
}

TEST_P(EveryVerb, DebtIsGoneAfterTwiceTheTimeToFill) {
  Do(Verb::kPenalize, "ann", kMaxCount);
  under_test_.clock.Advance(seconds(20));
  EXPECT_EQ(Do(Verb::kPeek, "ann").remaining, 10);
}

TEST_P(EveryVerb, ResetMakesFresh) {
  Exhaust("ann");
  Do(Verb::kPenalize, "ann", 5);
  const Decision reset = Do(Verb::kReset, "ann");
  EXPECT_TRUE(reset.allowed);
  EXPECT_EQ(reset.remaining, 10);
  EXPECT_EQ(reset.reset_after, Duration(0));
  EXPECT_EQ(Exhaust("ann"), algorithm().at_once);
  EXPECT_EQ(Do(Verb::kReset, "nobody").remaining, 10);
}

TEST_P(EveryVerb, ADenialLeavesTheStateAsItWas) {
  Check("ann", 8);
  const Decision before = Do(Verb::kPeek, "ann");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Check("ann", 5).allowed);
  const Decision after = Do(Verb::kPeek, "ann");
  EXPECT_EQ(after.remaining, before.remaining);
  EXPECT_EQ(after.reset_after, before.reset_after);
}

TEST_P(EveryVerb, AClockThatStepsBackHandsOutNothing) {
  Exhaust("ann");
  under_test_.clock.Advance(-seconds(3));
  EXPECT_FALSE(Check("ann").allowed);
  under_test_.clock.Advance(-hours(3));
  EXPECT_FALSE(Check("ann").allowed);
}

// Asked again and again, as a client does. What the limit can owe at most, and what it served as
// the longest wait, is all that anybody is locked out for.
TEST_P(EveryVerb, AClockThatStepsBackLocksNobodyOutForLongerThanAFullDrain) {
  Exhaust("ann");
  under_test_.clock.Advance(-hours(3));
  bool admitted = false;
  for (int i = 0; i < 90 && !admitted; ++i) {
    under_test_.clock.Advance(seconds(1));
    admitted = Check("ann").allowed;
  }
  EXPECT_TRUE(admitted);
}

TEST_P(EveryVerb, KeysOfEveryKindAreKeptApart) {
  const std::string long_key(std::size_t{1} << 20, 'x');
  std::string longer_key = long_key;
  longer_key.back() = 'y';
  std::vector<std::string> keys{"",
                                std::string(1, '\0'),
                                std::string(2, '\0'),
                                std::string("a\0b", 3),
                                std::string("a\0c", 3),
                                "a",
                                long_key,
                                longer_key};
  for (int bit = 0; bit < 8; ++bit) {
    keys.emplace_back("key");
    keys.back()[1] = static_cast<char>(keys.back()[1] ^ (1 << bit));
  }
  for (const std::string& key : keys) EXPECT_EQ(Exhaust(key), algorithm().at_once);
  for (const std::string& key : keys) EXPECT_FALSE(Check(key).allowed);
}

std::string NameOfCase(const testing::TestParamInfo<EveryVerb::ParamType>& info) {
  static constexpr const char* kWays[] = {"Alone", "GroupOfOne", "GroupOfTwo", "Submitted"};
  return std::get<0>(info.param).name + kWays[static_cast<std::size_t>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryVerb,
                         testing::Combine(testing::ValuesIn(EveryAlgorithm()),
                                          testing::Values(Way::kAlone, Way::kGroupOfOne,
                                                          Way::kGroupOfTwo, Way::kSubmitted)),
                         NameOfCase);

class Overdraft : public testing::TestWithParam<AlgorithmCase> {
 protected:
  StoreUnderTest under_test_;
};

TEST_P(Overdraft, IsAllowedAsLongAsAnythingIsLeftAndChargesTheWholeCost) {
  const Limit& limit = GetParam().limit;
  EXPECT_TRUE(under_test_.Check("ann", limit, 9).allowed);
  EXPECT_TRUE(under_test_.Check("ann", limit, 5).allowed);
  EXPECT_FALSE(under_test_.Check("ann", limit, 1).allowed);
  EXPECT_EQ(under_test_.Do(Verb::kRefund, "ann", limit, 4).remaining, 0);
  EXPECT_EQ(under_test_.Do(Verb::kRefund, "ann", limit, 1).remaining, 1);
}

TEST_P(Overdraft, TakesACostAboveTheCapacityAndForgivesWhatIsAboveTwice) {
  const Limit& limit = GetParam().limit;
  const Decision decision = under_test_.Check("ann", limit, kMaxCount);
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.remaining, 0);
  EXPECT_EQ(under_test_.Do(Verb::kRefund, "ann", limit, 11).remaining, 1);
}

TEST_P(Overdraft, SaysWhenSomethingWillBeLeftAgain) {
  const Limit& limit = GetParam().limit;
  under_test_.Check("ann", limit, 15);
  const Decision denied = under_test_.Check("ann", limit, 7);
  ASSERT_FALSE(denied.allowed);
  under_test_.clock.Advance(denied.retry_after - Duration(1));
  EXPECT_FALSE(under_test_.Check("ann", limit, 7).allowed);
  under_test_.clock.Advance(Duration(1));
  EXPECT_TRUE(under_test_.Check("ann", limit, 7).allowed);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Overdraft,
                         testing::ValuesIn(EveryAlgorithm({.overdraft = true})), NameOfAlgorithm());

TEST(MemoryStore, DecidesAtAnyTimeThatCanBeWritten) {
  std::vector<AlgorithmCase> cases = EveryAlgorithm();
  for (const CalendarPeriod period : {CalendarPeriod::kDay, CalendarPeriod::kYear}) {
    cases.push_back({"Calendar", Limit::Make({.algorithm = Algorithm::kFixedWindow,
                                              .count = 10,
                                              .align = Align::kCalendar,
                                              .calendar = period})
                                     .value()});
  }
  const Now usual = ManualClock().Read();
  for (const AlgorithmCase& algorithm : cases) {
    SCOPED_TRACE(algorithm.name);
    for (const SteadyTime start : {SteadyTime::min(), usual.steady, SteadyTime::max()}) {
      for (const WallTime origin : {WallTime::min(), usual.wall, WallTime::max()}) {
        MemoryStore store({}, {start, origin});
        Charge charge{
            .hash = store.Hash("ann"), .limit = &algorithm.limit, .wait = Duration::max()};
        if (!algorithm.is_bucket()) charge.wait = Duration(0);
        for (const SteadyTime steady : {SteadyTime::min(), SteadyTime::max(), usual.steady}) {
          for (const WallTime wall : {WallTime::max(), WallTime::min(), usual.wall}) {
            std::int64_t admitted = 0;
            while (admitted < 200 && store.Decide(charge, {steady, wall}).allowed) ++admitted;
            EXPECT_LE(admitted, algorithm.at_once + 60);
            const Decision denied = store.Decide(charge, {steady, wall});
            EXPECT_FALSE(denied.allowed);
            EXPECT_GT(denied.retry_after, Duration(0));
            EXPECT_LE(denied.retry_after, 2 * algorithm.limit.time_to_fresh());
          }
        }
      }
    }
  }
}

TEST(MemoryStore, KeepsACalendarWindowUntilTheWallClockSaysItIsOver) {
  const Limit limit =
      LimitOf("100/day", {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendar});
  StoreUnderTest under_test({.cap_bytes = kMinCapBytes});
  const WallTime midnight = under_test.clock.Read().wall + hours(24);
  under_test.clock.Advance(hours(24) - minutes(10));
  EXPECT_TRUE(under_test.Check("ann", limit, 100).allowed);
  under_test.clock.SetWall(midnight - minutes(65));
  under_test.clock.Advance(minutes(10) + seconds(1));
  // Keys that take over every slot that is free, at the same instant and no cap in the way.
  for (int i = 0; i < 5'000; ++i) under_test.Check("new " + std::to_string(i), limit);
  ASSERT_EQ(under_test.store.Stats().evicted_live, 0U);
  EXPECT_FALSE(under_test.Check("ann", limit).allowed);
  const Limit changed = LimitOf("200/day", limit.spec()).Replacing(limit, under_test.clock.Read());
  EXPECT_FALSE(under_test.Check("ann", changed).allowed);
  under_test.clock.SetWall(midnight);
  EXPECT_TRUE(under_test.Check("ann", changed).allowed);
}

TEST(MemoryStore, CarriesACalendarWindowOverToANewLimitThoughTheWallClockWasSetBack) {
  const Limit limit =
      LimitOf("100/day", {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendar});
  StoreUnderTest under_test;
  EXPECT_TRUE(under_test.Check("ann", limit, 100).allowed);
  const Limit changed = LimitOf("200/day", limit.spec()).Replacing(limit, under_test.clock.Read());
  under_test.clock.Advance(hours(23));
  under_test.clock.SetWall(under_test.clock.Read().wall - hours(12));
  under_test.clock.Advance(hours(12));
  EXPECT_FALSE(under_test.Check("ann", changed).allowed);
}

TEST(MemoryStore, TellsTheDelayOfAQueue) {
  StoreUnderTest under_test;
  const Limit limit =
      LimitOf("10/10s burst 3", {.algorithm = Algorithm::kLeakyBucket, .queue = true});
  for (int i = 0; i < 4; ++i) {
    const Decision decision = under_test.Check("ann", limit);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.delay, seconds(i));
  }
  EXPECT_EQ(under_test.Check("ann", limit).retry_after, seconds(1));
  under_test.clock.Advance(seconds(2));
  EXPECT_EQ(under_test.Check("ann", limit).delay, seconds(2));
}

TEST(MemoryStore, BooksAheadAsFarAsTheChargeIsReadyToWait) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("1/s burst 1");
  Charge charge = under_test.ChargeFor("ann", limit);
  const Now now = under_test.clock.Read();
  charge.wait = seconds(2);
  EXPECT_EQ(under_test.store.Decide(charge, now).delay, seconds(0));
  EXPECT_EQ(under_test.store.Decide(charge, now).delay, seconds(1));
  EXPECT_EQ(under_test.store.Decide(charge, now).delay, seconds(2));
  EXPECT_EQ(under_test.store.Decide(charge, now).retry_after, seconds(1));
  // However patient: the limit's max_wait is the end.
  charge.wait = hours(20);
  std::int64_t booked = 0;
  while (booked < 100 && under_test.store.Decide(charge, now).allowed) ++booked;
  EXPECT_EQ(booked, 58);
}

TEST(MemoryStore, CountsNothingUnderUnlimited) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("unlimited");
  for (const std::int64_t cost : {std::int64_t{0}, std::int64_t{1}, kMaxCount}) {
    const Decision decision = under_test.Check("ann", limit, cost);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.reason, Reason::kOk);
    EXPECT_EQ(decision.rule, "rule");
    EXPECT_EQ(decision.cost, cost);
    EXPECT_EQ(decision.remaining, decision.limit);
  }
  EXPECT_EQ(under_test.store.Stats().entries, 0U);
}

TEST(MemoryStore, RefusesWhoeverAsksUnderDenyButNotWhoManages) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("deny");
  for (const Verb verb : {Verb::kCheck, Verb::kPeek}) {
    const Decision decision = under_test.Do(verb, "ann", limit);
    EXPECT_FALSE(decision.allowed);
    EXPECT_EQ(decision.reason, Reason::kDenyList);
    EXPECT_EQ(decision.retry_after, kNever);
    EXPECT_EQ(decision.limit, 0);
  }
  for (const Verb verb : {Verb::kRefund, Verb::kPenalize, Verb::kReset}) {
    EXPECT_TRUE(under_test.Do(verb, "ann", limit).allowed);
  }
}

TEST(MemoryStore, DecidesABatchAsOneByOne) {
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    SCOPED_TRACE(algorithm.name);
    StoreUnderTest batch({.hash_seed = 1});
    StoreUnderTest single({.hash_seed = 1});
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back("key " + std::to_string(i * i % 7));
    std::vector<Charge> charges;
    for (const std::string& key : keys) charges.push_back(batch.ChargeFor(key, algorithm.limit));
    std::vector<Decision> decisions(charges.size());
    batch.store.DecideEach(charges, batch.clock.Read(), decisions);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Decision expected = single.Check(keys[i], algorithm.limit);
      EXPECT_EQ(decisions[i].allowed, expected.allowed);
      EXPECT_EQ(decisions[i].remaining, expected.remaining);
      EXPECT_EQ(decisions[i].retry_after, expected.retry_after);
      EXPECT_EQ(decisions[i].reservation == ReservationId::kNone,
                expected.reservation == ReservationId::kNone);
    }
  }
}

TEST(MemoryStore, KeepsTheSameKeyUnderDifferentAlgorithmsApart) {
  StoreUnderTest under_test;
  const std::vector<AlgorithmCase> cases = EveryAlgorithm();
  for (const AlgorithmCase& algorithm : cases) {
    EXPECT_EQ(under_test.Exhaust("ann", algorithm.limit), algorithm.at_once) << algorithm.name;
  }
}

}  // namespace
}  // namespace weir
