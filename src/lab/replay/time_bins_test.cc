#include "lab/replay/time_bins.h"

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TimeBins, AreSecondsAtFirst) {
  TimeBins bins;
  bins.Add(WallTime(milliseconds(10'500)), 0);
  bins.Add(WallTime(milliseconds(10'999)), 0);
  bins.Add(WallTime(milliseconds(11'000)), 2, 5);
  ASSERT_EQ(bins.size(), 2U);
  EXPECT_EQ(bins.BeginOf(0), WallTime(seconds(10)));
  EXPECT_EQ(bins.Count(0, 0), 2U);
  EXPECT_EQ(bins.Count(1, 2), 5U);
  EXPECT_EQ(bins.Count(1, 0), 0U);
}

TEST(TimeBins, BecomeWiderAndLoseNothing) {
  TimeBins bins;
  for (int second = 0; second < 100'000; second += 3) {
    bins.Add(WallTime(seconds(1'000 + second)), static_cast<std::size_t>(second) % 2);
  }
  bins.Add(WallTime(seconds(1'000'000'000)), 0);
  EXPECT_LE(bins.size(), TimeBins::kMostBins);
  std::uint64_t all = 0;
  for (std::size_t bin = 0; bin < bins.size(); ++bin)
    all += bins.Count(bin, 0) + bins.Count(bin, 1);
  EXPECT_EQ(all, 33'335U);
  EXPECT_EQ(bins.Count(bins.size() - 1, 0), 1U);
  EXPECT_GT(bins.BeginOf(bins.size() - 1) + bins.width(), WallTime(seconds(1'000'000'000)));
}

TEST(TimeBins, MayEndWhereTimeDoes) {
  TimeBins bins;
  bins.Add(WallTime(), 0);
  for (int i = 0; i < 2; ++i) bins.Add(WallTime::max() - seconds(1), 0);
  EXPECT_LE(bins.size(), TimeBins::kMostBins);
  EXPECT_EQ(bins.Count(bins.size() - 1, 0), 2U);
}

}  // namespace
}  // namespace weir::lab
