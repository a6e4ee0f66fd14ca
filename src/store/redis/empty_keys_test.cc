#include "store/redis/empty_keys.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime kStart{seconds(1'000)};

Decision Denied(Duration retry_after) {
  return {.allowed = false,
          .reason = Reason::kLimited,
          .limit = 10,
          .retry_after = retry_after,
          .reset_after = retry_after * 10};
}

TEST(EmptyKeys, AreDeniedUntilTheirRetryAfter) {
  EmptyKeys keys;
  const Charge charge{.rule = "r", .hash = 7, .cost = 2};
  EXPECT_EQ(keys.Find(charge, kStart), nullptr);
  keys.Add(charge, Denied(seconds(1)), kStart);
  const EmptyKeys::Known* const found = keys.Find(charge, kStart + milliseconds(400));
  ASSERT_NE(found, nullptr);
  const Decision* const known = &found->decision;
  EXPECT_FALSE(known->allowed);
  EXPECT_EQ(known->rule, "r");
  EXPECT_EQ(known->retry_after, milliseconds(600));
  EXPECT_EQ(known->reset_after, milliseconds(9'600));
  EXPECT_EQ(keys.Find(charge, kStart + seconds(1)), nullptr);
}

TEST(EmptyKeys, SayNothingToThoseWhoWantLessOrWait) {
  EmptyKeys keys;
  keys.Add({.hash = 7, .cost = 5}, Denied(seconds(1)), kStart);
  EXPECT_EQ(keys.Find({.hash = 7, .cost = 4}, kStart), nullptr);
  EXPECT_EQ(keys.Find({.hash = 7, .cost = 5, .wait = seconds(1)}, kStart), nullptr);
  EXPECT_NE(keys.Find({.hash = 7, .cost = 6}, kStart), nullptr);
}

TEST(EmptyKeys, AreForgottenWhenSomethingIsGivenBack) {
  EmptyKeys keys;
  const Charge charge{.hash = 7};
  keys.Add(charge, Denied(seconds(1)), kStart);
  keys.Forget(charge);
  EXPECT_EQ(keys.Find(charge, kStart), nullptr);
}

TEST(EmptyKeys, ThatNeverFitAreNotRemembered) {
  EmptyKeys keys;
  keys.Add({.hash = 7}, Denied(kNever), kStart);
  keys.Add({.hash = 8}, Denied(Duration(0)), kStart);
  EXPECT_EQ(keys.size(), 0U);
}

TEST(EmptyKeys, AreBounded) {
  EmptyKeys keys;
  for (std::uint64_t i = 1; i <= 3 * EmptyKeys::kMost; ++i) {
    keys.Add({.hash = i}, Denied(seconds(1)), kStart);
  }
  EXPECT_EQ(keys.size(), EmptyKeys::kMost);
  keys.Add({.hash = 1'000'000}, Denied(seconds(1)), kStart + seconds(2));
  EXPECT_EQ(keys.size(), 1U);
}

}  // namespace
}  // namespace weir::redis
