// A memory table that is made smaller, under every interleaving with charges, insertions and
// groups; and the same against tables broken on purpose.
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "interleaving/scheduler.h"
#include "interleaving/table_subject.h"

namespace weir::interleaving {
namespace {

template <Bug kBug>
struct ShrinkingScenarios {
  using S = Subject<kBug>;

  static Scenario ChargeWhileShrinking() {
    auto subject = WithTwoKeys(4);
    return {{[=] {
               subject->Charge(Low(1), 4);
               subject->Charge(High(2), 4);
               subject->Charge(Low(1), 4);
             },
             [=] { subject->ShrinkTo(1, 2); }},
            [=] { return AuditOfSize(*subject, false); }};
  }

  // The same newcomer from two threads, while its home moves.
  static Scenario InsertWhileShrinking() {
    auto subject = WithTwoKeys(3);
    auto admitted = std::make_shared<int>(0);
    const auto insert = [=] { *admitted += subject->Charge(Low(50), 1) ? 1 : 0; };
    return {{insert, insert, [=] { subject->ShrinkTo(1, 3); }}, [=]() -> std::string {
              if (*admitted != 1) return "a burst of one let through " + std::to_string(*admitted);
              return AuditOfSize(*subject, false);
            }};
  }

  // A group holds a slot that should move, and brings a key that needs a place.
  static Scenario GroupWhileShrinking() {
    auto subject = std::make_shared<S>(true, 3);
    subject->Charge(Low(1), 9);
    return {{[=] { subject->ChargeBoth(Low(1), 9, High(2), 9); },
             [=] {
               subject->ShrinkTo(1, 1);
               subject->Charge(High(2), 9);
             }},
            [=] { return AuditOfSize(*subject, false); }};
  }

  static Scenario ShortGroupWhileShrinking() {
    auto subject = WithTwoKeys(3);
    return {{[=] { subject->TryBoth(High(2), 9, Low(1), 9); }, [=] { subject->ShrinkTo(1, 2); }},
            [=] { return AuditOfSize(*subject, false); }};
  }

  // More than there is room for: some go, but none has what another took, and who is being denied
  // stays.
  static Scenario ChargeAndInsertWhileShrinkingTooFar() {
    auto subject = std::make_shared<S>(true, 3);
    for (std::uint64_t key = 0; key < 6; ++key) subject->Charge(Spread(key), 1);
    for (std::uint64_t key = 6; key < 10; ++key) subject->Charge(Low(key), 50, 50);
    subject->Charge(Low(6), 50);  // Denied.
    return {{[=] {
               subject->Charge(Low(7), 60);
               subject->Charge(Low(50), 60, 40);
             },
             [=] { subject->ShrinkTo(1, 10); }},
            [=]() -> std::string {
              if (subject->Level(Low(6)) != 50 * kInterval) return "who was denied was forgotten";
              return AuditOfSize(*subject, true);
            }};
  }

  // One grows what the other makes smaller.
  static Scenario GrowWhileShrinking() {
    auto subject = std::make_shared<S>(true, 2);
    for (std::uint64_t key = 0; key < 4; ++key) subject->Charge(Spread(key), 1);
    return {{[=] {
               for (std::uint64_t key = 4; key < 6; ++key) subject->Charge(Spread(key), 1);
             },
             [=] { subject->ShrinkTo(3, 6); }},
            [=] { return AuditOfSize(*subject, false); }};
  }

  static std::map<std::string, std::function<Scenario()>> All() {
    return {{"charge while shrinking", ChargeWhileShrinking},
            {"insert while shrinking", InsertWhileShrinking},
            {"group while shrinking", GroupWhileShrinking},
            {"short group while shrinking", ShortGroupWhileShrinking},
            {"grow while shrinking", GrowWhileShrinking},
            {"shrinking too far", ChargeAndInsertWhileShrinkingTooFar}};
  }

 private:
  static std::string AuditOfSize(S& subject, bool evictions) {
    if (subject.bytes() != subject.counted_bytes()) return "bytes are counted that are not there";
    return subject.Audit(evictions);
  }

  static std::shared_ptr<S> WithTwoKeys(std::size_t lines) {
    auto subject = std::make_shared<S>(true, lines);
    subject->Charge(Low(1), 9);
    subject->Charge(High(2), 9);
    return subject;
  }
};

template <Bug kBug>
bool SomeScenarioNotices() {
  for (const auto& [name, make] : ShrinkingScenarios<kBug>::All()) {
    const Exploration exploration = Explore(make, 2);
    if (exploration.failure) {
      std::printf("caught by \"%s\" in run %zu: %s\n", name.c_str(), exploration.runs,
                  exploration.failure->c_str());
      return true;
    }
  }
  return false;
}

TEST(ShrinkingInterleaving, KeepsItsPromisesInEveryOrder) {
  for (const auto& [name, make] : ShrinkingScenarios<Bug::kNone>::All()) {
    const Exploration exploration = Explore(make, 2);
    std::printf("%-30s %8zu orders, up to %zu steps\n", name.c_str(), exploration.runs,
                exploration.longest_run);
    EXPECT_FALSE(exploration.failure) << name << ": " << *exploration.failure;
    EXPECT_GT(exploration.runs, 20U) << name << ": nothing was interleaved";
  }
}

TEST(ShrinkingInterleaving, NoticesEntriesThatStayWhereTheyWereMovedFrom) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kMovedSlotsStay>());
}
TEST(ShrinkingInterleaving, NoticesStripesThatDoNotLock) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kStripesDoNotLock>());
}
TEST(ShrinkingInterleaving, NoticesChargesToLockedSlots) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kLockedSlotsAreCharged>());
}
TEST(ShrinkingInterleaving, NoticesLocksThatDoNotStick) {
  EXPECT_TRUE(SomeScenarioNotices<Bug::kLocksDoNotStick>());
}

}  // namespace
}  // namespace weir::interleaving
