#include "base/ticks.h"

#include <gtest/gtest.h>

#include <weir/clock.h>

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr hours kYear(24 * 366);

TEST(Ticks, AreSixteenthsOfANanosecond) {
  EXPECT_EQ(ToTicks(Duration(3)).count(), 48);
  EXPECT_EQ(std::chrono::duration_cast<Ticks>(Duration(3)), ToTicks(Duration(3)));
}

TEST(Ticks, BecomeADurationRoundedUp) {
  EXPECT_EQ(ToDuration(Ticks(0)), Duration(0));
  EXPECT_EQ(ToDuration(Ticks(1)), Duration(1));
  EXPECT_EQ(ToDuration(Ticks(16)), Duration(1));
  EXPECT_EQ(ToDuration(Ticks(17)), Duration(2));
  EXPECT_EQ(ToDuration(Ticks(-1)), Duration(0));
  EXPECT_EQ(ToDuration(Ticks(-17)), Duration(-1));
}

TEST(RoundUpTo, NeverSendsAClientBackTooEarly) {
  EXPECT_EQ(RoundUpTo<seconds>(Duration(0)), 0);
  EXPECT_EQ(RoundUpTo<seconds>(Duration(1)), 1);
  EXPECT_EQ(RoundUpTo<seconds>(seconds(2)), 2);
  EXPECT_EQ(RoundUpTo<milliseconds>(milliseconds(7) + Duration(1)), 8);
}

TEST(Timeline, CountsFromAYearBeforeTheStart) {
  ManualClock clock;
  const Timeline timeline(clock.Read());
  const Instant start = timeline.At(clock.Read());
  EXPECT_EQ(start.now, ToTicks(kYear));
  EXPECT_EQ(start.wall, clock.Read().wall);
  EXPECT_EQ(start.origin, clock.Read().wall - kYear);
  clock.Advance(seconds(1));
  EXPECT_EQ(timeline.At(clock.Read()).now, ToTicks(kYear + seconds(1)));
  EXPECT_EQ(timeline.At(clock.Read()).origin, start.origin);
}

TEST(Timeline, StandsStillAtBothEndsOfItsRange) {
  ManualClock clock;
  const Timeline timeline(clock.Read());
  clock.Advance(-2 * kYear);
  EXPECT_EQ(timeline.At(clock.Read()).now, Ticks(0));
  clock.Advance(20 * kYear);
  const Ticks latest = timeline.At(clock.Read()).now;
  clock.Advance(kYear);
  EXPECT_EQ(timeline.At(clock.Read()).now, latest);
  // The furthest state, two longest bursts ahead, still fits into 62 bits.
  EXPECT_LT((latest + ToTicks(2 * kYear + hours(1))).count(), std::int64_t{1} << 62);
}

TEST(Timeline, KnowsWhatToDoWithTheEarliestAndTheLatestTimesThatCanBeWritten) {
  const Now earliest{SteadyTime::min(), WallTime::min()};
  const Now latest{SteadyTime::max(), WallTime::max()};
  const ManualClock clock;
  for (const Now start : {earliest, clock.Read(), latest}) {
    const Timeline timeline(start);
    EXPECT_EQ(timeline.At(earliest).now, Ticks(0));
    EXPECT_GE(timeline.At(latest).now, timeline.At(start).now);
    EXPECT_LE(timeline.At(latest).now, ToTicks(6 * kYear));
    EXPECT_EQ(timeline.At(latest).wall, latest.wall);
  }
  EXPECT_EQ(Timeline(earliest).At(earliest).origin, WallTime::min());
  EXPECT_EQ(Timeline(latest).At(latest).now, ToTicks(kYear));
  EXPECT_EQ(Timeline(clock.Read()).At(latest).now, ToTicks(6 * kYear));
}

}  // namespace
}  // namespace weir
