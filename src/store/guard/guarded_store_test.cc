#include <functional>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/guard/guarded_under_test.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(GuardedStore, PassesOnWhatTheStoreDecides) {
  GuardedUnderTest process;
  const Limit limit = LimitOf("3/h");
  for (int i = 2; i >= 0; --i) {
    const Decision decision = process.Check("ann", limit);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.remaining, i);
    EXPECT_EQ(decision.source, Source::kStore);
  }
  EXPECT_FALSE(process.Check("ann", limit).allowed);
  EXPECT_FALSE(process.guard.IsDegraded());
  EXPECT_TRUE(process.notices.empty());
}

TEST(GuardedStore, DecidesByItsShareWhenTheStoreFails) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  const Decision decision = process.Check("ann", limit);
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.source, Source::kFallback);
  EXPECT_EQ(decision.rule, "rule");
  EXPECT_EQ(decision.limit, 25);
  EXPECT_EQ(decision.remaining, 24);
  EXPECT_EQ(process.Exhaust("ann", limit), 24);
  const Decision denied = process.Check("ann", limit);
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.source, Source::kFallback);
  EXPECT_GT(denied.retry_after, Duration(0));
}

TEST(GuardedStore, DecidesByItsNewShareWhenTheFleetSizeIsSetAnew) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  EXPECT_EQ(process.Check("ann", limit).limit, 25);
  process.guard.SetFleetSize(10);
  EXPECT_EQ(process.guard.fleet_size(), 10);
  EXPECT_EQ(process.Check("ann", limit).limit, 10);
  EXPECT_EQ(process.Exhaust("bob", limit), 10);
  // Nobody has counted.
  process.guard.SetFleetSize(0);
  EXPECT_EQ(process.Check("bob", limit).limit, 100);
}

TEST(GuardedStore, SaysNothingOfTheStoreInUseOnceItIsAnother) {
  GuardedUnderTest process;
  const Limit limit = LimitOf("100/h");
  EXPECT_EQ(process.Check("ann", limit).source, Source::kStore);
  Guard other = process.guard.ForAnother();
  StoreBehind behind(other.hasher(), process.loop.clock.Read());
  GuardedStore store(behind, other, process.loop);
  process.guard.Retire();
  // It is still answered, by the same share.
  process.behind.Fail();
  EXPECT_EQ(process.Check("ann", limit).source, Source::kFallback);
  EXPECT_EQ(process.Check("ann", limit).remaining, 22);
  EXPECT_FALSE(other.IsDegraded());
  EXPECT_TRUE(process.notices.empty());
  // What the other says counts.
  behind.Fail();
  const Charge charge = process.ChargeFor("ann", limit);
  Decision decision;
  Group group{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  DecidedGroups told;
  store.Submit({&group, 1}, process.loop.now(), told);
  EXPECT_EQ(group.decision.remaining, 21);
  EXPECT_TRUE(other.IsDegraded());
  // A store that was left and answers does not make it well.
  process.behind.Recover();
  process.loop.clock.Advance(seconds(5));
  EXPECT_EQ(process.Check("ann", limit).source, Source::kStore);
  EXPECT_TRUE(other.IsDegraded());
}

TEST(GuardedStore, LetsThroughWhatIsOpenWhenTheStoreFails) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("3/h");
  for (int i = 0; i < 10; ++i) {
    const Decision decision = process.Check("ann", limit, 1, FailureMode::kOpen);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.source, Source::kOpen);
    EXPECT_EQ(decision.remaining, 3);
    EXPECT_EQ(decision.limit, 3);
  }
}

TEST(GuardedStore, RefusesWhatIsClosedWhenTheStoreFails) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("3/h");
  const Decision decision = process.Check("ann", limit, 2, FailureMode::kClosed);
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.reason, Reason::kStoreFailure);
  EXPECT_EQ(decision.source, Source::kClosed);
  EXPECT_EQ(decision.cost, 2);
  EXPECT_EQ(decision.retry_after, seconds(1));
}

TEST(GuardedStore, TakesNothingAnywhereWhenAClosedRuleRefuses) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  for (int i = 0; i < 50; ++i) {
    const Group group = process.Ask({process.ChargeFor("ann", limit),
                                     process.ChargeFor("bob", limit, 1, FailureMode::kClosed),
                                     process.ChargeFor("cat", limit, 1, FailureMode::kOpen)});
    ASSERT_EQ(group.decision.reason, Reason::kStoreFailure);
    EXPECT_TRUE(process.decisions[0].allowed);
    EXPECT_FALSE(process.decisions[1].allowed);
    EXPECT_TRUE(process.decisions[2].allowed);
  }
  EXPECT_EQ(process.Exhaust("ann", limit), 25);
  EXPECT_EQ(process.guard.stats().closed, 50u);
}

TEST(GuardedStore, DoesNotLetAnOpenRuleHideThatAStaticOneDenies) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("4/h");
  const std::vector<Charge> charges{process.ChargeFor("ann", limit, 1, FailureMode::kOpen),
                                    process.ChargeFor("bob", limit)};
  EXPECT_TRUE(process.Ask(charges).decision.allowed);
  const Group denied = process.Ask(charges);
  EXPECT_FALSE(denied.decision.allowed);
  EXPECT_EQ(denied.decision.source, Source::kFallback);
  EXPECT_EQ(process.guard.stats().fallback, 2u);
}

TEST(GuardedStore, TakesAllOrNothingOfTheStaticRules) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit wide = LimitOf("400/h");
  const Limit narrow = LimitOf("8/h");
  int admitted = 0;
  for (int i = 0; i < 10; ++i) {
    const Group group =
        process.Ask({process.ChargeFor("ann", wide), process.ChargeFor("bob", narrow)});
    admitted += group.decision.allowed ? 1 : 0;
  }
  EXPECT_EQ(admitted, 2);
  EXPECT_EQ(process.Exhaust("ann", wide), 98);
}

TEST(GuardedStore, NeverLetsAShadowVeto) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("400/h");
  const Limit narrow = LimitOf("4/h");
  Charge closed = process.ChargeFor("bob", limit, 1, FailureMode::kClosed);
  closed.shadow = true;
  Charge denying = process.ChargeFor("cat", narrow, 100);
  denying.shadow = true;
  const Group group = process.Ask({process.ChargeFor("ann", limit), closed, denying});
  EXPECT_TRUE(group.decision.allowed);
  EXPECT_EQ(group.decision.source, Source::kFallback);
  EXPECT_FALSE(process.decisions[1].allowed);
  EXPECT_FALSE(process.decisions[2].allowed);
}

TEST(GuardedStore, StillDeniesWhatADenyRuleForbids) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit deny = LimitOf("deny");
  const Limit limit = LimitOf("400/h");
  const Group group = process.Ask({process.ChargeFor("ann", deny, 1, FailureMode::kOpen),
                                   process.ChargeFor("bob", limit, 1, FailureMode::kOpen)});
  EXPECT_FALSE(group.decision.allowed);
  EXPECT_EQ(group.decision.reason, Reason::kDenyList);
}

TEST(GuardedStore, DoesNotSayNeverOfWhatIsOnlyTooMuchForItsShare) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  const Decision large = process.Check("ann", limit, 50);
  EXPECT_FALSE(large.allowed);
  EXPECT_EQ(large.reason, Reason::kStoreFailure);
  EXPECT_EQ(large.retry_after, seconds(1));
  EXPECT_EQ(process.Check("ann", limit, 500).reason, Reason::kNeverFits);
}

TEST(GuardedStore, LeavesTheCallersOwnMistakesAlone) {
  GuardedUnderTest process;
  const Limit limit = LimitOf("100/h");
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kInvalidArgument}) {
    process.behind.FailWith(code, "your fault");
    const Group group = process.Ask({process.ChargeFor("ann", limit)});
    ASSERT_TRUE(group.error.has_value());
    EXPECT_EQ(group.error->code, code);
    EXPECT_FALSE(process.guard.IsDegraded());
  }
}

TEST(GuardedStore, LeavesAloneAGroupWithoutRoomForItsDecisions) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  const Charge charge = process.ChargeFor("ann", limit);
  Group group{.charges = {&charge, 1}};
  process.Submit(group);
  EXPECT_TRUE(group.error.has_value());
}

TEST(GuardedStore, AnswersEveryKindOfFailure) {
  GuardedUnderTest process;
  const Limit limit = LimitOf("100/h");
  for (const ErrorCode code :
       {ErrorCode::kUnauthenticated, ErrorCode::kForbidden, ErrorCode::kOverloaded,
        ErrorCode::kDeadline, ErrorCode::kInternal, ErrorCode::kConflict, ErrorCode::kTooLarge}) {
    process.behind.FailWith(code, "the store's fault");
    const Group group = process.Ask({process.ChargeFor("ann", limit)});
    EXPECT_FALSE(group.error.has_value());
    EXPECT_EQ(group.decision.source, Source::kFallback);
  }
}

TEST(GuardedStore, GivesReceiptsOfWhatItBooked) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("4/s");
  Charge charge = process.ChargeFor("ann", limit);
  process.Ask({charge});
  charge.wait = seconds(10);
  Decision decision;
  Receipt receipt;
  Group booked{.charges = {&charge, 1}, .decisions = {&decision, 1}, .receipts = {&receipt, 1}};
  process.Submit(booked);
  EXPECT_EQ(booked.decision.delay, seconds(1));
  EXPECT_EQ(receipt.charged, 1);
  Charge unbook = process.ChargeFor("ann", limit);
  unbook.verb = Verb::kUnbook;
  unbook.cost = 0;
  unbook.reserved = receipt.charged;
  unbook.receipt = receipt.at;
  process.Ask({unbook});
  booked.receipts = {};
  process.Submit(booked);
  EXPECT_EQ(booked.decision.delay, seconds(1));
}

// --- Whose turn it is to be told. ---

TEST(GuardedStore, TellsOfGroupsThatAreAnsweredLater) {
  GuardedUnderTest process;
  process.behind.deferred = true;
  const Limit limit = LimitOf("100/h");
  const Charge charge = process.ChargeFor("ann", limit);
  std::vector<Decision> decisions(4);
  std::vector<Group> groups;
  for (Decision& decision : decisions) {
    groups.push_back({.charges = {&charge, 1}, .decisions = {&decision, 1}});
  }
  DecidedGroups second;
  process.store->Submit({groups.data(), 2}, process.loop.now(), process.told);
  process.store->Submit({groups.data() + 2, 2}, process.loop.now(), second);
  EXPECT_TRUE(process.told.groups.empty());
  process.behind.AnswerOne();
  process.behind.Fail();
  process.behind.AnswerAll();
  EXPECT_THAT(process.told.groups, ElementsAre(&groups[0], &groups[1]));
  EXPECT_THAT(second.groups, ElementsAre(&groups[2], &groups[3]));
  EXPECT_EQ(groups[0].decision.source, Source::kStore);
  EXPECT_EQ(groups[1].decision.source, Source::kFallback);
  EXPECT_EQ(groups[3].decision.source, Source::kFallback);
}

TEST(GuardedStore, MayBeAskedAgainByWhoIsTold) {
  for (const bool deferred : {false, true}) {
    GuardedUnderTest process;
    process.behind.deferred = deferred;
    const Limit limit = LimitOf("400/h");
    const Charge charge = process.ChargeFor("ann", limit);
    std::vector<Decision> decisions(20);
    std::vector<Group> groups;
    for (Decision& decision : decisions) {
      groups.push_back({.charges = {&charge, 1}, .decisions = {&decision, 1}});
    }
    std::size_t next = 1;
    process.told.then = [&](Group&) {
      if (next == 10) process.behind.Fail();  // At once, on a call made from within.
      if (next < groups.size()) process.Submit(groups[next++]);
    };
    process.Submit(groups[0]);
    process.behind.AnswerAll();
    EXPECT_EQ(process.told.groups.size(), groups.size());
    EXPECT_EQ(groups[8].decision.source, Source::kStore);
    EXPECT_EQ(groups[19].decision.source, Source::kFallback);
  }
}

TEST(GuardedStore, FailsAtOnceOnTheSecondOfSeveralCalls) {
  GuardedUnderTest process;
  const Limit limit = LimitOf("400/h");
  const Charge charge = process.ChargeFor("ann", limit);
  std::vector<Decision> decisions(3);
  std::vector<Group> groups;
  for (Decision& decision : decisions) {
    groups.push_back({.charges = {&charge, 1}, .decisions = {&decision, 1}});
  }
  process.told.then = [&](Group&) { process.behind.Fail(); };
  process.store->Submit(groups, process.loop.now(), process.told);
  EXPECT_EQ(process.told.groups.size(), 3u);
  EXPECT_EQ(groups[0].decision.source, Source::kStore);
  EXPECT_EQ(groups[1].decision.source, Source::kFallback);
  EXPECT_TRUE(groups[2].decision.allowed);
}

TEST(GuardedStore, MayEndWithGroupsUnderWayWhichAreDecidedAllTheSame) {
  GuardedUnderTest process;
  process.behind.deferred = true;
  const Limit limit = LimitOf("400/h");
  const Charge charge = process.ChargeFor("ann", limit);
  std::vector<Decision> decisions(3);
  std::vector<Group> groups;
  for (Decision& decision : decisions) {
    groups.push_back({.charges = {&charge, 1}, .decisions = {&decision, 1}});
  }
  process.store->Submit(groups, process.loop.now(), process.told);
  process.store.reset();
  EXPECT_TRUE(process.told.groups.empty());
  process.behind.AnswerOne();
  process.behind.Fail();
  process.behind.AnswerAll();
  EXPECT_EQ(process.told.groups.size(), 3u);
  EXPECT_EQ(groups[2].decision.source, Source::kFallback);
  EXPECT_FALSE(process.guard.IsDegraded());  // All is being ended: that says nothing of the store.
}

TEST(GuardedStore, MayBeEndedByWhoIsTold) {
  for (const bool deferred : {false, true}) {
    GuardedUnderTest process;
    process.behind.deferred = deferred;
    const Limit limit = LimitOf("400/h");
    const Charge charge = process.ChargeFor("ann", limit);
    std::vector<Decision> decisions(3);
    std::vector<Group> groups;
    for (Decision& decision : decisions) {
      groups.push_back({.charges = {&charge, 1}, .decisions = {&decision, 1}});
    }
    process.told.then = [&](Group&) { process.store.reset(); };
    process.store->Submit(groups, process.loop.now(), process.told);
    process.behind.AnswerAll();
    EXPECT_EQ(process.told.groups.size(), 3u);
  }
}

// --- What people are told. ---

TEST(GuardedStore, SaysOnceThatADegradedTimeBeginsAndOnceThatItEnds) {
  GuardedUnderTest process;
  const Limit limit = LimitOf("100/h");
  process.Check("ann", limit);
  process.behind.Fail();
  for (int i = 0; i < 100; ++i) {
    process.Check("ann", limit, 1, i % 4 == 0 ? FailureMode::kOpen : FailureMode::kStatic);
    process.loop.clock.Advance(milliseconds(100));
  }
  EXPECT_TRUE(process.guard.IsDegraded());
  EXPECT_EQ(process.guard.DegradedFor(process.loop.now().steady), seconds(10));
  ASSERT_EQ(process.notices.size(), 1u);
  EXPECT_THAT(process.notices[0],
              AllOf(HasSubstr("no answer from 127.0.0.1:6379 in 50 ms"), HasSubstr("1/4"),
                    HasSubstr("on_store_failure"), Not(HasSubstr("NOBODY"))));
  process.behind.Recover();
  process.Check("ann", limit);
  EXPECT_TRUE(process.guard.IsDegraded());
  process.loop.clock.Advance(seconds(1));
  process.Check("ann", limit);
  EXPECT_FALSE(process.guard.IsDegraded());
  EXPECT_EQ(process.guard.DegradedFor(process.loop.now().steady), Duration(0));
  ASSERT_EQ(process.notices.size(), 2u);
  EXPECT_THAT(process.notices[1],
              AllOf(HasSubstr("after 11.0 s"), HasSubstr("75 static"), HasSubstr("25 open"),
                    HasSubstr("0 closed"), HasSubstr("Nothing is replayed")));
  EXPECT_EQ(process.guard.stats().degraded_times, 1u);
}

TEST(GuardedStore, SaysLoudlyThatNobodyCountedTheFleet) {
  GuardedUnderTest process(GuardOptions{});
  EXPECT_EQ(process.guard.fleet_size(), 1);
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  EXPECT_EQ(process.Check("ann", limit).limit, 100);
  ASSERT_EQ(process.notices.size(), 1u);
  EXPECT_THAT(process.notices[0], AllOf(HasSubstr("NOBODY"), HasSubstr("fleet_size")));
}

TEST(GuardedStore, MayHaveItsCapChangedAndGoesOnWithWhatItKnows) {
  GuardedUnderTest process({.fleet_size = 1});
  const Limit limit = LimitOf("1/h");
  const auto key = [](int i) { return "key " + std::to_string(i); };
  const auto set_cap = [&](std::size_t bytes) {
    return process.guard.SetCap(bytes, process.loop.now());
  };
  EXPECT_TRUE(set_cap(std::size_t{8} << 20).within_cap);
  for (int i = 0; i < 40'000; ++i) ASSERT_TRUE(process.Check(key(i), limit).allowed);
  process.behind.Fail();
  for (int i = 0; i < 8'000; ++i) ASSERT_FALSE(process.Check(key(i), limit).allowed);
  // There would be more than the first cap has room for.
  for (int i = 40'000; i < 120'000; ++i) process.Check(key(i), limit);
  EXPECT_GT(process.guard.stats().local.bytes, kMinCapBytes);
  EXPECT_EQ(process.guard.stats().local.evicted_live, 0u);
  for (const std::size_t cap : {kMinCapBytes, std::size_t{0}}) {
    const CapChange change = set_cap(cap);
    EXPECT_TRUE(change.within_cap);
    EXPECT_LE(change.bytes, kMinCapBytes);
    EXPECT_EQ(change.bytes, process.guard.stats().local.bytes);
  }
  for (int i = 0; i < 8'000; ++i) ASSERT_FALSE(process.Check(key(i), limit).allowed);
}

TEST(GuardedStore, DoesNotTakeWhatNeedsNoStoreForASignOfLife) {
  GuardedUnderTest process;
  process.behind.Fail();
  const Limit limit = LimitOf("100/h");
  const Limit unlimited = LimitOf("unlimited");
  process.Check("ann", limit);
  process.behind.Recover();
  process.loop.clock.Advance(seconds(5));
  process.Check("ann", unlimited);
  EXPECT_TRUE(process.guard.IsDegraded());
}

}  // namespace
}  // namespace weir
