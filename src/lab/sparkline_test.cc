#include "lab/sparkline.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lab/report.h"
#include "lab/reports_under_test.h"
#include "lab/shown_text.h"

namespace weir::lab {
namespace {

TEST(Sparkline, HasEightHeights) { EXPECT_EQ(Sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8), "▁▂▃▄▅▆▇█"); }

TEST(Sparkline, IsBlankWhereThereIsNoNumber) {
  EXPECT_EQ(Sparkline({7, std::nan(""), 7}, 3), "█ █");
}

TEST(Sparkline, IsFlatWhereNothingHappens) {
  EXPECT_EQ(Sparkline({0, 0, 0}, 3), "▁▁▁");
  EXPECT_EQ(Sparkline({}, 3), "");
  EXPECT_EQ(Sparkline({5, 5}, 3), "██");
}

TEST(Sparkline, KeepsPeaksWhenThereIsLittleRoom) {
  std::vector<double> values(1000, 0);
  values[500] = 100;
  const std::string line = Sparkline(values, 10);
  EXPECT_EQ(line, "▁▁▁▁▁█▁▁▁▁");
}

TEST(Sparkline, IsNotStretched) { EXPECT_EQ(DisplayWidth(Sparkline({1, 2, 3}, 50)), 3U); }

TEST(Sparkline, BeginsBelowNothingIfThereIsLess) { EXPECT_EQ(Sparkline({-7, 0}, 2), "▁█"); }

TEST(Sparkline, BearsWhatHasNoEnd) {
  EXPECT_EQ(Sparkline({0, kInfinity, 7, -kInfinity}, 4), "▁██▁");
}

TEST(SparkScale, MakesLinesComparable) {
  SparkScale scale;
  scale.Include({0, 14});
  scale.Include({0, 7});
  EXPECT_EQ(SparklineOn(scale, {14}, 1), "█");
  EXPECT_EQ(SparklineOn(scale, {6}, 1), "▄");
}

TEST(SparkScale, MayBeLogarithmic) {
  SparkScale scale{.logarithmic = true};
  scale.Include({0, 1, 1e7});
  EXPECT_EQ(SparklineOn(scale, {0, 1, 1e3, 1e7}, 4), "▁▁▄█");
}

}  // namespace
}  // namespace weir::lab
