#include "lab/fleet/usage.h"

#include <gtest/gtest.h>

#include "lab/fleet/intervals.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Limit LimitOf(const char* text, LimitSpec spec = {}) { return *Limit::Parse(text, spec); }

TEST(Usage, OfABucketDrainsAtItsRate) {
  Usage usage(LimitOf("10/s burst 5"), Duration(0));
  for (int i = 0; i < 5; ++i) usage.Add(seconds(1), 1);
  EXPECT_NEAR(usage.Most(seconds(1)), 5, 0.01);
  EXPECT_NEAR(usage.Least(milliseconds(1250)), 2.5, 0.01);
  EXPECT_NEAR(usage.Most(seconds(2)), 0, 0.01);
}

TEST(Usage, OfAFixedWindowEndsWithIt) {
  Usage usage(LimitOf("10/s", {.algorithm = Algorithm::kFixedWindow}), milliseconds(300));
  usage.Add(milliseconds(600), 3);
  EXPECT_EQ(usage.Most(milliseconds(699)), 3);
  EXPECT_EQ(usage.Least(milliseconds(699)), 3);
  // The calendar is 300 ms ahead.
  EXPECT_EQ(usage.Most(milliseconds(700)), 0);
}

TEST(Usage, OfASlidingWindowWeighsTheOneBefore) {
  Usage usage(LimitOf("100/s", {.algorithm = Algorithm::kSlidingWindow}), Duration(0));
  usage.Add(milliseconds(500), 80);
  usage.Add(milliseconds(1100), 30);
  // A quarter through: 80 * 0.75 + 30, and one more or less for what a clock does not tell.
  EXPECT_EQ(usage.Most(milliseconds(1250)), 91);
  EXPECT_EQ(usage.Least(milliseconds(1250)), 89);
}

TEST(Usage, OfALogIsThatOfTheLastPeriod) {
  Usage usage(LimitOf("10/s", {.algorithm = Algorithm::kSlidingLog}), Duration(0));
  usage.Add(milliseconds(100), 2);
  usage.Add(milliseconds(900), 3);
  EXPECT_EQ(usage.Most(milliseconds(1000)), 5);
  EXPECT_EQ(usage.Least(milliseconds(1101)), 3);
  EXPECT_EQ(usage.Most(milliseconds(1901)), 0);
}

TEST(Usage, OfPlacesIsWhoIsThere) {
  Usage usage(LimitOf("5 concurrent lease 2s", {.algorithm = Algorithm::kConcurrency}),
              Duration(0));
  usage.Add(seconds(1), 1, seconds(3));
  usage.Add(seconds(1), 1, milliseconds(1500));
  EXPECT_EQ(usage.Most(milliseconds(1400)), 2);
  EXPECT_EQ(usage.Most(milliseconds(1600)), 1);
}

// Admissions one after the other, all dated.
std::vector<sim::Admission> Every(Duration pause, std::size_t count) {
  std::vector<sim::Admission> admissions;
  for (std::size_t i = 0; i < count; ++i) {
    const Duration at = pause * static_cast<std::int64_t>(i);
    admissions.push_back({.at = at, .earliest = at, .latest = at, .asked = at, .answered = at});
  }
  return admissions;
}

TEST(IntervalsOfUsage, AreAllLookedAtHoweverManyThereAre) {
  const Limit limit = LimitOf("100/s burst 50");
  const sim::PromiseTerms terms{.is_dated = true};
  std::vector<sim::Admission> admissions = Every(milliseconds(10), 5'000);
  EXPECT_FALSE(FindAnyExcess(limit, admissions, terms));
  // A little more than the rate, all the time: no two that are near to each other tell.
  admissions = Every(Duration(std::chrono::microseconds(9'880)), 5'000);
  EXPECT_TRUE(FindAnyExcess(limit, admissions, terms));
  // Unless the server forgot something in between.
  const sim::PromiseTerms forgot{.lapses = {{seconds(20), seconds(21)}}, .is_dated = true};
  EXPECT_FALSE(FindAnyExcess(limit, admissions, forgot));
}

TEST(IntervalsOfUsage, FindABurstAmongMany) {
  const Limit limit = LimitOf("100/s", {.algorithm = Algorithm::kSlidingLog});
  std::vector<sim::Admission> admissions = Every(milliseconds(10), 5'000);
  EXPECT_FALSE(FindAnyExcess(limit, admissions, {.is_dated = true}));
  admissions.push_back(admissions[4'321]);
  EXPECT_TRUE(FindAnyExcess(limit, admissions, {.is_dated = true}));
}

TEST(SumOverTime, CountsWhatHasBegunAndNotEnded) {
  SumOverTime sum;
  sum.Add(seconds(1), seconds(3), 5);
  sum.Add(seconds(2), Duration::max(), 2);
  sum.Add(seconds(2), seconds(2), 100);
  EXPECT_EQ(sum.At(milliseconds(999)), 0);
  EXPECT_EQ(sum.At(seconds(1)), 5);
  EXPECT_EQ(sum.At(seconds(2)), 7);
  EXPECT_EQ(sum.At(seconds(3)), 2);
}

}  // namespace
}  // namespace weir::lab
