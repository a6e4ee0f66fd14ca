#include "frontend/limit_cache.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(LimitCache, ReadsATextOnce) {
  LimitCache cache;
  const Limit* const first = cache.Find("100/min burst 50", "").value();
  EXPECT_EQ(first->capacity(), 50);
  EXPECT_EQ(first->algorithm(), Algorithm::kTokenBucket);
  EXPECT_EQ(cache.Find("100/min burst 50", "").value(), first);
}

TEST(LimitCache, TellsTheSameTextUnderAnotherAlgorithmApart) {
  LimitCache cache;
  EXPECT_EQ(cache.Find("5/min", "").value()->algorithm(), Algorithm::kTokenBucket);
  EXPECT_EQ(cache.Find("5/min", "fixed_window").value()->algorithm(), Algorithm::kFixedWindow);
  EXPECT_EQ(cache.Find("5/min", "sliding_log").value()->algorithm(), Algorithm::kSlidingLog);
  EXPECT_EQ(cache.Find("5/min", "").value()->algorithm(), Algorithm::kTokenBucket);
}

TEST(LimitCache, SaysWhatIsWrongWithATextEveryTime) {
  LimitCache cache;
  for (int i = 0; i < 2; ++i) {
    const Result<const Limit*> bad = cache.Find("5 per minute", "");
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(bad.error().message.find("5 per minute"), std::string::npos) << bad.error().message;
    EXPECT_FALSE(cache.Find("5/min", "magic").has_value());
  }
}

TEST(LimitCache, LosesNothingToTextsThatAreWrong) {
  LimitCache cache;
  std::vector<const Limit*> good;
  for (int i = 1; i <= 20; ++i) good.push_back(cache.Find(std::to_string(i) + "/s", "").value());
  // Those that share a place have replaced each other already.
  std::vector<int> kept;
  for (int i = 1; i <= 20; ++i) {
    const std::string text = std::to_string(i) + "/s";
    if (cache.Find(text, "").value() == good[static_cast<std::size_t>(i - 1)]) kept.push_back(i);
  }
  EXPECT_GT(kept.size(), 10U);
  for (int i = 0; i < 5'000; ++i) EXPECT_FALSE(cache.Find("bad" + std::to_string(i), ""));
  for (const int i : kept) {
    EXPECT_EQ(cache.Find(std::to_string(i) + "/s", "").value(),
              good[static_cast<std::size_t>(i - 1)]);
  }
}

TEST(LimitCache, KeepsWhatItFoundGoodForAsManyCallsAsItSays) {
  LimitCache cache;
  std::vector<const Limit*> found;
  for (std::size_t i = 1; i <= 100'000; ++i) {
    const auto count = static_cast<std::int64_t>(i);
    found.push_back(cache.Find({.capacity = count, .count = 1'000, .seconds = 1}).value());
    if (i <= LimitCache::kGoodFor) continue;
    // The sanitizers would notice if it had gone.
    const std::size_t oldest = i - 1 - LimitCache::kGoodFor;
    ASSERT_EQ(found[oldest]->capacity(), static_cast<std::int64_t>(oldest + 1));
  }
}

TEST(LimitCache, FindsLongTextsToo) {
  LimitCache cache;
  const std::string text = "5/min" + std::string(1'000, ' ') + "burst 7";
  EXPECT_EQ(cache.Find(text, "").value()->capacity(), 7);
  EXPECT_EQ(cache.Find(text, "").value()->capacity(), 7);
}

TEST(LimitCache, MakesABucketOnce) {
  LimitCache cache;
  const LimitCache::Bucket bucket{.capacity = 16, .count = 30, .seconds = 60};
  const Limit* const first = cache.Find(bucket).value();
  EXPECT_EQ(first->capacity(), 16);
  EXPECT_EQ(first->spec().count, 30);
  EXPECT_EQ(first->spec().period, std::chrono::minutes(1));
  EXPECT_EQ(cache.Find(bucket).value(), first);
  EXPECT_EQ(cache.Find({.capacity = 17, .count = 30, .seconds = 60}).value()->capacity(), 17);
}

TEST(LimitCache, RefusesBucketsThatNoLimitCanBe) {
  LimitCache cache;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<LimitCache::Bucket> bad = {
      {.capacity = 0, .count = 1, .seconds = 1},     {.capacity = -1, .count = 1, .seconds = 1},
      {.capacity = 1, .count = 0, .seconds = 1},     {.capacity = 1, .count = 1, .seconds = 0},
      {.capacity = 0, .count = 0, .seconds = 0},     {.capacity = kMost, .count = 1, .seconds = 1},
      {.capacity = 1, .count = kMost, .seconds = 1}, {.capacity = 1, .count = 1, .seconds = kMost},
      {.capacity = 1, .count = 1, .seconds = kLeast}};
  for (const LimitCache::Bucket& bucket : bad) {
    EXPECT_FALSE(cache.Find(bucket).has_value())
        << bucket.capacity << " " << bucket.count << " " << bucket.seconds;
  }
}

TEST(LimitCache, OfASharedStoreHasWholeNanosecondsAndItsBounds) {
  LimitCache shared(true);
  const Result<const Limit*> thirds = shared.Find("3/s", "");
  ASSERT_TRUE(thirds);
  EXPECT_EQ((*thirds)->emission_interval() % 16, 0);
  EXPECT_FALSE(shared.Find("5000000/s", ""));
  EXPECT_FALSE(shared.Find({.capacity = 1, .count = 5'000'000, .seconds = 1}));
  LimitCache alone;
  EXPECT_NE((*alone.Find("3/s", ""))->emission_interval() % 16, 0);
  EXPECT_TRUE(alone.Find("5000000/s", ""));
}

}  // namespace
}  // namespace weir
