#include "lab/compare/traffic.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "lab/compare/passage.h"
#include "lab/compare/shapes_under_test.h"

namespace weir::lab {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Traffic Made(TrafficOptions options) { return MakeTraffic(options).value(); }

TEST(Traffic, HasASensibleSizeForSmallAndLargeLimits) {
  const std::pair<std::int64_t, Duration> limits[] = {
      {1, days(1)}, {5, days(1)}, {100, seconds(1)}, {1'000, hours(1)}};
  for (const Shape shape : kShapes) {
    for (const auto& [count, period] : limits) {
      const Traffic traffic = Made({.shape = shape, .count = count, .period = period});
      SCOPED_TRACE(traffic.name + " " + std::to_string(count));
      EXPECT_TRUE(traffic.warnings.empty());
      EXPECT_GE(std::ssize(traffic.arrivals), 3);
      EXPECT_LE(std::ssize(traffic.arrivals), 3'000'000);
      EXPECT_GE(traffic.length, 4 * period);
      EXPECT_TRUE(std::ranges::is_sorted(traffic.arrivals, {}, &Arrival::at));
      EXPECT_GE(traffic.arrivals.front().at, Duration(0));
      EXPECT_LT(traffic.arrivals.back().at, traffic.length);
      EXPECT_EQ(traffic.start.time_since_epoch() % period, Duration(0));
    }
  }
}

TEST(Traffic, OfALargeLimitIsShorter) {
  const Traffic traffic = Made({.shape = Shape::kPoisson, .count = 100'000, .period = seconds(1)});
  EXPECT_EQ(traffic.length, seconds(20));
  EXPECT_TRUE(traffic.warnings.empty());
}

TEST(Traffic, OfASeedIsAlwaysTheSame) {
  for (const Shape shape : {Shape::kPoisson, Shape::kDiurnal}) {
    const TrafficOptions options{.shape = shape, .count = 50, .period = seconds(1), .seed = 7};
    EXPECT_EQ(Made(options).arrivals, Made(options).arrivals);
    TrafficOptions other = options;
    other.seed = 8;
    EXPECT_NE(Made(options).arrivals, Made(other).arrivals);
  }
}

TEST(Traffic, ByChanceHasTheLoadItWasGiven) {
  const Traffic traffic = Made({.shape = Shape::kPoisson,
                                .count = 100,
                                .period = seconds(1),
                                .load = 3,
                                .duration = seconds(100)});
  // 30,000 are expected, with a standard deviation of 173.
  EXPECT_NEAR(static_cast<double>(traffic.arrivals.size()), 30'000, 900);
}

TEST(Traffic, OfADayIsBusiestAtItsMiddle) {
  const Traffic traffic = Made({.shape = Shape::kDiurnal, .count = 100, .period = seconds(1)});
  const std::vector<double> sums = SumsOf(traffic.arrivals, {.bin = seconds(10), .bins = 24});
  // In ten periods at 1.5 times the limit: 1500 at noon, a tenth at midnight.
  EXPECT_NEAR(sums[12], 1'500, 120);
  EXPECT_NEAR(sums[0], 150, 60);
}

TEST(Traffic, AroundABoundaryHasTheLimitOnEitherSide) {
  const Traffic traffic = Made({.shape = Shape::kBoundary, .count = 100, .period = seconds(1)});
  ASSERT_EQ(traffic.arrivals.size(), 600U);
  EXPECT_EQ(traffic.arrivals[0].at, milliseconds(1'990));
  EXPECT_LT(traffic.arrivals[99].at, seconds(2));
  EXPECT_EQ(traffic.arrivals[100].at, seconds(2));
  EXPECT_LT(traffic.arrivals[199].at, milliseconds(2'010));
}

TEST(Traffic, InBurstsComesAtOneInstant) {
  const Traffic traffic = Made({.shape = Shape::kBurst, .count = 10, .period = seconds(1)});
  ASSERT_EQ(traffic.arrivals.size(), 120U);
  for (int i = 0; i < 21; ++i) {  // The first of those that follow comes with them.
    EXPECT_EQ(traffic.arrivals[static_cast<std::size_t>(i)].at, milliseconds(500));
  }
  EXPECT_EQ(traffic.arrivals[21].at, milliseconds(550));
}

TEST(Traffic, ThatWouldBeTooMuchIsCutAndSaysSo) {
  const Traffic traffic = Made({.shape = Shape::kSteady,
                                .count = 1'000'000,
                                .period = seconds(1),
                                .load = 2,
                                .duration = seconds(10)});
  EXPECT_EQ(std::ssize(traffic.arrivals), kMostArrivals);
  ASSERT_EQ(traffic.warnings.size(), 1U);
  EXPECT_EQ(traffic.warnings[0],
            "There would be more than 5000000 requests: the traffic ends after 2499ms rather than "
            "10s.");
  EXPECT_LT(traffic.length, milliseconds(2'501));
}

TEST(Traffic, OfALimitThatIsTooLargeIsRefused) {
  const auto traffic =
      MakeTraffic({.shape = Shape::kPoisson, .count = 10'000'000, .period = seconds(1)});
  ASSERT_FALSE(traffic);
  EXPECT_NE(traffic.error().message.find("take a smaller limit"), std::string::npos);
}

TEST(Traffic, StaysWithinItsTimeHoweverSmallOrLargeTheLoad) {
  for (const Shape shape : kShapes) {
    for (const double load : {1e-9, 0.01, 1e3, 1e300}) {
      const auto traffic = MakeTraffic({.shape = shape,
                                        .count = 1,
                                        .period = Duration(100),
                                        .load = load,
                                        .duration = Duration(10'000)});
      if (!traffic) continue;
      EXPECT_GE(traffic->arrivals.front().at, Duration(0));
      EXPECT_LT(traffic->arrivals.back().at, traffic->length);
    }
  }
}

TEST(Traffic, SaysHowLittleItIs) {
  const auto describe = [](double load) {
    const auto traffic =
        MakeTraffic({.shape = Shape::kSteady, .count = 100, .period = seconds(1), .load = load});
    return traffic ? traffic->description : traffic.error().message;
  };
  EXPECT_EQ(describe(0.001), "0.001 times the limit, evenly");
  EXPECT_EQ(describe(1.25), "1.25 times the limit, evenly");
  EXPECT_EQ(describe(1000), "1,000 times the limit, evenly");
}

TEST(Traffic, ThatIsTooLongIsRefused) {
  const auto traffic = MakeTraffic(
      {.shape = Shape::kPoisson, .count = 1, .period = days(1), .duration = days(366 * 20)});
  ASSERT_FALSE(traffic);
  EXPECT_NE(traffic.error().message.find("at most"), std::string::npos);
}

TEST(TrafficFile, HasATimeAndPerhapsACostOnEveryLine) {
  const auto traffic = ReadTraffic("# when cost\n1.5\n\n2 3  # a large one\r\n2.000000001\t4\n",
                                   "times.txt", seconds(1));
  ASSERT_TRUE(traffic) << traffic.error().message;
  EXPECT_EQ(traffic->start, WallTime(seconds(1)));
  EXPECT_FALSE(traffic->has_dates);
  EXPECT_EQ(traffic->arrivals,
            (std::vector<Arrival>{
                {milliseconds(500), 1}, {seconds(1), 3}, {seconds(1) + Duration(1), 4}}));
  EXPECT_EQ(traffic->length, seconds(1) + Duration(2));
  EXPECT_TRUE(traffic->warnings.empty());
}

// Whatever looks at the whole rest of the text for every line takes minutes for this.
TEST(TrafficFile, OfAMillionLinesIsReadInNoTime) {
  constexpr std::size_t kLines = 1'000'000;
  std::string text;
  for (std::size_t i = 0; i < kLines; ++i) text += std::to_string(i) + "\n";
  const auto traffic = ReadTraffic(text, "times.txt", seconds(1));
  ASSERT_TRUE(traffic) << traffic.error().message;
  EXPECT_EQ(traffic->arrivals.size(), kLines);
}

TEST(TrafficFile, MayHaveDates) {
  const auto traffic =
      ReadTraffic("2026-11-17T09:30:00Z\n2026-11-17T10:30:00.25+01:00\n1794907801\n", "t",
                  std::chrono::minutes(1));
  ASSERT_TRUE(traffic) << traffic.error().message;
  EXPECT_TRUE(traffic->has_dates);
  EXPECT_EQ(traffic->start, WallTime(std::chrono::sys_days(std::chrono::year(2026) / 11 / 17) +
                                     hours(9) + std::chrono::minutes(30)));
  EXPECT_EQ(traffic->arrivals,
            (std::vector<Arrival>{{Duration(0), 1}, {milliseconds(250), 1}, {seconds(1), 1}}));
}

TEST(TrafficFile, IsSortedIfItMustBeAndSaysSo) {
  const auto traffic = ReadTraffic("3\n1 2\n2\n1 1\n1 3\n", "t", seconds(1));
  ASSERT_TRUE(traffic);
  EXPECT_EQ(
      traffic->arrivals,
      (std::vector<Arrival>{
          {seconds(0), 2}, {seconds(0), 1}, {seconds(0), 3}, {seconds(1), 1}, {seconds(2), 1}}));
  EXPECT_EQ(traffic->warnings,
            std::vector<std::string>{"The times in t are not in order: the requests were sorted."});
}

TEST(TrafficFile, NamesTheLineThatIsWrong) {
  for (const char* line :
       {"soon", "-1", "1e3", "1.", ".5", "1..2", "+1", "99999999999", "2026-11-17T09:30:00",
        "2026-11-17 09:30:00Z", "2026-02-30T09:30:00Z", "2026-11-17T25:30:00Z",
        "2026-11-17T09:30:00.Z", "2026-11-17T09:30:00+1:00", "1969-12-31T23:59:59Z",
        "9999-01-01T00:00:00Z", ":", "2026-11-17T09:30", "1970-01-01T00:00:00+01:00"}) {
    const auto traffic = ReadTraffic("1\n" + std::string(line) + "\n", "times.txt", seconds(1));
    ASSERT_FALSE(traffic) << line;
    EXPECT_TRUE(traffic.error().message.starts_with("times.txt:2: ")) << traffic.error().message;
    EXPECT_NE(traffic.error().message.find(" is no "), std::string::npos) << line;
  }
  for (const char* line : {"1 0", "1 -2", "1 x", "1 2 3", "1 1.5", "1 99999999999999"}) {
    const auto traffic = ReadTraffic(line, "t", seconds(1));
    ASSERT_FALSE(traffic) << line;
    EXPECT_NE(traffic.error().message.find(" is no cost"), std::string::npos) << line;
  }
}

TEST(TrafficFile, ThatIsEmptyIsRefused) {
  for (const char* text : {"", "\n\n", "# nothing\n"}) {
    const auto traffic = ReadTraffic(text, "times.txt", seconds(1));
    ASSERT_FALSE(traffic);
    EXPECT_EQ(traffic.error().message,
              "times.txt: there is no request in it; write one time in seconds on every line");
  }
}

TEST(TrafficFile, ThatTakesTooLongIsRefused) {
  EXPECT_FALSE(ReadTraffic("0\n1800000000\n", "t", seconds(1)));
}

}  // namespace
}  // namespace weir::lab
