#include "sim/fixed_windows.h"

#include <gtest/gtest.h>

namespace weir::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Limit& FivePerSecond() {
  static const Limit limit = Limit::Parse("5/s", {.algorithm = Algorithm::kFixedWindow}).value();
  return limit;
}

// So many were let through at a time, in a window, each within a millisecond.
void LetThrough(std::vector<Admission>& admissions, std::vector<Touch>& touches, Duration at,
                std::int64_t window, int number) {
  for (int i = 0; i < number; ++i) {
    const Duration answered = at + milliseconds(1);
    admissions.push_back({.at = at, .asked = at, .answered = answered, .window = window});
    touches.push_back({.asked = at, .answered = answered, .window = window});
  }
}

struct Story {
  std::vector<Admission> admissions{};
  std::vector<Touch> touches{};
  PromiseTerms terms{};

  void Then(Duration at, std::int64_t window, int number) {
    LetThrough(admissions, touches, at, window, number);
  }
  bool HasFullWindow() const {
    return FindFullWindow(FivePerSecond(), admissions, terms).has_value();
  }
  bool HasGain() const {
    return FindGainByStepBack(FivePerSecond(), admissions, touches, terms).has_value();
  }
};

TEST(FixedWindows, HoldWhatTheirLimitSays) {
  Story story;
  story.Then(seconds(1), 1, 5);
  story.Then(seconds(2), 2, 5);
  EXPECT_FALSE(story.HasFullWindow());
  story.Then(milliseconds(2500), 2, 1);
  EXPECT_TRUE(story.HasFullWindow());
}

TEST(FixedWindows, MayHoldMoreWhereSomethingWasForgottenOrGivenBack) {
  Story story;
  story.Then(seconds(1), 1, 7);
  EXPECT_TRUE(story.HasFullWindow());
  story.terms.given_back = {{.begins = seconds(1), .ends = seconds(2), .units = 2}};
  EXPECT_FALSE(story.HasFullWindow());
  story.terms.given_back.clear();
  story.terms.lapses = {{.begins = seconds(1), .ends = seconds(2)}};
  EXPECT_FALSE(story.HasFullWindow());
}

TEST(FixedWindows, AreLookedAtByThemselvesOnBothSidesOfAStepBack) {
  Story story;
  story.terms.steps_back = {seconds(2)};
  story.Then(seconds(1), 1, 5);
  story.Then(seconds(3), 1, 5);  // The same window again.
  EXPECT_FALSE(story.HasFullWindow());
  story.Then(seconds(4), 1, 1);
  EXPECT_TRUE(story.HasFullWindow());
}

TEST(StepsBack, MustNotMakeACountGoAway) {
  Story story;
  story.terms.steps_back = {seconds(2)};
  story.Then(seconds(1), 7, 4);
  story.Then(seconds(3), 5, 1);
  EXPECT_FALSE(story.HasGain()) << "what was counted goes on to count";
  story.Then(milliseconds(3001), 5, 1);
  EXPECT_TRUE(story.HasGain());
}

TEST(StepsBack, DoNotMatterToALaterWindow) {
  Story story;
  story.terms.steps_back = {seconds(2), seconds(10)};
  story.Then(seconds(1), 7, 5);
  story.Then(seconds(3), 8, 5);
  EXPECT_FALSE(story.HasGain());
}

TEST(StepsBack, ProveNothingWhereSomebodyMayHaveAskedInBetween) {
  const auto gains_with = [](const Touch& touch) {
    Story story;
    story.terms.steps_back = {seconds(2)};
    story.Then(seconds(1), 7, 5);
    story.Then(seconds(3), 5, 5);
    story.touches.push_back(touch);
    return story.HasGain();
  };
  EXPECT_TRUE(gains_with({.asked = milliseconds(500), .answered = milliseconds(501), .window = 7}));
  // Under way when the clock was moved,
  EXPECT_FALSE(gains_with({.asked = milliseconds(1999), .answered = milliseconds(2001)}));
  // a later window had begun before,
  EXPECT_FALSE(
      gains_with({.asked = milliseconds(1500), .answered = milliseconds(1501), .window = 8}));
  // or nobody knows what became of it: before, or after.
  EXPECT_FALSE(gains_with({.asked = milliseconds(1500), .answered = milliseconds(1501)}));
  EXPECT_FALSE(gains_with({.asked = milliseconds(2500), .answered = milliseconds(2600)}));
}

}  // namespace
}  // namespace weir::sim
