#include "store/redis/empty_keys.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime kStart{seconds(1'000)};

const Limit kTen = *Limit::Make({.count = 10, .period = seconds(1)});

Charge On(std::uint64_t hash, std::int64_t cost = 1, Duration wait = Duration(0)) {
  return {.rule = "r", .hash = hash, .limit = &kTen, .cost = cost, .wait = wait};
}

Decision Denied(Duration retry_after) {
  return {.allowed = false,
          .reason = Reason::kLimited,
          .limit = 10,
          .retry_after = retry_after,
          .reset_after = retry_after == kNever ? kNever : retry_after * 10};
}

TEST(EmptyKeys, AreDeniedUntilTheirRetryAfter) {
  EmptyKeys keys;
  const Charge charge = On(7, 2);
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
  keys.Add(On(7, 5), Denied(seconds(1)), kStart);
  EXPECT_EQ(keys.Find(On(7, 4), kStart), nullptr);
  EXPECT_EQ(keys.Find(On(7, 5, seconds(1)), kStart), nullptr);
  EXPECT_NE(keys.Find(On(7, 6), kStart), nullptr);
}

TEST(EmptyKeys, AreForgottenWhenSomethingIsGivenBack) {
  EmptyKeys keys;
  const Charge charge = On(7);
  keys.Add(charge, Denied(seconds(1)), kStart);
  keys.Forget(charge);
  EXPECT_EQ(keys.Find(charge, kStart), nullptr);
}

TEST(EmptyKeys, ThatNeverFitAreNotRemembered) {
  EmptyKeys keys;
  keys.Add(On(7), Denied(kNever), kStart);
  keys.Add(On(8), Denied(Duration(0)), kStart);
  EXPECT_EQ(keys.size(), 0U);
}

TEST(EmptyKeys, AreAskedAgainSoonWhateverTheyWereTold) {
  EmptyKeys keys;
  keys.Add(On(7), Denied(std::chrono::hours(1)), kStart);
  EXPECT_NE(keys.Find(On(7), kStart + milliseconds(999)), nullptr);
  EXPECT_EQ(keys.Find(On(7), kStart + EmptyKeys::kLongest), nullptr);
}

TEST(EmptyKeys, SayNothingUnderALimitThatHasChanged) {
  const Limit more = *Limit::Make({.count = 20, .period = seconds(1)});
  EmptyKeys keys;
  keys.Add(On(7), Denied(seconds(1)), kStart);
  Charge charge = On(7);
  charge.limit = &more;
  EXPECT_EQ(keys.Find(charge, kStart), nullptr);
}

TEST(EmptyKeys, LeaveOutPlacesWhichComeBackAtAnyTime) {
  const Limit places = *Limit::Make({.algorithm = Algorithm::kConcurrency, .count = 2});
  EmptyKeys keys;
  Charge charge = On(7);
  charge.limit = &places;
  keys.Add(charge, Denied(seconds(30)), kStart);
  EXPECT_EQ(keys.size(), 0U);
}

TEST(EmptyKeys, AreBounded) {
  EmptyKeys keys;
  for (std::uint64_t i = 1; i <= 3 * EmptyKeys::kMost; ++i) {
    keys.Add(On(i), Denied(seconds(1)), kStart);
  }
  EXPECT_EQ(keys.size(), EmptyKeys::kMost);
  keys.Add(On(1'000'000), Denied(seconds(1)), kStart + seconds(2));
  EXPECT_EQ(keys.size(), 1U);
}

}  // namespace
}  // namespace weir::redis
