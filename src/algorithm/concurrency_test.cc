#include "algorithm/concurrency.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

DrivenKey Leases(std::string_view text) {
  LimitSpec defaults;
  defaults.algorithm = Algorithm::kConcurrency;
  return DrivenKey(Limit::Parse(text, defaults).value());
}

TEST(Concurrency, AdmitsAsManyAtOnceAsItSaysAndNoMore) {
  DrivenKey key = Leases("3 concurrent lease 30s");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(key.Check().remaining, 2 - i);
    key.Advance(1s);
  }
  const Decision denial = key.Check();
  EXPECT_FALSE(denial.allowed);
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.limit, 3);
  EXPECT_EQ(denial.retry_after, 27s);
  EXPECT_EQ(denial.reset_after, 29s);
}

TEST(Concurrency, AdmitsTheNextWhenOneIsReleased) {
  DrivenKey key = Leases("2 concurrent lease 30s");
  EXPECT_TRUE(key.Check().allowed);
  const DrivenKey::Receipt first = key.receipt();
  key.Advance(1s);
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_FALSE(key.Check().allowed);
  EXPECT_EQ(key.Cancel(first).remaining, 1);
  EXPECT_TRUE(key.Check().allowed);
  EXPECT_FALSE(key.Check().allowed);
}

TEST(Concurrency, FreesThePlaceOfWorkThatIsSettledWhateverItCost) {
  for (const std::int64_t cost : {std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, kHuge}) {
    DrivenKey key = Leases("3 concurrent lease 30s");
    EXPECT_TRUE(key.Check(2).allowed);
    const Decision settled = key.Settle(key.receipt(), cost);
    EXPECT_EQ(settled.remaining, 3);
    EXPECT_EQ(settled.cost, cost);
  }
}

TEST(Concurrency, TakesAHolderThatNeverReleasesForDeadWhenItsLeaseIsOver) {
  DrivenKey key = Leases("1 concurrent lease 30s");
  EXPECT_TRUE(key.Check().allowed);
  const DrivenKey::Receipt dead = key.receipt();
  key.Advance(30s - Duration(1));
  EXPECT_FALSE(key.Check().allowed);
  key.Advance(Duration(1));
  EXPECT_TRUE(key.Check().allowed);
  // If it was not dead after all, its late release frees nobody else's place.
  EXPECT_EQ(key.Cancel(dead).remaining, 0);
  EXPECT_FALSE(key.Check().allowed);
}

TEST(Concurrency, NeverHasMoreLiveLeasesThanItSaysHoweverTheyAreReleased) {
  DrivenKey key = Leases("5 concurrent lease 1s");
  struct Lease {
    DrivenKey::Receipt receipt;
    Duration end;
  };
  std::vector<Lease> live;
  Duration now{0};
  int admitted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Duration step = Duration(i * 7'919'717LL % 200'000'000);
    key.Advance(step);
    now += step;
    std::erase_if(live, [&](const Lease& lease) { return lease.end <= now; });
    if (i % 5 == 0 && !live.empty()) {
      const auto which = live.begin() + i % static_cast<int>(live.size());
      key.Cancel(which->receipt);
      live.erase(which);
    }
    const bool room = live.size() < 5;
    ASSERT_EQ(key.Check().allowed, room);
    if (!room) continue;
    live.push_back({key.receipt(), now + 1s});
    ++admitted;
  }
  EXPECT_GT(admitted, 5000);
}

TEST(Concurrency, DistinguishesNeverFromNotNow) {
  DrivenKey key = Leases("3 concurrent lease 30s");
  EXPECT_TRUE(key.Check(2).allowed);
  EXPECT_EQ(key.Check(2).reason, Reason::kLimited);
  EXPECT_EQ(key.Check(4).reason, Reason::kNeverFits);
  EXPECT_EQ(key.Check(kHuge).reason, Reason::kNeverFits);
  EXPECT_EQ(key.Peek().remaining, 1);
}

TEST(Concurrency, IsFreshOnceNobodyHoldsALease) {
  DrivenKey key = Leases("3 concurrent lease 30s");
  EXPECT_EQ(key.Peek().reset_after, 0s);
  EXPECT_EQ(key.Check(2).reset_after, 30s);
  EXPECT_EQ(key.Cancel(key.receipt()).reset_after, 0s);
  EXPECT_TRUE(key.Check(3).allowed);
  EXPECT_EQ(key.Reset().remaining, 3);
}

TEST(Concurrency, EndsALeaseInTimeWhenTheClockStepsBack) {
  DrivenKey key = Leases("1 concurrent lease 30s");
  key.Advance(24h);
  EXPECT_TRUE(key.Check().allowed);
  key.Advance(-24h);
  EXPECT_EQ(key.Check().retry_after, 30s);
  key.Advance(30s);
  EXPECT_TRUE(key.Check().allowed);
}

}  // namespace
}  // namespace weir
