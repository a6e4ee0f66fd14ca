#include "lab/calibrate/outliers.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "lab/calibrate/quantile.h"
#include "lab/calibrate/traffic_under_test.h"

namespace weir::lab {
namespace {

using Peaks = std::vector<std::uint32_t>;

template <typename Draw>
Peaks Sample(std::uint64_t seed, int clients, const Draw& draw) {
  TrafficRandom random(seed);
  Peaks peaks;
  for (int i = 0; i < clients; ++i) {
    peaks.push_back(std::max(1U, static_cast<std::uint32_t>(draw(random))));
  }
  std::ranges::sort(peaks);
  return peaks;
}

double LogNormal(TrafficRandom& random) { return 20 * std::exp(0.7 * random.Normal()); }
double Pareto(TrafficRandom& random) { return 10 * std::pow(random.Uniform(), -1 / 2.0); }
double TwoKinds(TrafficRandom& random) {
  return (random.Uniform() < 0.7 ? 6 : 60) * std::exp(0.3 * random.Normal());
}

int SetsSomebodyApart(double (*draw)(TrafficRandom&), int clients) {
  int times = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    times += FindGap(Sample(seed, clients, draw)).above > 0 ? 1 : 0;
  }
  return times;
}

TEST(Outliers, AreNotFoundInASmoothTail) {
  EXPECT_EQ(SetsSomebodyApart(LogNormal, 1'000), 0);
  EXPECT_EQ(SetsSomebodyApart(TwoKinds, 1'000), 0);
  // One in a hundred such tails has somebody with ten times as much as everybody else.
  EXPECT_LE(SetsSomebodyApart(Pareto, 1'000), 8);
}

TEST(Outliers, AreFoundBesideASmoothTail) {
  for (const std::size_t abusers : {1U, 3U, 50U}) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Peaks peaks = Sample(seed, 1'000, LogNormal);
      const std::uint32_t from = (abusers == 1 ? 12 : 5) * peaks.back();
      for (std::size_t i = 0; i < abusers; ++i) {
        peaks.push_back(from + static_cast<std::uint32_t>(i) * from / 10);
      }
      const Gap gap = FindGap(peaks);
      EXPECT_EQ(gap.above, abusers) << "seed " << seed;
      EXPECT_EQ(gap.from, from) << "seed " << seed;
    }
  }
}

TEST(Outliers, AreFoundAlsoIfTheyDifferByFar) {
  Peaks peaks = Sample(1, 1'000, LogNormal);
  const std::uint32_t most = peaks.back();
  for (const std::uint32_t times : {6U, 7U, 8U, 100U, 5'000U}) peaks.push_back(times * most);
  EXPECT_EQ(FindGap(peaks).above, 5U);
}

TEST(Outliers, AreNotAQuarterOfAllClients) {
  Peaks peaks(300, 10);
  peaks.resize(400, 1'000);
  EXPECT_EQ(FindGap(peaks).above, 0U);
}

TEST(Outliers, AreNotThoseWhoCameThriceWhereOthersCameOnce) {
  Peaks peaks(1'000, 1);
  peaks.back() = 3;
  EXPECT_EQ(FindGap(peaks).above, 0U);
  peaks.back() = 30;
  EXPECT_EQ(FindGap(peaks).above, 1U);
}

TEST(Outliers, CannotBeToldOfVeryFewClients) {
  EXPECT_EQ(FindGap(Peaks{}).above, 0U);
  EXPECT_EQ(FindGap(Peaks{5}).above, 0U);
  EXPECT_EQ(FindGap(Peaks{1, 1, 1, 5'000}).above, 0U);
}

TEST(Quantile, IsTheLeastThatSoManyDoNotExceed) {
  Peaks peaks;
  for (std::uint32_t i = 1; i <= 1'000; ++i) peaks.push_back(i);
  EXPECT_EQ(QuantileOf(peaks, 0.5), 500U);
  EXPECT_EQ(QuantileOf(peaks, 0.999), 999U);
  EXPECT_EQ(QuantileOf(peaks, 0.9991), 1'000U);
  EXPECT_EQ(QuantileOf(peaks, 1), 1'000U);
  EXPECT_EQ(QuantileOf(Peaks{7}, 0.5), 7U);
  EXPECT_EQ(QuantileOf(Peaks{}, 0.5), 0U);
  EXPECT_FALSE(IsTheLargest(1'000, 0.999));
  EXPECT_TRUE(IsTheLargest(999, 0.999));
}

TEST(FriendlyNumber, IsNeverLessAndAtMostTwoPercentMore) {
  for (std::int64_t number = 1; number < 200'000; number += 1 + number / 50) {
    const std::int64_t friendly = FriendlyFrom(static_cast<double>(number));
    EXPECT_GE(friendly, number);
    EXPECT_LE(static_cast<double>(friendly), 1.02 * static_cast<double>(number));
  }
  EXPECT_EQ(FriendlyFrom(0.2), 1);
  EXPECT_EQ(FriendlyFrom(7), 7);
  EXPECT_EQ(FriendlyFrom(123.4), 125);
  EXPECT_EQ(FriendlyFrom(991), 1'000);
  EXPECT_EQ(FriendlyFrom(12'345), 12'500);
}

}  // namespace
}  // namespace weir::lab
