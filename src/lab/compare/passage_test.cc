#include "lab/compare/passage.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/random.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Arrival> Some(std::uint64_t seed) {
  sim::Random random(seed);
  std::vector<Arrival> events;
  Duration at{0};
  for (int i = 0; i < 200; ++i) {
    if (random.Chance(60)) at += milliseconds(random.Between(0, 30));
    events.push_back({.at = at, .cost = random.Between(1, 4)});
  }
  return events;
}

std::int64_t SumIn(const std::vector<Arrival>& events, Duration after, Duration to) {
  std::int64_t sum = 0;
  for (const Arrival& event : events) sum += event.at > after && event.at <= to ? event.cost : 0;
  return sum;
}

TEST(Passage, FindsTheWorstWindow) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Arrival> events = Some(seed);
    const Duration window = milliseconds(100);
    std::int64_t most = 0;
    for (Duration to{0}; to <= events.back().at; to += milliseconds(1)) {
      most = std::max(most, SumIn(events, to - window, to));
    }
    const Stretch worst = FindWorstWindow(events, window);
    EXPECT_EQ(worst.cost, most);
    EXPECT_EQ(worst.to - worst.from, window);
    EXPECT_EQ(SumIn(events, worst.from, worst.to), most);
  }
}

TEST(Passage, CountsAWindowWithoutItsBeginning) {
  const std::vector<Arrival> events = {{seconds(0), 1}, {seconds(1), 1}};
  EXPECT_EQ(FindWorstWindow(events, seconds(1)).cost, 1);
  EXPECT_EQ(FindWorstWindow(events, seconds(1) + Duration(1)).cost, 2);
  EXPECT_EQ(FindWorstWindow({}, seconds(1)).cost, 0);
}

TEST(Passage, FindsTheWorstBurst) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Arrival> events = Some(seed);
    double most = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      std::int64_t sum = 0;
      for (std::size_t j = i; j < events.size(); ++j) {
        sum += events[j].cost;
        const double brought =
            static_cast<double>((events[j].at - events[i].at).count()) / 1e9 * 100;
        most = std::max(most, static_cast<double>(sum) - brought);
      }
    }
    const WorstBurst worst = FindWorstBurst(
        events, {.count = 100, .period = seconds(1), .allowed = static_cast<std::int64_t>(most)});
    EXPECT_NEAR(worst.above_rate, most, 1e-6);
    EXPECT_EQ(worst.stretch.cost,
              SumIn(events, worst.stretch.from - Duration(1), worst.stretch.to));
  }
}

TEST(Passage, TellsABurstThatIsWithinFromOneThatIsNot) {
  // Two at once, and one more when the rate has just brought it, or a nanosecond before.
  for (const auto& [at, within] : {std::pair<Duration, bool>(milliseconds(10), true),
                                   {milliseconds(10) - Duration(1), false}}) {
    const std::vector<Arrival> events = {{Duration(0), 2}, {at, 1}};
    const BurstQuestion question{.count = 100, .period = seconds(1), .allowed = 2};
    EXPECT_EQ(FindWorstBurst(events, question).is_within, within);
    EXPECT_EQ(FindWorstBurst(events, question).rounded, within ? 2 : 3);
    BurstQuestion rounded = question;
    rounded.rounding = Duration(1);
    EXPECT_TRUE(FindWorstBurst(events, rounded).is_within);
  }
}

TEST(Passage, IsDrawnInAtMostSixHundredParts) {
  for (const auto& [length, period] : {std::pair<Duration, Duration>(seconds(10), seconds(1)),
                                       {seconds(60), seconds(1)},
                                       {seconds(240), seconds(1)},
                                       {seconds(100'000), seconds(1)},
                                       {Duration(1), seconds(1)},
                                       {milliseconds(2'500), seconds(1)},
                                       {Duration(999), Duration(7)}}) {
    const PlotBins timeline = MakePlotBins(length, period);
    EXPECT_LE(timeline.bins, 600U);
    EXPECT_GE(timeline.bins, 1U);
    EXPECT_GE(timeline.bin * static_cast<std::int64_t>(timeline.bins), length);
    EXPECT_TRUE(period % timeline.bin == Duration(0) || timeline.bin % period == Duration(0));
  }
  EXPECT_EQ(MakePlotBins(seconds(10), seconds(1)).bin, milliseconds(20));
}

TEST(Passage, LosesNeitherRequestsNorPeaksWhenItIsDrawn) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Arrival> events = Some(seed);
    const Duration window = milliseconds(100);
    const PlotBins timeline = MakePlotBins(events.back().at + Duration(1), milliseconds(700));
    double sum = 0;
    for (const double part : SumsOf(events, timeline)) sum += part;
    EXPECT_EQ(static_cast<std::int64_t>(sum), SumIn(events, Duration(-1), events.back().at));

    const std::vector<double> peaks = PeaksOf(events, window, timeline);
    for (std::size_t i = 0; i < timeline.bins; ++i) {
      std::int64_t most = 0;
      const Duration start = timeline.bin * static_cast<std::int64_t>(i);
      for (Duration to = start; to < start + timeline.bin; to += milliseconds(1)) {
        most = std::max(most, SumIn(events, to - window, to));
      }
      EXPECT_EQ(static_cast<std::int64_t>(peaks[i]), most) << i;
    }
  }
}

}  // namespace
}  // namespace weir::lab
