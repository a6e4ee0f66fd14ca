// The memory table under every interleaving of two or three threads with up to two preemptions:
// charges, insertions, evictions, moves and groups. The same scenarios are then run against tables
// broken on purpose, to see that they would notice.
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "interleaving/scheduler.h"
#include "interleaving/table_subject.h"

namespace weir::interleaving {
namespace {

template <Bug kBug>
struct Scenarios {
  using S = Subject<kBug>;

  static Scenario TwoInsertTheSameKey() {
    auto subject = std::make_shared<S>(true);
    auto admitted = std::make_shared<int>(0);
    const auto thread = [=] { *admitted += subject->Charge(Low(7), 1) ? 1 : 0; };
    return {{thread, thread}, [=]() -> std::string {
              if (*admitted != 1) return "a burst of one let through " + std::to_string(*admitted);
              return subject->Audit(false);
            }};
  }

  static Scenario TwoChargeTheSameKey() {
    auto subject = std::make_shared<S>(true);
    subject->Charge(Low(7), 4);
    const auto thread = [=] {
      subject->Charge(Low(7), 4);
      subject->Charge(Low(7), 4);
    };
    return {{thread, thread}, [=] { return subject->Audit(false); }};
  }

  // A full table; the key that is charged is the one that gives way, and the newcomer's state is
  // the same as its own.
  static Scenario ChargeWhileEvicted() {
    auto subject = FullTable();
    return {{[=] { subject->Charge(Low(1), 3); }, [=] { subject->Charge(Low(100), 3); }},
            [=] { return subject->Audit(true); }};
  }

  // The key is replaced by one that is used up and being denied.
  static Scenario DecideWhileReplaced() {
    auto subject = FullTable();
    auto allowed = std::make_shared<bool>(false);
    return {{[=] { *allowed = subject->Charge(Low(1), 2); },
             [=] {
               subject->Charge(Low(100), 5, 5);
               subject->Charge(Low(100), 5);
             }},
            [=]() -> std::string {
              if (!*allowed) return "a key was denied on another's state";
              return subject->Audit(true);
            }};
  }

  static Scenario ChargeBesideDeniedGroup() {
    auto subject = std::make_shared<S>(true);
    subject->Charge(High(2), 1);  // Used up.
    auto group = std::make_shared<bool>(true);
    auto single = std::make_shared<bool>(false);
    return {{[=] { *group = subject->ChargeBoth(Low(1), 1, High(2), 1); },
             [=] { *single = subject->Charge(Low(1), 1); }},
            [=]() -> std::string {
              if (*group) return "a group passed a limit that was used up";
              if (!*single) return "a denied group left a trace";
              return subject->Audit(false);
            }};
  }

  static Scenario TwoGroups() {
    auto subject = std::make_shared<S>(true);
    const auto group = [=] { subject->ChargeBoth(Low(1), 2, High(2), 1); };
    return {{group, group}, [=] { return subject->Audit(false); }};
  }

  // In opposite orders, so that each may be in the other's way.
  static Scenario TwoShortGroups() {
    auto subject = WithTwoKeys();
    auto passed = std::make_shared<int>(0);
    return {{[=] { *passed += subject->TryBoth(Low(1), 9, High(2), 2) ? 1 : 0; },
             [=] { *passed += subject->TryBoth(High(2), 2, Low(1), 9) ? 1 : 0; }},
            [=]() -> std::string {
              if (*passed != 1) return "a place for one let through " + std::to_string(*passed);
              return subject->Audit(false);
            }};
  }

  static Scenario ShortGroupBesideLongOne() {
    auto subject = WithTwoKeys();
    auto passed = std::make_shared<int>(0);
    return {{[=] { *passed += subject->TryBoth(High(2), 2, Low(1), 9) ? 1 : 0; },
             [=] { *passed += subject->ChargeBoth(Low(1), 9, High(2), 2) ? 1 : 0; }},
            [=]() -> std::string {
              if (*passed != 1) return "a place for one let through " + std::to_string(*passed);
              return subject->Audit(false);
            }};
  }

  // A group that is let through is seen as a whole: who sees the second charge, sees the first.
  static Scenario LookBesideShortGroup() {
    auto subject = WithTwoKeys();
    auto low = std::make_shared<std::int64_t>(0);
    auto high = std::make_shared<std::int64_t>(0);
    return {{[=] { subject->TryBoth(Low(1), 9, High(2), 9); },
             [=] {
               *high = subject->Level(High(2));
               *low = subject->Level(Low(1));
             }},
            [=]() -> std::string {
              if (*high > kInterval && *low == kInterval) return "half a group was seen";
              return subject->Audit(false);
            }};
  }

  static Scenario ShortGroupWhileReplaced() {
    auto subject = FullTable();
    auto allowed = std::make_shared<bool>(false);
    return {{[=] { *allowed = subject->TryBoth(Low(1), 2, Low(2), 60); },
             [=] {
               subject->Charge(Low(100), 5, 5);
               subject->Charge(Low(100), 5);
             }},
            [=]() -> std::string {
              if (!*allowed) return "a key was denied on another's state";
              return subject->Audit(true);
            }};
  }

  static Scenario ShortGroupWhileGrowing() {
    auto subject = WithTwoKeys();
    return {{[=] { subject->TryBoth(Low(1), 9, High(2), 9); },
             [=] {
               for (std::uint64_t key = 3; key < 7; ++key) subject->Charge(Low(key), 1);
             }},
            [=] { return subject->Audit(false); }};
  }

  // Three threads: one charges the key that the second evicts, and the third brings it back.
  static Scenario ChargeEvictInsert() {
    auto subject = FullTable();
    return {{[=] { subject->Charge(Low(1), 3); }, [=] { subject->Charge(Low(100), 3); },
             [=] { subject->Charge(Low(1), 3); }},
            [=] { return subject->Audit(true); }};
  }

  static Scenario ChargeWhileGrowing() {
    auto subject = std::make_shared<S>(true);
    subject->Charge(Low(1), 4);
    return {{[=] {
               subject->Charge(Low(1), 4);
               subject->Charge(Low(1), 4);
             },
             [=] {
               for (std::uint64_t key = 2; key < 7; ++key) subject->Charge(Low(key), 1);
             }},
            [=] { return subject->Audit(false); }};
  }

  static Scenario InsertWhileGrowing() {
    auto subject = std::make_shared<S>(true);
    for (std::uint64_t key = 1; key < 4; ++key) subject->Charge(Low(key), 2);
    return {{[=] { subject->Charge(Low(50), 2); },
             [=] {
               subject->Charge(Low(50), 2);
               subject->Charge(High(52), 2);
             }},
            [=] { return subject->Audit(false); }};
  }

  // One thread drives growth while the other brings more keys than there is room for until it is
  // done.
  static Scenario InsertManyWhileGrowing() {
    auto subject = std::make_shared<S>(true);
    for (std::uint64_t key = 0; key < 3; ++key) subject->Charge(Spread(key), 1);
    return {{[=] { subject->Charge(Spread(3), 1); },
             [=] {
               for (std::uint64_t key = 4; key < 24; ++key) subject->Charge(Spread(key), 1);
             }},
            [=] { return subject->Audit(false); }};
  }

  // Of the same line but of two stripes; one ends up in the next line, the other in the one after.
  static Scenario TwoInsertFarFromHome() {
    auto subject = std::make_shared<Subject<kBug, FarReachingShape>>(false, 2);
    for (std::uint64_t key = 0; key < 4; ++key) subject->Charge(Low(1 + key), 2);
    for (std::uint64_t key = 0; key < 3; ++key) subject->Charge(High(key), 2);
    const std::uint64_t one = Low(100);
    const std::uint64_t other = Low(100) | std::uint64_t{1} << 62;
    return {{[=] { subject->Charge(one, 2); }, [=] { subject->Charge(other, 2); }},
            [=]() -> std::string {
              subject->Charge(one, 2);
              subject->Charge(other, 2);
              return subject->Audit(false);
            }};
  }

  static Scenario GroupWhileGrowing() {
    auto subject = std::make_shared<S>(true);
    subject->Charge(Low(1), 9);
    return {{[=] { subject->ChargeBoth(Low(1), 9, High(2), 9); },
             [=] {
               for (std::uint64_t key = 3; key < 7; ++key) subject->Charge(Low(key), 1);
             }},
            [=] { return subject->Audit(false); }};
  }

  static Exploration ExploreAllOrders(const std::string& name,
                                      const std::function<Scenario()>& make) {
    // Long, and one is enough: growth is interrupted, and goes on when nobody else can.
    return Explore(make, name == "insert many while growing" ? 1 : 2);
  }

  static std::map<std::string, std::function<Scenario()>> All() {
    return {{"two insert the same key", TwoInsertTheSameKey},
            {"two charge the same key", TwoChargeTheSameKey},
            {"charge while evicted", ChargeWhileEvicted},
            {"decide while replaced", DecideWhileReplaced},
            {"charge beside a denied group", ChargeBesideDeniedGroup},
            {"two groups", TwoGroups},
            {"two short groups", TwoShortGroups},
            {"short group beside a long one", ShortGroupBesideLongOne},
            {"look beside a short group", LookBesideShortGroup},
            {"short group while replaced", ShortGroupWhileReplaced},
            {"short group while growing", ShortGroupWhileGrowing},
            {"charge, evict and insert", ChargeEvictInsert},
            {"charge while growing", ChargeWhileGrowing},
            {"insert while growing", InsertWhileGrowing},
            {"insert many while growing", InsertManyWhileGrowing},
            {"two insert far from home", TwoInsertFarFromHome},
            {"group while growing", GroupWhileGrowing}};
  }

 private:
  static std::shared_ptr<S> WithTwoKeys() {
    auto subject = std::make_shared<S>(true);
    subject->Charge(Low(1), 9);
    subject->Charge(High(2), 9);
    return subject;
  }

  // Both lines full, and Low(1) the first to go.
  static std::shared_ptr<S> FullTable() {
    auto subject = std::make_shared<S>(false);
    for (std::uint64_t key = 1; key <= 8; ++key) {
      subject->Charge(Low(key), 50, key == 1 ? 1 : 50);
    }
    return subject;
  }
};

template <Bug kBug>
bool SomeScenarioNotices() {
  for (const auto& [name, make] : Scenarios<kBug>::All()) {
    const Exploration exploration = Scenarios<kBug>::ExploreAllOrders(name, make);
    if (exploration.failure) {
      std::printf("caught by \"%s\" in run %zu: %s\n", name.c_str(), exploration.runs,
                  exploration.failure->c_str());
      return true;
    }
  }
  return false;
}

TEST(TableInterleaving, KeepsItsPromisesInEveryOrder) {
  for (const auto& [name, make] : Scenarios<Bug::kNone>::All()) {
    const Exploration exploration = Scenarios<Bug::kNone>::ExploreAllOrders(name, make);
    std::printf("%-30s %8zu orders, up to %zu steps\n", name.c_str(), exploration.runs,
                exploration.longest_run);
    EXPECT_FALSE(exploration.failure) << name << ": " << *exploration.failure;
    EXPECT_GT(exploration.runs, 20U) << name << ": nothing was interleaved";
  }
}

TEST(TableInterleaving, NoticesASwapThatIgnoresTheFingerprint) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kSwapIgnoresFingerprint>());
}
TEST(TableInterleaving, NoticesASwapInTwoSteps) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kSwapIsTwoSteps>());
}
TEST(TableInterleaving, NoticesALoadInTwoSteps) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kLoadIsTwoSteps>());
}
TEST(TableInterleaving, NoticesAReachRaisedInTwoSteps) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kRaiseIsTwoSteps>());
}
TEST(TableInterleaving, NoticesStripesThatDoNotLock) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kStripesDoNotLock>());
}
TEST(TableInterleaving, NoticesChargesToLockedSlots) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kLockedSlotsAreCharged>());
}
TEST(TableInterleaving, NoticesLocksThatDoNotStick) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kLocksDoNotStick>());
}

}  // namespace
}  // namespace weir::interleaving
