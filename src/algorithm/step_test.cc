#include "algorithm/step.h"

#include <gtest/gtest.h>

#include "algorithm/key_under_test.h"

namespace weir {
namespace {

Limit CountingLimit(std::int64_t count, bool overdraft = false) {
  LimitSpec spec;
  spec.algorithm = Algorithm::kFixedWindow;
  spec.count = count;
  spec.period = std::chrono::seconds(1);
  spec.overdraft = overdraft;
  return Limit::Make(spec).value();
}

TEST(AddUpTo, StopsAtTheMost) {
  EXPECT_EQ(AddUpTo(3, 4, 10), 7);
  EXPECT_EQ(AddUpTo(3, 7, 10), 10);
  EXPECT_EQ(AddUpTo(3, 8, 10), 10);
  EXPECT_EQ(AddUpTo(3, kHuge, 10), 10);
  EXPECT_EQ(AddUpTo(3, 0, 10), 3);
}

TEST(AddUpTo, NeverLowersACountThatIsAboveTheMost) {
  EXPECT_EQ(AddUpTo(10, 1, 10), 10);
  EXPECT_EQ(AddUpTo(12, 1, 10), 12);
  EXPECT_EQ(AddUpTo(12, 0, 10), 12);
}

TEST(InProportion, RoundsUp) {
  EXPECT_EQ(InProportion(50, CountingLimit(100), CountingLimit(10)), 5);
  EXPECT_EQ(InProportion(51, CountingLimit(100), CountingLimit(10)), 6);
  EXPECT_EQ(InProportion(1, CountingLimit(100), CountingLimit(10)), 1);
  EXPECT_EQ(InProportion(0, CountingLimit(100), CountingLimit(10)), 0);
  EXPECT_EQ(InProportion(3, CountingLimit(10), CountingLimit(100)), 30);
}

TEST(InProportion, HoldsAtTheLargestCounts) {
  EXPECT_EQ(InProportion(2 * kMaxCount, CountingLimit(kMaxCount), CountingLimit(kMaxCount)),
            2 * kMaxCount);
  EXPECT_EQ(InProportion(kMaxCount, CountingLimit(kMaxCount), CountingLimit(1)), 1);
  EXPECT_EQ(InProportion(1, CountingLimit(1), CountingLimit(kMaxCount)), kMaxCount);
}

TEST(StepRequest, ForNothingAsksForOneAndTakesNothing) {
  const StepRequest nothing{.cost = 0};
  EXPECT_EQ(AskedCost(nothing), 1);
  EXPECT_FALSE(Takes(nothing));
  EXPECT_FALSE(Changes(nothing));
  EXPECT_EQ(AskedCost({.cost = 7}), 7);
}

TEST(StepRequest, TakesOnlyIfItIsACheck) {
  EXPECT_TRUE(Takes({.verb = Verb::kCheck}));
  EXPECT_FALSE(Takes({.verb = Verb::kPeek}));
  EXPECT_FALSE(Takes({.verb = Verb::kPenalize}));
}

TEST(StepRequest, ChangesNothingIfItIsAPeek) {
  EXPECT_FALSE(Changes({.verb = Verb::kPeek}));
  EXPECT_TRUE(Changes({.verb = Verb::kCheck}));
  EXPECT_TRUE(Changes({.verb = Verb::kSettle, .cost = 0}));
}

TEST(JudgeCount, AdmitsUpToTheLimitAndNoFurther) {
  EXPECT_TRUE(JudgeCount(CountingLimit(10), 7, {.cost = 3}).allowed);
  EXPECT_FALSE(JudgeCount(CountingLimit(10), 7, {.cost = 4}).allowed);
  EXPECT_FALSE(JudgeCount(CountingLimit(10), 7, {.cost = 4}).never_fits);
  EXPECT_FALSE(JudgeCount(CountingLimit(10), 20, {.cost = 1}).allowed);
}

TEST(JudgeCount, SaysWhatNeverFits) {
  EXPECT_TRUE(JudgeCount(CountingLimit(10), 0, {.cost = 11}).never_fits);
  EXPECT_TRUE(JudgeCount(CountingLimit(10), 0, {.cost = kHuge}).never_fits);
  EXPECT_FALSE(JudgeCount(CountingLimit(10), 0, {.cost = kHuge}).allowed);
}

TEST(JudgeCount, OverdraftAsksOnlyWhetherAnythingIsLeft) {
  EXPECT_TRUE(JudgeCount(CountingLimit(10, true), 9, {.cost = kHuge}).allowed);
  EXPECT_FALSE(JudgeCount(CountingLimit(10, true), 10, {.cost = 1}).allowed);
}

TEST(JudgeCount, AllowsEverythingThatIsNotAQuestion) {
  for (const Verb verb :
       {Verb::kRefund, Verb::kPenalize, Verb::kReset, Verb::kSettle, Verb::kUnbook}) {
    EXPECT_TRUE(JudgeCount(CountingLimit(10), 20, {.verb = verb, .cost = kHuge}).allowed);
  }
}

TEST(DescribeCount, NeverShowsLessThanNothing) {
  const StepRequest request{.cost = 3};
  const Decision denial =
      DescribeCount(CountingLimit(10), 15, request, {.allowed = false, .never_fits = false});
  EXPECT_EQ(denial.reason, Reason::kLimited);
  EXPECT_EQ(denial.remaining, 0);
  EXPECT_EQ(denial.limit, 10);
  EXPECT_EQ(denial.cost, 3);
}

TEST(DescribeCount, GivesNoHopeToWhatNeverFits) {
  const Decision denial =
      DescribeCount(CountingLimit(10), 4, {.cost = 11}, {.allowed = false, .never_fits = true});
  EXPECT_EQ(denial.reason, Reason::kNeverFits);
  EXPECT_EQ(denial.retry_after, kNever);
  EXPECT_EQ(denial.remaining, 6);
}

TEST(Adds, IsSaidOfWhatMayLeaveMoreThanThereWas) {
  for (const Verb verb : {Verb::kCheck, Verb::kPenalize}) {
    EXPECT_TRUE(Adds({.verb = verb, .cost = 1}));
    EXPECT_FALSE(Adds({.verb = verb, .cost = 0}));
  }
  for (const Verb verb : {Verb::kPeek, Verb::kRefund, Verb::kReset}) {
    EXPECT_FALSE(Adds({.verb = verb, .cost = 1}));
  }
  for (const Verb verb : {Verb::kSettle, Verb::kUnbook}) {
    EXPECT_TRUE(Adds({.verb = verb, .cost = 3, .reserved = 2}));
    EXPECT_FALSE(Adds({.verb = verb, .cost = 2, .reserved = 2}));
  }
}

}  // namespace
}  // namespace weir
