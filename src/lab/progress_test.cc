#include "lab/progress.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class Watched : public testing::Test {
 protected:
  // What was written since this was last asked.
  std::string Written() {
    const std::string text = out_.str();
    out_.str("");
    return text;
  }

  ManualClock clock_;
  std::ostringstream out_;
  Progress progress_{{.out = &out_, .what = "lines", .clock = &clock_}};
};

TEST_F(Watched, SaysNothingOfShortWork) {
  progress_.SetTotal(100);
  clock_.Advance(milliseconds(499));
  progress_.Advance(50, 50);
  EXPECT_EQ(Written(), "");
  progress_.Clear();
  EXPECT_EQ(Written(), "");
}

TEST_F(Watched, SaysHowMuchHowFastAndHowLongStill) {
  progress_.SetTotal(1000);
  clock_.Advance(seconds(10));
  progress_.Advance(40'000, 250);
  const std::string line = Written();
  EXPECT_THAT(line, HasSubstr("█████"));
  EXPECT_THAT(line, HasSubstr(" 25 %"));
  EXPECT_THAT(line, HasSubstr("40,000 lines, "));
  EXPECT_THAT(line, HasSubstr("4,000/s"));
  EXPECT_THAT(line, HasSubstr("30 s left"));
  EXPECT_EQ(line.find('\n'), std::string::npos) << "the next one must be written over it";
}

TEST_F(Watched, WritesAFewTimesASecondHoweverOftenItIsTold) {
  clock_.Advance(seconds(1));
  progress_.Advance(1, 1);
  EXPECT_NE(Written(), "");
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(milliseconds(1));
    progress_.Advance(1, 1);
  }
  EXPECT_EQ(Written(), "");
  clock_.Advance(milliseconds(100));
  progress_.Advance(1, 1);
  EXPECT_THAT(Written(), HasSubstr("102 lines"));
}

TEST_F(Watched, SaysNothingOfAnEndThatNobodyKnows) {
  clock_.Advance(seconds(2));
  progress_.Advance(10, 10);
  const std::string line = Written();
  EXPECT_THAT(line, HasSubstr("10 lines, 5/s"));
  EXPECT_EQ(line.find("left"), std::string::npos);
  EXPECT_EQ(line.find('%'), std::string::npos);
}

TEST_F(Watched, TakesItsLineAwayOnce) {
  clock_.Advance(seconds(1));
  progress_.Advance(1, 1);
  Written();
  progress_.Clear();
  EXPECT_EQ(Written(), "\r\x1b[2K");
  progress_.Clear();
  EXPECT_EQ(Written(), "");
}

TEST(Progress, IsQuietWhereNobodyWatches) {
  ManualClock clock;
  Progress progress({.clock = &clock});
  clock.Advance(seconds(10));
  progress.Advance(1, 1);
  progress.Clear();
}

}  // namespace
}  // namespace weir::lab
