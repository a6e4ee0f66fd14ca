// Groups: all or nothing.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// A group of one charge under every algorithm and one under a bucket that can be filled up.
class MixedGroup : public testing::Test {
 protected:
  std::vector<Charge> Charges(std::int64_t cost = 1) {
    std::vector<Charge> charges;
    for (const AlgorithmCase& algorithm : all_) {
      charges.push_back(under_test_.ChargeFor("ann", algorithm.limit, cost));
      charges.back().rule = algorithm.name;
    }
    return charges;
  }
  void ExpectUsed(std::int64_t used) {
    for (const AlgorithmCase& algorithm : all_) ExpectUsed(algorithm, used);
  }
  void ExpectSettled(std::int64_t cost) {
    for (const AlgorithmCase& algorithm : all_) ExpectUsed(algorithm, algorithm.Settled(cost));
  }
  void ExpectUsed(const AlgorithmCase& algorithm, std::int64_t used) {
    EXPECT_EQ(under_test_.Remaining("ann", algorithm.limit),
              std::min<std::int64_t>(10, algorithm.at_once - used))
        << algorithm.name;
  }

  StoreUnderTest under_test_;
  const std::vector<AlgorithmCase> all_ = EveryAlgorithm();
};

TEST(Receipts, SayWhatWasTakenOnceForEachKey) {
  StoreUnderTest under_test;
  const Limit bucket = LimitOf("10/10s");
  const Limit overdraft =
      LimitOf("10/10s", {.algorithm = Algorithm::kFixedWindow, .overdraft = true});
  std::vector<Charge> charges{
      under_test.ChargeFor("ann", bucket, 2), under_test.ChargeFor("ann", bucket, 3),
      under_test.ChargeFor("bob", overdraft, 100), under_test.ChargeFor("bob", bucket, 1)};
  std::array<Decision, 4> decisions;
  std::array<Receipt, 4> receipts{};
  Group group{.charges = charges, .decisions = decisions, .receipts = receipts};
  under_test.store.Decide(group, under_test.clock.Read());
  ASSERT_TRUE(group.decision.allowed);
  const std::array<std::int64_t, 4> taken{5, 0, 20, 1};  // Debt ends at twice the capacity.
  for (std::size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(receipts[i].charged, taken[i]) << i;
    charges[i].verb = Verb::kUnbook;
    charges[i].cost = 0;
    charges[i].reserved = receipts[i].charged;
    charges[i].receipt = receipts[i].at;
  }
  under_test.store.Decide(group, under_test.clock.Read());
  EXPECT_EQ(under_test.Remaining("ann", bucket), 10);
  EXPECT_EQ(under_test.Remaining("bob", bucket), 10);
  EXPECT_EQ(under_test.Remaining("bob", overdraft), 10);
}

TEST(Settled, NamesTheKeysAsFarAsThereIsRoom) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  for (const std::size_t room : {0U, 1U, 5U}) {
    const std::vector<Charge> charges{under_test.ChargeFor("ann", limit),
                                      under_test.ChargeFor("bob", limit)};
    std::vector<std::uint64_t> settled(room);
    Group group{.action = Action::kCancel,
                .reservation = under_test.Ask(charges, Action::kReserve).reservation,
                .settled = settled};
    under_test.store.Decide(group, under_test.clock.Read());
    EXPECT_EQ(group.settled_count, std::min<std::size_t>(room, 2));
    settled.resize(group.settled_count);
    for (const std::uint64_t hash : settled) {
      EXPECT_TRUE(hash == charges[0].hash || hash == charges[1].hash);
    }
    under_test.store.Decide(group, under_test.clock.Read());
    EXPECT_TRUE(group.error);
    EXPECT_EQ(group.settled_count, 0U);
  }
}

TEST(LeaseRecords, AreNotOpenedForALimitThatCountsNothing) {
  StoreUnderTest under_test;
  const Limit unlimited = LimitOf("unlimited", {.algorithm = Algorithm::kConcurrency});
  const Limit bucket = LimitOf("10/10s");
  const Decision decision =
      under_test.Ask({under_test.ChargeFor("ann", unlimited), under_test.ChargeFor("ann", bucket)});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reservation, ReservationId::kNone);
  EXPECT_EQ(under_test.store.Stats().reservations, 0U);
}

TEST(LeaseRecords, DenyNobodyWhenOnlyShadowsWantThemAndTheyAreUsedUp) {
  StoreUnderTest under_test({.max_reservations = 1});
  const Limit places = LimitOf("9 concurrent lease 10s");
  const Limit bucket = LimitOf("10/10s");
  std::vector<Charge> charges{under_test.ChargeFor("ann", bucket),
                              under_test.ChargeFor("ann", places)};
  ASSERT_TRUE(under_test.Ask(charges).allowed);
  EXPECT_EQ(under_test.Ask(charges).reason, Reason::kOverload);
  charges[1].shadow = true;
  const Decision passed = under_test.Ask(charges);
  EXPECT_TRUE(passed.allowed);
  EXPECT_EQ(passed.reservation, ReservationId::kNone);
  EXPECT_EQ(under_test.Remaining("ann", bucket), 8);
  EXPECT_EQ(under_test.Ask(charges, Action::kReserve).reason, Reason::kOverload);
  under_test.clock.Advance(seconds(10));
  EXPECT_EQ(under_test.Remaining("ann", places), 9);
}

TEST_F(MixedGroup, ChargesEveryKeyWhenAllPass) {
  const std::vector<Charge> charges = Charges(3);
  std::vector<Decision> decisions(charges.size());
  const Group group = under_test_.DecideGroup(charges, decisions);
  EXPECT_TRUE(group.decision.allowed);
  EXPECT_FALSE(group.error);
  for (std::size_t i = 0; i < charges.size(); ++i) {
    EXPECT_TRUE(decisions[i].allowed);
    EXPECT_EQ(decisions[i].rule, all_[i].name);
    EXPECT_EQ(decisions[i].remaining, all_[i].at_once - 3);
  }
  ExpectUsed(3);
}

TEST_F(MixedGroup, ThatIsDeniedByAnyOneLeavesNoTraceOnTheOthers) {
  for (std::size_t denying = 0; denying < all_.size(); ++denying) {
    SCOPED_TRACE(all_[denying].name);
    const Limit& full = all_[denying].limit;
    under_test_.Do(Verb::kPenalize, "ann", full, 10);
    under_test_.Do(Verb::kPenalize, "ann", full, 1);
    for (int i = 0; i < 3; ++i) {
      const Decision decision = under_test_.Ask(Charges());
      EXPECT_FALSE(decision.allowed);
      EXPECT_EQ(decision.reason, Reason::kLimited);
      EXPECT_EQ(decision.rule, all_[denying].name);
      EXPECT_EQ(decision.reservation, ReservationId::kNone);
    }
    under_test_.Do(Verb::kReset, "ann", full);
    ExpectUsed(0);
    EXPECT_EQ(under_test_.store.Stats().reservations, 0U);
  }
}

TEST_F(MixedGroup, ThatIsDeniedLeavesAbsentKeysAbsent) {
  std::vector<Charge> charges = Charges();
  const Limit deny = LimitOf("deny");
  charges.push_back(under_test_.ChargeFor("ann", deny));
  EXPECT_EQ(under_test_.Ask(charges).reason, Reason::kDenyList);
  charges.back() = under_test_.ChargeFor("bob", all_[0].limit, 11);
  EXPECT_EQ(under_test_.Ask(charges).reason, Reason::kNeverFits);
  EXPECT_EQ(under_test_.store.Stats().entries, 0U);
  EXPECT_EQ(under_test_.store.Stats().event_chunks, 0U);
}

TEST_F(MixedGroup, ReservesAndIsCancelledAsAWhole) {
  const Decision reserved = under_test_.Ask(Charges(4), Action::kReserve);
  ASSERT_TRUE(reserved.allowed);
  ExpectUsed(4);
  ASSERT_TRUE(under_test_.Cancel(reserved.reservation));
  ExpectUsed(0);
}

TEST_F(MixedGroup, ReservesAndIsCommittedAsAWhole) {
  const Decision less = under_test_.Ask(Charges(4), Action::kReserve);
  ASSERT_TRUE(under_test_.Commit(less.reservation, 1));
  ExpectSettled(1);
  const Decision more = under_test_.Ask(Charges(2), Action::kReserve);
  ASSERT_TRUE(under_test_.Commit(more.reservation, 6));
  ExpectSettled(7);
}

TEST(Group, OfNothingIsAllowedByNoRule) {
  StoreUnderTest under_test;
  const Decision decision = under_test.Ask({});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kNoRule);
}

TEST(Group, DecidesSixtyFourChargesAndRefusesSixtyFiveWithoutTouchingAny) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  std::vector<std::string> keys;
  for (int i = 0; i < 65; ++i) keys.push_back("key " + std::to_string(i));
  std::vector<Charge> charges;
  for (const std::string& key : keys) charges.push_back(under_test.ChargeFor(key, limit));
  std::vector<Decision> decisions(65);
  const Group refused = under_test.DecideGroup(charges, decisions);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error->message, HasSubstr("65"));
  EXPECT_THAT(refused.error->message, HasSubstr("at most 64"));
  EXPECT_EQ(under_test.store.Stats().entries, 0U);

  charges.pop_back();
  EXPECT_FALSE(under_test.DecideGroup(charges, decisions).error);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(under_test.Remaining(keys[static_cast<std::size_t>(i)], limit), 9);
  const Group short_of_room = under_test.DecideGroup(charges, std::span(decisions).first(63));
  EXPECT_TRUE(short_of_room.error);
}

TEST(Group, RefusesDifferentVerbsWithoutTouchingAnyKey) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  under_test.Check("ann", limit, 5);
  for (const Verb verb : {Verb::kPeek, Verb::kRefund, Verb::kReset}) {
    for (const char* key : {"ann", "bob"}) {
      const std::vector<Charge> charges{under_test.ChargeFor(key, limit),
                                        under_test.ChargeFor("ann", limit, 1, verb)};
      std::vector<Decision> decisions(2);
      const Group refused = under_test.DecideGroup(charges, decisions);
      ASSERT_TRUE(refused.error);
      EXPECT_EQ(refused.error->code, ErrorCode::kInvalidArgument);
      EXPECT_THAT(refused.error->message, HasSubstr("verb"));
    }
  }
  EXPECT_EQ(under_test.Remaining("ann", limit), 5);
  EXPECT_EQ(under_test.Remaining("bob", limit), 10);
}

TEST(Group, UnbooksAKeyThatIsInItTwiceAsAWhole) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  std::vector<Charge> charges{under_test.ChargeFor("ann", limit, 3),
                              under_test.ChargeFor("ann", limit, 4)};
  std::vector<Decision> decisions(2);
  std::vector<Receipt> receipts(2);
  Group group{.charges = charges, .decisions = decisions, .receipts = receipts};
  under_test.store.Decide(group, under_test.clock.Read());
  EXPECT_EQ(under_test.Remaining("ann", limit), 3);
  for (std::size_t i = 0; i < 2; ++i) {
    charges[i].verb = Verb::kUnbook;
    charges[i].reserved = std::exchange(charges[i].cost, 0);
    charges[i].receipt = receipts[i].at;
  }
  EXPECT_TRUE(under_test.Ask(charges).allowed);
  EXPECT_EQ(under_test.Remaining("ann", limit), 10);
}

TEST(Group, CountsAKeyThatIsInItTwiceTwice) {
  for (const AlgorithmCase& algorithm : EveryAlgorithm()) {
    SCOPED_TRACE(algorithm.name);
    StoreUnderTest under_test;
    const auto twice = [&](std::int64_t one, std::int64_t other, Verb verb = Verb::kCheck) {
      return under_test.Ask({under_test.ChargeFor("ann", algorithm.limit, one, verb),
                             under_test.ChargeFor("ann", algorithm.limit, other, verb)});
    };
    EXPECT_TRUE(twice(3, 4).allowed);
    EXPECT_EQ(under_test.Remaining("ann", algorithm.limit), algorithm.at_once - 7);
    EXPECT_FALSE(twice(algorithm.at_once - 8, 2, Verb::kPeek).allowed);
    EXPECT_FALSE(twice(algorithm.at_once - 8, 2).allowed);
    EXPECT_EQ(under_test.Remaining("ann", algorithm.limit), algorithm.at_once - 7);
    EXPECT_TRUE(twice(algorithm.at_once - 8, 1).allowed);
    EXPECT_EQ(under_test.Remaining("ann", algorithm.limit), 0);
  }
}

TEST(Group, SpeaksForTheTightestRuleWhenAllowedAndTheLongestWaitWhenNot) {
  StoreUnderTest under_test;
  const Limit small = LimitOf("2/s");
  const Limit large = LimitOf("100/min");
  std::vector<Charge> charges{under_test.ChargeFor("ann, small", small),
                              under_test.ChargeFor("ann, large", large)};
  charges[0].rule = "small";
  charges[1].rule = "large";
  EXPECT_EQ(under_test.Ask(charges).rule, "small");
  under_test.clock.Advance(milliseconds(500));
  under_test.Do(Verb::kPenalize, "ann, large", large, 70);
  EXPECT_EQ(under_test.Ask(charges).rule, "large");
  under_test.Do(Verb::kPenalize, "ann, large", large, 70);
  under_test.Do(Verb::kPenalize, "ann, small", small, 4);
  const Decision denied = under_test.Ask(charges);
  EXPECT_EQ(denied.rule, "large");
  EXPECT_EQ(denied.limit, 100);
}

TEST(Group, WaitsForTheSlowestOfItsQueues) {
  StoreUnderTest under_test;
  const LimitSpec queue{.algorithm = Algorithm::kLeakyBucket, .queue = true};
  const Limit fast = LimitOf("10/s", queue);
  const Limit slow = LimitOf("1/s burst 5", queue);
  const std::vector<Charge> charges{under_test.ChargeFor("ann", slow),
                                    under_test.ChargeFor("bob", fast)};
  EXPECT_EQ(under_test.Ask(charges).delay, seconds(0));
  EXPECT_EQ(under_test.Ask(charges).delay, seconds(1));
  EXPECT_EQ(under_test.Ask(charges).delay, seconds(2));
}

TEST(ShadowCharge, NeverVetoes) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("3/10s");
  const Limit tight = LimitOf("1/10s");
  std::vector<Charge> charges{under_test.ChargeFor("ann", limit),
                              under_test.ChargeFor("bob", tight)};
  charges[1].shadow = true;
  std::vector<Decision> decisions(2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(under_test.DecideGroup(charges, decisions).decision.allowed);
    EXPECT_EQ(decisions[1].allowed, i == 0);
  }
  EXPECT_FALSE(under_test.DecideGroup(charges, decisions).decision.allowed);
}

TEST(ShadowCharge, IsChargedOnlyIfTheEnforcedOnesPass) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("2/10s");
  const Limit wide = LimitOf("10/10s");
  std::vector<Charge> charges{under_test.ChargeFor("ann", limit),
                              under_test.ChargeFor("bob", wide)};
  charges[1].shadow = true;
  for (int i = 0; i < 6; ++i) under_test.Ask(charges);
  EXPECT_EQ(under_test.Remaining("bob", wide), 8);
}

TEST(ShadowCharge, OnTheKeyOfAnEnforcedOneStopsNobodyAndCountsNothing) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("2/10s");
  for (const std::size_t shadow : {0U, 1U}) {
    const std::string key = std::to_string(shadow);
    std::vector<Charge> charges(2, under_test.ChargeFor(key, limit));
    charges[shadow].shadow = true;
    EXPECT_TRUE(under_test.Ask(charges).allowed);
    EXPECT_TRUE(under_test.Ask(charges).allowed);
    EXPECT_FALSE(under_test.Ask(charges).allowed);
  }
}

TEST(ShadowCharge, AloneIsAllowedByNoRule) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("1/10s");
  std::vector<Charge> charges{under_test.ChargeFor("ann", limit)};
  charges[0].shadow = true;
  std::vector<Decision> decisions(1);
  EXPECT_EQ(under_test.DecideGroup(charges, decisions).decision.reason, Reason::kNoRule);
  const Group second = under_test.DecideGroup(charges, decisions);
  EXPECT_TRUE(second.decision.allowed);
  EXPECT_FALSE(decisions[0].allowed);
}

TEST(Group, ManagesTheOtherKeysWhenOneRuleIsDeny) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("10/10s");
  const Limit deny = LimitOf("deny");
  under_test.Check("ann", limit, 6);
  const auto manage = [&](Verb verb, std::int64_t cost) {
    return under_test
        .Ask({under_test.ChargeFor("ann", deny, cost, verb),
              under_test.ChargeFor("ann", limit, cost, verb)})
        .allowed;
  };
  EXPECT_TRUE(manage(Verb::kRefund, 2));
  EXPECT_EQ(under_test.Remaining("ann", limit), 6);
  EXPECT_TRUE(manage(Verb::kPenalize, 3));
  EXPECT_EQ(under_test.Remaining("ann", limit), 3);
  EXPECT_TRUE(manage(Verb::kReset, 1));
  EXPECT_EQ(under_test.Remaining("ann", limit), 10);
}

TEST(Group, SaysNothingOfAnEarlierAnswerWhenItIsUsedAgain) {
  StoreUnderTest under_test;
  const Limit limit = LimitOf("1 concurrent lease 10s");
  const Charge charge = under_test.ChargeFor("ann", limit);
  Decision decision;
  Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  under_test.store.Decide(group, under_test.clock.Read());
  ASSERT_NE(group.reservation, ReservationId::kNone);
  under_test.store.Decide(group, under_test.clock.Read());
  EXPECT_FALSE(group.decision.allowed);
  EXPECT_EQ(group.reservation, ReservationId::kNone);
  EXPECT_EQ(group.decision.reservation, ReservationId::kNone);
}

}  // namespace
}  // namespace weir
