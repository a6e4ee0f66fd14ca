#include "lab/plot_axis.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::lab {
namespace {

using testing::ElementsAre;

std::vector<std::string> Texts(AxisRange range, const PlotAxis::Options& options) {
  std::vector<std::string> texts;
  const PlotAxis axis(range, options);
  for (const auto& tick : axis.ticks()) texts.push_back(tick.text);
  return texts;
}

TEST(PlotAxis, HasRoundNumbers) {
  EXPECT_THAT(Texts({0, 237}, {.ticks = 5}), ElementsAre("0", "50", "100", "150", "200"));
  EXPECT_THAT(Texts({0, 1}, {.ticks = 5}), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(Texts({0, 2'500'000}, {.ticks = 5}),
              ElementsAre("0", "0.5M", "1.0M", "1.5M", "2.0M", "2.5M"));
  EXPECT_THAT(Texts({-10, 10}, {.ticks = 4}), ElementsAre("-10", "-5", "0", "5", "10"));
}

TEST(PlotAxis, WritesAllInTheSameUnit) {
  EXPECT_THAT(Texts({0, 1.5}, {.unit = Unit::kSeconds, .ticks = 3}),
              ElementsAre("0", "0.5 s", "1.0 s", "1.5 s"));
  EXPECT_THAT(Texts({0, 0.02}, {.unit = Unit::kSeconds, .ticks = 4}),
              ElementsAre("0", "5 ms", "10 ms", "15 ms", "20 ms"));
  EXPECT_THAT(Texts({0, 600}, {.unit = Unit::kSeconds, .ticks = 5}),
              ElementsAre("0", "2 min", "4 min", "6 min", "8 min", "10 min"));
  EXPECT_THAT(Texts({0, 0.1}, {.unit = Unit::kPercent, .ticks = 5}),
              ElementsAre("0", "2 %", "4 %", "6 %", "8 %", "10 %"));
  EXPECT_THAT(Texts({0, 4096}, {.unit = Unit::kBytes, .ticks = 4}),
              ElementsAre("0", "1 KiB", "2 KiB", "3 KiB", "4 KiB"));
  EXPECT_THAT(Texts({0, 2}, {.unit = Unit::kFactor, .ticks = 4}),
              ElementsAre("0", "0.5×", "1.0×", "1.5×", "2.0×"));
}

TEST(PlotAxis, SaysTheDayWhereOneBegins) {
  const double midnight = 1'772'323'200;  // 2026-03-01
  EXPECT_THAT(Texts({midnight - 3600, midnight + 7200}, {.unit = Unit::kTime, .ticks = 3}),
              ElementsAre("23:00", "Mar 1", "01:00", "02:00"));
  EXPECT_THAT(Texts({midnight + 1, midnight + 3}, {.unit = Unit::kTime, .ticks = 2}),
              ElementsAre("00:00:01", "00:00:02", "00:00:03"));
}

TEST(PlotAxis, GoesByPowersWhereItIsLogarithmic) {
  EXPECT_THAT(Texts({1, 1000}, {.logarithmic = true, .ticks = 4}),
              ElementsAre("1", "10", "100", "1,000"));
  EXPECT_THAT(Texts({1, 10}, {.logarithmic = true, .ticks = 6}), ElementsAre("1", "2", "5", "10"));
  const PlotAxis axis({1, 100}, {.logarithmic = true});
  EXPECT_DOUBLE_EQ(axis.Place(10), 0.5);
  EXPECT_DOUBLE_EQ(axis.Place(0), 0);  // It has no place for nothing.
}

TEST(PlotAxis, BearsWhatIsNoRange) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const AxisRange range : {AxisRange{nan, nan},
                                {0, 0},
                                {7, 7},
                                {5, 1},
                                {0, infinity},
                                {-infinity, infinity},
                                {1e300, 1e301},
                                {1e-300, 2e-300}}) {
    for (const bool logarithmic : {false, true}) {
      for (const Unit unit : {Unit::kCount, Unit::kSeconds, Unit::kTime, Unit::kBytes}) {
        const PlotAxis axis(range, {.unit = unit, .logarithmic = logarithmic});
        EXPECT_LT(axis.low(), axis.high());
        EXPECT_LE(axis.ticks().size(), 100U);
        EXPECT_TRUE(std::isfinite(axis.Place(1)));
      }
    }
  }
}

}  // namespace
}  // namespace weir::lab
