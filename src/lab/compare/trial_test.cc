// What the algorithms promise, as the lab measures it.
#include "lab/compare/trial.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "lab/compare/contender.h"
#include "lab/compare/shapes_under_test.h"

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Traffic TrafficOf(Shape shape, const Limit& limit, std::uint64_t seed = 1) {
  return MakeTraffic({.shape = shape,
                      .count = limit.spec().count,
                      .period = limit.spec().period,
                      .seed = seed})
      .value();
}

// Every algorithm under the traffic, by its name.
std::map<std::string, Trial> TrialsOf(const std::string& text, Shape shape) {
  const Limit limit = Limit::Parse(text).value();
  const Traffic traffic = TrafficOf(shape, limit);
  std::map<std::string, Trial> trials;
  for (const Contender& contender : MakeContenders(limit).all) {
    trials[contender.name] = RunTrial(contender.limit, traffic);
  }
  return trials;
}

TEST(Trial, KeepsEveryPromiseOnEveryTraffic) {
  for (const char* text : {"100/s", "100/s burst 10", "7/3s", "5/day", "1/min", "1k/s burst 3k"}) {
    for (const Shape shape : kShapes) {
      for (const auto& [name, trial] : TrialsOf(text, shape)) {
        SCOPED_TRACE(std::string(text) + " " + name + " " +
                     std::string(kShapeNames[static_cast<std::size_t>(shape)]));
        EXPECT_TRUE(trial.is_kept);
        EXPECT_GT(trial.admitted, 0);
        EXPECT_LE(trial.worst_window.cost, trial.promise.in_window);
      }
    }
  }
}

TEST(Trial, ShowsTwiceTheLimitAcrossABoundaryOfAFixedWindow) {
  for (const char* text : {"100/s", "5/day", "1k/min"}) {
    const auto trials = TrialsOf(text, Shape::kBoundary);
    EXPECT_EQ(trials.at("fixed_window").factor, 2.0) << text;
    EXPECT_EQ(trials.at("fixed_window").denied, 0);
    EXPECT_EQ(trials.at("sliding_window strict").factor, 1.0);
    EXPECT_EQ(trials.at("sliding_log").factor, 1.0);
    EXPECT_LE(trials.at("sliding_window").factor, 1.2);
  }
  const Trial fixed = TrialsOf("100/s", Shape::kBoundary).at("fixed_window");
  EXPECT_EQ(fixed.worst_window.cost, 200);
  // Around the boundary at 2 s.
  EXPECT_LT(fixed.worst_window.from, milliseconds(1'990));
  EXPECT_GT(fixed.worst_window.to, milliseconds(2'009));
  // All of it in a fiftieth of the window: twice the limit at once, less what the rate brings.
  EXPECT_NEAR(fixed.worst_burst.above_rate, 198, 0.1);
}

TEST(Trial, ShowsThatTheSlidingEstimateMayReachTwiceTheLimit) {
  for (const auto& [text, least] :
       {std::pair("100/s", 195), std::pair("1k/s", 1'990), std::pair("100/h", 195)}) {
    const Trial trial = TrialsOf(text, Shape::kLateWindow).at("sliding_window");
    EXPECT_GE(trial.worst_window.cost, least) << text;
    EXPECT_LE(trial.worst_window.cost, trial.promise.in_window);
    EXPECT_EQ(trial.denied, 0);
    // What it believes then is off by the whole limit.
    EXPECT_GE(trial.error->too_low, 0.95);
  }
}

// As it was first found: a limit's worth in the last millisecond of a window, then whatever passes
// in each millisecond of the next. A thousand is as fine as the milliseconds are, so 1,998 pass; of
// a hundred all pass, because the estimate is rounded down.
TEST(Trial, ShowsTheSameOnAGridOfMilliseconds) {
  for (const auto& [count, worst] : {std::pair(1'000, 1'998), std::pair(100, 200)}) {
    const Limit limit =
        Limit::Make({.algorithm = Algorithm::kSlidingWindow, .count = count, .period = seconds(1)})
            .value();
    Traffic traffic{.name = "grid", .length = seconds(3)};
    for (int i = 0; i < count; ++i) traffic.arrivals.push_back({.at = milliseconds(999)});
    for (int i = 1'000; i < 2'000; ++i) {
      for (int j = 0; j < 3; ++j) traffic.arrivals.push_back({.at = milliseconds(i)});
    }
    EXPECT_EQ(RunTrial(limit, traffic).worst_window.cost, worst);
  }
}

// The estimate takes what came in the window before for evenly spread. On traffic by chance its
// error is what chance makes of that: some hundredths of the limit, far from the worst case.
TEST(Trial, ShowsASmallErrorOfTheSlidingEstimateOnOrdinaryTraffic) {
  const Limit limit =
      Limit::Make({.algorithm = Algorithm::kSlidingWindow, .count = 100, .period = seconds(1)})
          .value();
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const Trial trial = RunTrial(limit, TrafficOf(Shape::kPoisson, limit, seed));
    EXPECT_GT(trial.error->typical, 0.015);
    EXPECT_LT(trial.error->typical, 0.035);
    EXPECT_LT(trial.error->worst(), 0.25);
    EXPECT_LT(trial.factor, 1.25);
    EXPECT_GT(trial.factor, 1.0);
  }
}

TEST(Trial, ShowsThatTheStrictWindowAndTheLogAreNeverAbove) {
  for (const char* text : {"100/s", "13/7s", "5/day"}) {
    for (const Shape shape : kShapes) {
      const auto trials = TrialsOf(text, shape);
      for (const char* name : {"sliding_window strict", "sliding_log"}) {
        EXPECT_LE(trials.at(name).factor, 1.0) << text << " " << name;
        EXPECT_EQ(trials.at(name).otherwise->allowed, 0);
      }
      EXPECT_EQ(trials.at("sliding_log").error->worst(), 0.0) << text;
      EXPECT_EQ(trials.at("sliding_log").otherwise->denied, 0);
      // It counts whole sub-windows, so it believes too much at most.
      EXPECT_EQ(trials.at("sliding_window strict").error->too_low, 0.0);
    }
  }
}

TEST(Trial, ShowsThatATokenBucketReachesItsBurstAndNeverMore) {
  for (const auto& [text, burst] : {std::pair("100/s", 100), std::pair("100/s burst 10", 10),
                                    std::pair("60/min burst 90", 90)}) {
    for (const Shape shape : kShapes) {
      const Trial trial = TrialsOf(text, shape).at("token_bucket");
      EXPECT_TRUE(trial.worst_burst.is_within) << text;
      EXPECT_LE(trial.worst_burst.above_rate, burst);
    }
    // In the interval from the burst on, of whatever length.
    EXPECT_EQ(TrialsOf(text, Shape::kBurst).at("token_bucket").worst_burst.above_rate, burst);
  }
  // A window without its beginning: the one that the rate brings at its very end is not in it.
  EXPECT_EQ(TrialsOf("100/s", Shape::kBurst).at("token_bucket").worst_window.cost, 199);
}

TEST(Trial, ShowsThatAQueueLetsRequestsGoOneByOne) {
  for (const Shape shape : kShapes) {
    const Trial trial = TrialsOf("100/s", shape).at("leaky_bucket queue");
    EXPECT_TRUE(trial.worst_burst.is_within);
    EXPECT_EQ(trial.worst_burst.rounded, 1);
    EXPECT_EQ(trial.worst_burst.above_rate, 1.0);
    EXPECT_LE(trial.factor, 1.0);
    EXPECT_LE(trial.max_delay, seconds(1));
    EXPECT_LE(trial.mean_delay, trial.max_delay);
    for (std::size_t i = 1; i < trial.passed.size(); ++i) {
      ASSERT_GE(trial.passed[i].at - trial.passed[i - 1].at, milliseconds(10));
    }
  }
  EXPECT_EQ(TrialsOf("100/s", Shape::kBurst).at("leaky_bucket queue").max_delay, seconds(1));
}

TEST(Trial, ShowsThatALeakyBucketAsAMeterIsATokenBucket) {
  const Limit bucket = Limit::Parse("100/s burst 30").value();
  const Limit meter =
      Limit::Parse("100/s burst 30", {.algorithm = Algorithm::kLeakyBucket}).value();
  for (const Shape shape : kShapes) {
    const Traffic traffic = TrafficOf(shape, bucket);
    EXPECT_EQ(RunTrial(bucket, traffic).passed, RunTrial(meter, traffic).passed);
  }
}

TEST(Trial, TellsHowLongSomebodyWasLockedOut) {
  // All of the limit at the start of a window, then one try every 100 ms.
  Traffic traffic{.name = "tries", .length = seconds(3)};
  for (int i = 0; i < 5; ++i) traffic.arrivals.push_back({.at = Duration(0)});
  for (int i = 1; i < 30; ++i) traffic.arrivals.push_back({.at = milliseconds(100 * i)});
  const Limit limit = Limit::Parse("5/s").value();
  std::map<std::string, Trial> trials;
  for (const Contender& contender : MakeContenders(limit).all) {
    trials[contender.name] = RunTrial(contender.limit, traffic);
  }
  EXPECT_EQ(trials["fixed_window"].lock_out, milliseconds(900));
  EXPECT_EQ(trials["fixed_window"].lock_out_from, milliseconds(100));
  EXPECT_EQ(trials["sliding_log"].lock_out, milliseconds(900));
  EXPECT_EQ(trials["sliding_log"].lock_out_from, milliseconds(100));
  EXPECT_EQ(trials["sliding_window strict"].lock_out, milliseconds(1'000));
  EXPECT_EQ(trials["token_bucket"].lock_out, milliseconds(100));
}

// Nobody came while the door was shut: it would have opened after a second.
TEST(Trial, DoesNotTakeQuietForALockOut) {
  Traffic traffic{.name = "two", .length = seconds(100)};
  traffic.arrivals = {{Duration(0)}, {milliseconds(1)}, {seconds(90)}, {seconds(90)}};
  const Limit limit =
      Limit::Make({.algorithm = Algorithm::kSlidingLog, .count = 1, .period = seconds(1)}).value();
  EXPECT_EQ(RunTrial(limit, traffic).lock_out, seconds(1));  // The last, which nobody ended.
}

TEST(Trial, CountsCosts) {
  Traffic traffic{.name = "costly", .length = seconds(2)};
  traffic.arrivals = {
      {Duration(0), 6}, {milliseconds(1), 5}, {milliseconds(2), 4}, {seconds(1), 11}};
  const Limit limit =
      Limit::Make({.algorithm = Algorithm::kSlidingLog, .count = 10, .period = seconds(2)}).value();
  const Trial trial = RunTrial(limit, traffic);
  EXPECT_EQ(trial.admitted, 2);
  EXPECT_EQ(trial.admitted_cost, 10);
  EXPECT_EQ(trial.denied, 2);
  EXPECT_EQ(trial.never_fits, 1);
  EXPECT_EQ(trial.worst_window.cost, 10);
  EXPECT_EQ(trial.otherwise->denied, 0);
  const Limit queue =
      Limit::Make(
          {.algorithm = Algorithm::kLeakyBucket, .count = 10, .period = seconds(2), .queue = true})
          .value();
  const Trial queued = RunTrial(queue, traffic);
  EXPECT_EQ(queued.promise.burst, 11);
  EXPECT_TRUE(queued.is_kept);
}

TEST(Trial, IsTheSameOnADayAndOnASecond) {
  const Trial day = TrialsOf("100/day", Shape::kPoisson).at("sliding_window");
  const Trial second = TrialsOf("100/s", Shape::kPoisson).at("sliding_window");
  EXPECT_EQ(day.admitted, second.admitted);
  EXPECT_EQ(day.worst_window.cost, second.worst_window.cost);
}

TEST(Footprint, IsWhatTheDocumentsSay) {
  std::map<std::string, double> bytes;
  for (const Contender& contender : MakeContenders(Limit::Parse("100/s").value()).all) {
    bytes[contender.name] = BytesPerKey(contender.limit);
  }
  EXPECT_NEAR(bytes["token_bucket"], 27, 1.5);
  EXPECT_EQ(bytes["leaky_bucket queue"], bytes["token_bucket"]);
  EXPECT_GE(bytes["fixed_window"], 45);
  EXPECT_LE(bytes["fixed_window"], 58);
  EXPECT_EQ(bytes["sliding_window"], bytes["fixed_window"]);
  EXPECT_GE(bytes["sliding_window strict"], 178);
  EXPECT_LE(bytes["sliding_window strict"], 230);
  // A hundred admissions are 15 times seven.
  EXPECT_NEAR(bytes["sliding_log"], bytes["fixed_window"] + 15 * 128, 40);
}

TEST(Footprint, OfALogGrowsWithTheLimit) {
  const auto log = [](std::int64_t count) {
    return BytesPerKey(
        Limit::Make({.algorithm = Algorithm::kSlidingLog, .count = count, .period = seconds(1)})
            .value());
  };
  EXPECT_NEAR(log(5), 185, 10);
  EXPECT_NEAR(log(7'000) / 128'000, 1, 0.03);
}

TEST(Contenders, LeaveOutWhatCannotBeAndSayWhy) {
  const Contenders contenders = MakeContenders(Limit::Parse("100k/s").value());
  ASSERT_EQ(contenders.left_out.size(), 2U);
  EXPECT_EQ(contenders.left_out[0].name, "sliding_log");
  EXPECT_NE(contenders.left_out[0].why.find("1 to 65536"), std::string::npos);
  EXPECT_EQ(contenders.left_out[1].name, "concurrency");
  EXPECT_EQ(contenders.all.size(), 5U);
  for (const Contender& contender : MakeContenders(Limit::Parse("9/s burst 4").value()).all) {
    EXPECT_EQ(contender.limit.capacity(), IsBucket(contender.limit) ? 4 : 9) << contender.name;
  }
}

}  // namespace
}  // namespace weir::lab
