#include "frontend/rate_limit_headers.h"

#include <array>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

std::string Headers(const Decision& decision, std::span<const RuleDecision> each,
                    const Settings& settings = {}) {
  std::string room(RateLimitHeadersRoom(each), '.');
  RoomyText text(room.data());
  PolicyTexts texts;
  PutRateLimitHeaders(text, decision, each, settings, FieldsOf(decision, WallTime{}), texts);
  EXPECT_LE(static_cast<std::size_t>(text.end() - room.data()), room.size());
  room.resize(static_cast<std::size_t>(text.end() - room.data()));
  return room;
}

std::string DenialHeaders(const Decision& decision) {
  std::string room(kDenialHeadersRoom, '.');
  RoomyText text(room.data());
  PutDenialHeaders(text, decision, std::numeric_limits<std::uint64_t>::max());
  EXPECT_LE(static_cast<std::size_t>(text.end() - room.data()), room.size());
  room.resize(static_cast<std::size_t>(text.end() - room.data()));
  return room;
}

TEST(RateLimitHeaders, TellOfEveryRuleThatHadASay) {
  const Decision decision{.allowed = true,
                          .reason = Reason::kOk,
                          .rule = "b",
                          .limit = 10,
                          .remaining = 3,
                          .reset_after = std::chrono::milliseconds(1500)};
  const std::array<RuleDecision, 4> each = {{
      {.decision = {.rule = "a", .limit = 5}, .window = std::chrono::milliseconds(59'001)},
      {.decision = {.rule = "hidden", .limit = 5}, .shadow = true, .window = std::chrono::hours(1)},
      {.decision = decision, .window = std::chrono::minutes(1)},
      {.decision = {.rule = "c", .limit = 2}},
  }};
  EXPECT_EQ(Headers(decision, each, {.x_ratelimit_headers = false}),
            "RateLimit-Policy: \"a\";q=5;w=60, \"b\";q=10;w=60, \"c\";q=2\r\n"
            "RateLimit: \"b\";r=3;t=2\r\n");
}

TEST(RateLimitHeaders, TellOfALimitWithoutANameUnderLoad) {
  const Decision decision{.reason = Reason::kOverload, .limit = 5};
  const RuleDecision told{.decision = decision, .window = std::chrono::minutes(1)};
  EXPECT_EQ(Headers(decision, {&told, 1}, {.x_ratelimit_headers = false}),
            "RateLimit-Policy: \"default\";q=5;w=60\r\nRateLimit: \"default\";r=0;t=0\r\n");
  EXPECT_EQ(Headers(decision, {}), "");
}

TEST(RateLimitHeaders, HaveRoomForTheLargestNumbersAndNames) {
  const std::string name(64, 'n');
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Decision decision{.reason = Reason::kLimited,
                          .rule = name,
                          .limit = kMost,
                          .remaining = kMost,
                          .retry_after = Duration(kMost - 1),
                          .reset_after = Duration::max()};
  std::array<RuleDecision, 32> each;
  each.fill({.decision = decision, .window = Duration::max()});
  const std::string headers = Headers(decision, each);
  // Structured fields end at 15 digits.
  EXPECT_NE(headers.find(";q=999999999999999;w="), std::string::npos);
  EXPECT_NE(headers.find(";r=999999999999999;t="), std::string::npos);
  EXPECT_EQ(DenialHeaders(decision), "Cache-Control: no-store\r\n");
}

TEST(RetryAfter, IsAbsentWhereWaitingDoesNotHelp) {
  const std::string none = "Cache-Control: no-store\r\n";
  EXPECT_EQ(DenialHeaders({.reason = Reason::kNeverFits, .retry_after = kNever}), none);
  EXPECT_EQ(DenialHeaders({.reason = Reason::kDenyList, .retry_after = kNever}), none);
  EXPECT_EQ(DenialHeaders({.reason = Reason::kOverload, .retry_after = kNever}), none);
  EXPECT_EQ(DenialHeaders({.reason = Reason::kOverload}), "Retry-After: 1\r\n" + none);
}

RC_GTEST_PROP(RetryAfter, IsNeverEarlyAndAtMostATenthLate, (std::uint64_t random)) {
  const Duration wait(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000'000));
  const std::int64_t seconds = RetryAfterSeconds(wait, random);
  RC_ASSERT(seconds >= 1);
  RC_ASSERT(std::chrono::seconds(seconds) >= wait);
  RC_ASSERT(seconds <= RoundUpTo<std::chrono::seconds>(wait + wait / 10) ||
            (seconds == 1 && wait.count() == 0));
}

}  // namespace
}  // namespace weir
