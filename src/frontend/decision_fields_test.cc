#include "frontend/decision_fields.h"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{std::chrono::seconds(1'717'920'000)};

TEST(DecisionFields, RoundWaitsUpToWholeSecondsAndMilliseconds) {
  const DecisionFields fields = FieldsOf(
      {.retry_after = 1s + 1ns, .reset_after = 59s + 999'000'001ns, .delay = 2ms + 1ns}, kNow);
  EXPECT_EQ(fields.retry_after, 2);
  EXPECT_EQ(fields.retry_after_ms, 1'001);
  EXPECT_EQ(fields.reset_after, 60);
  EXPECT_EQ(fields.reset_after_ms, 60'000);
  EXPECT_EQ(fields.reset_at, 1'717'920'060);
  EXPECT_EQ(fields.delay_ms, 3);
}

TEST(DecisionFields, LeaveWholeNumbersAsTheyAre) {
  const DecisionFields fields = FieldsOf({.retry_after = 12s, .reset_after = 600ms}, kNow);
  EXPECT_EQ(fields.retry_after, 12);
  EXPECT_EQ(fields.retry_after_ms, 12'000);
  EXPECT_EQ(fields.reset_after, 1);
  EXPECT_EQ(fields.reset_after_ms, 600);
}

TEST(DecisionFields, SayTheSecondInWhichTheKeyIsFreshNotTheOneBefore) {
  EXPECT_EQ(FieldsOf({.reset_after = 400ms}, kNow + 500ms).reset_at, 1'717'920'001);
  EXPECT_EQ(FieldsOf({.reset_after = 600ms}, kNow + 500ms).reset_at, 1'717'920'002);
  EXPECT_EQ(FieldsOf({.reset_after = 0ms}, kNow).reset_at, 1'717'920'000);
}

TEST(DecisionFields, HaveNoRetryWhereWaitingNeverHelps) {
  const DecisionFields fields = FieldsOf({.retry_after = kNever}, kNow);
  EXPECT_FALSE(fields.retry_after.has_value());
  EXPECT_FALSE(fields.retry_after_ms.has_value());
}

TEST(DecisionFields, DoNotOverflowAtTheEndOfTime) {
  const DecisionFields fields =
      FieldsOf({.retry_after = kNever - 1ns, .reset_after = kNever, .delay = kNever}, kNow);
  EXPECT_EQ(fields.retry_after, 9'223'372'037);
  EXPECT_EQ(fields.retry_after_ms, 9'223'372'036'855);
  EXPECT_EQ(fields.reset_after, 9'223'372'037);
  EXPECT_EQ(fields.reset_at, 9'223'372'037);
  EXPECT_EQ(fields.delay_ms, 9'223'372'036'855);
  EXPECT_EQ(FieldsOf({.reset_after = 1s}, WallTime::max()).reset_at, 9'223'372'037);
  EXPECT_EQ(FieldsOf({.reset_after = 1s}, WallTime::min()).reset_at, -9'223'372'035);
}

TEST(DecisionFields, TakeNegativeWaitsForNone) {
  const DecisionFields fields = FieldsOf(
      {.retry_after = -5s, .reset_after = Duration::min(), .delay = Duration::min()}, kNow);
  EXPECT_EQ(fields.retry_after, 0);
  EXPECT_EQ(fields.reset_after_ms, 0);
  EXPECT_EQ(fields.reset_at, 1'717'920'000);
  EXPECT_EQ(fields.delay_ms, 0);
}

// Seconds are found from milliseconds: rounding twice must not lead further than rounding once.
RC_GTEST_PROP(DecisionFields, RoundEachUnitAsIfByItself, ()) {
  const Duration wait(*rc::gen::inRange<std::int64_t>(0, 3'000'000'000) *
                      *rc::gen::element<std::int64_t>(1, 1'000, 1'000'000'000));
  for (const Duration near : {wait, wait + 1ns, wait / 1'000'000 * 1'000'000}) {
    const DecisionFields fields = FieldsOf({.retry_after = near, .reset_after = near}, kNow);
    RC_ASSERT(fields.retry_after == RoundUpTo<std::chrono::seconds>(near));
    RC_ASSERT(fields.retry_after_ms == RoundUpTo<std::chrono::milliseconds>(near));
    RC_ASSERT(fields.reset_after == RoundUpTo<std::chrono::seconds>(near));
    RC_ASSERT(fields.reset_after_ms == RoundUpTo<std::chrono::milliseconds>(near));
    RC_ASSERT(fields.reset_at == RoundUpTo<std::chrono::seconds>(kNow.time_since_epoch() + near));
  }
}

}  // namespace
}  // namespace weir
