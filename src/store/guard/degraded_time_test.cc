#include "store/guard/degraded_time.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DegradedTimeTest : public testing::Test {
 protected:
  void Fail() {
    if (time_.NoteFailure(now_) && time_.Begin(now_)) ++begun_;
  }
  void Succeed() {
    if (!time_.NoteSuccess(now_)) return;
    if (const auto lasted = time_.End(now_)) {
      ++ended_;
      lasted_ = *lasted;
    }
  }

  DegradedTime time_;
  SteadyTime now_{seconds(100)};
  int begun_ = 0;
  int ended_ = 0;
  Duration lasted_{0};
};

TEST_F(DegradedTimeTest, IsNotOnWhileNothingFails) {
  Succeed();
  EXPECT_FALSE(time_.IsOn());
  EXPECT_EQ(time_.Lasted(now_), Duration(0));
  EXPECT_EQ(time_.times(), 0u);
}

TEST_F(DegradedTimeTest, BeginsWithTheFirstFailureAndLastsUntilASuccessAfterACalmSecond) {
  Fail();
  EXPECT_TRUE(time_.IsOn());
  now_ += seconds(5);
  Fail();
  EXPECT_EQ(time_.Lasted(now_), seconds(5));
  now_ += milliseconds(999);
  Succeed();
  EXPECT_TRUE(time_.IsOn());
  now_ += milliseconds(1);
  EXPECT_TRUE(time_.IsOn());  // Nobody knows before somebody asks.
  Succeed();
  EXPECT_FALSE(time_.IsOn());
  EXPECT_EQ(lasted_, seconds(6));
  EXPECT_EQ(time_.Lasted(now_), Duration(0));
  EXPECT_EQ(begun_, 1);
  EXPECT_EQ(time_.times(), 1u);
}

TEST_F(DegradedTimeTest, StaysOnWhileOneServerOfSeveralFails) {
  for (int i = 0; i < 100; ++i) {
    now_ += milliseconds(100);
    Succeed();
    if (i % 5 == 0) Fail();
  }
  EXPECT_TRUE(time_.IsOn());
  EXPECT_EQ(begun_, 1);
  EXPECT_EQ(ended_, 0);
}

TEST_F(DegradedTimeTest, DoesNotBeginMoreThanOnceASecondIfTheStoreFlaps) {
  for (int i = 0; i < 600; ++i) {  // A minute in which it fails for 100 ms every 1.2 s.
    now_ += milliseconds(100);
    i % 12 == 0 ? Fail() : Succeed();
  }
  EXPECT_GT(begun_, 10);
  EXPECT_LE(begun_, 60);
  EXPECT_LE(begun_ - ended_, 1);
}

TEST_F(DegradedTimeTest, EndsEvenIfTheClockWasSetBack) {
  Fail();
  now_ -= seconds(50);
  Succeed();
  EXPECT_EQ(time_.Lasted(now_), Duration(0));
  now_ += seconds(1);
  Succeed();
  EXPECT_FALSE(time_.IsOn());
}

TEST_F(DegradedTimeTest, DoesNotEndIfSomethingFailsJustThen) {
  Fail();
  now_ += seconds(2);
  EXPECT_TRUE(time_.NoteSuccess(now_));
  time_.NoteFailure(now_);
  EXPECT_FALSE(time_.End(now_).has_value());
  EXPECT_TRUE(time_.IsOn());
}

}  // namespace
}  // namespace weir
