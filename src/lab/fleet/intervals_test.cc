#include "lab/fleet/intervals.h"

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

using sim::Admission;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// So many, one after the other, each of which holds on for `held`.
std::vector<Admission> Evenly(int number, Duration pause, Duration held = Duration(0)) {
  std::vector<Admission> admissions;
  for (int i = 0; i < number; ++i) {
    const Duration at = i * pause;
    admissions.push_back({.at = at,
                          .earliest = at,
                          .latest = at,
                          .asked = at,
                          .answered = at,
                          .cost = 1,
                          .live_until = at + held});
  }
  return admissions;
}

const LimitSpec kMany{.count = 2'000, .period = seconds(1)};
const sim::PromiseTerms kDated{.is_dated = true};

Limit LimitFrom(LimitSpec spec) { return *Limit::Make(spec); }

// The intervals in which the limit is passed hold more than are looked at pair by pair.
TEST(Intervals, OfAPeriodWithThousandsAreLookedAt) {
  LimitSpec log = kMany;
  log.algorithm = Algorithm::kSlidingLog;
  LimitSpec strict = kMany;
  strict.algorithm = Algorithm::kSlidingWindow;
  strict.strict = true;
  for (const LimitSpec& spec : {log, strict}) {
    EXPECT_FALSE(FindAnyExcess(LimitFrom(spec), Evenly(6'000, microseconds(500)), kDated));
    EXPECT_TRUE(FindAnyExcess(LimitFrom(spec), Evenly(6'000, microseconds(499)), kDated));
    // A server that forgot all in the middle may let as much through again.
    const sim::PromiseTerms lapse{.lapses = {{milliseconds(1), milliseconds(2)}}, .is_dated = true};
    EXPECT_FALSE(FindAnyExcess(LimitFrom(spec), Evenly(4'000, microseconds(1)), lapse));
    EXPECT_TRUE(FindAnyExcess(LimitFrom(spec), Evenly(4'000, microseconds(1)), kDated));
  }
}

TEST(Intervals, OfAQueueThatIsALittleTooFastAreLookedAt) {
  LimitSpec queue = kMany;
  queue.algorithm = Algorithm::kLeakyBucket;
  queue.queue = true;
  EXPECT_FALSE(FindAnyExcess(LimitFrom(queue), Evenly(6'000, microseconds(500)), kDated));
  EXPECT_TRUE(FindAnyExcess(LimitFrom(queue), Evenly(6'000, Duration(499'900)), kDated));
}

TEST(Intervals, OfThousandsOfLeasesAreLookedAt) {
  const Limit limit = *Limit::Parse("2000 concurrent lease 1min");
  EXPECT_FALSE(FindAnyExcess(limit, Evenly(6'000, milliseconds(1), milliseconds(2'000)), kDated));
  EXPECT_TRUE(FindAnyExcess(limit, Evenly(6'000, milliseconds(1), milliseconds(2'001)), kDated));
}

}  // namespace
}  // namespace weir::lab
