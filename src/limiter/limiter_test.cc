// The embedded API: making a limiter, asking it, layers, and what it refuses.
#include <weir/limiter.h>

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/memory/store_under_test.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

Limiter Made(Result<Limiter> limiter) {
  EXPECT_TRUE(limiter) << limiter.error().message;
  return *std::move(limiter);
}

// That nothing came of it but an error that names the field and what is allowed.
template <typename T>
void ExpectInvalid(const Result<T>& result, const std::string& field, const std::string& allowed) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr(field + ":"), HasSubstr(allowed)));
}

// --- Every verb on every algorithm ---

class EveryLimiter : public testing::TestWithParam<AlgorithmCase> {
 protected:
  std::int64_t Exhaust(std::string_view key) {
    std::int64_t admitted = 0;
    while (admitted < 100 && limiter_.Check(key).allowed) ++admitted;
    return admitted;
  }
  std::int64_t Remaining(std::string_view key) { return limiter_.Peek(key)->remaining; }

  ManualClock clock_;
  Limiter limiter_ = Made(Limiter::Make(GetParam().limit, {.clock = &clock_}));
};

TEST_P(EveryLimiter, AdmitsWhatTheLimitHolds) {
  EXPECT_EQ(Exhaust("ann"), GetParam().at_once);
  const Decision denied = limiter_.Check("ann");
  EXPECT_EQ(denied.reason, Reason::kLimited);
  EXPECT_EQ(denied.rule, "");
  clock_.Advance(denied.retry_after);
  EXPECT_TRUE(limiter_.Check("ann").allowed);
  EXPECT_EQ(Exhaust("bob"), GetParam().at_once);
}

TEST_P(EveryLimiter, AnswersAlikeInEveryForm) {
  Limiter twin = Made(Limiter::Make(GetParam().limit, {.clock = &clock_}));
  for (int i = 0; i < 15; ++i) {
    const Decision plain = limiter_.Check("ann");
    const Result<Decision> asked =
        i % 2 == 0 ? twin.Check(Keys("ann"), Ask{}) : twin.Check({Key("ann")});
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->allowed, plain.allowed);
    EXPECT_EQ(asked->remaining, plain.remaining);
    EXPECT_EQ(asked->retry_after, plain.retry_after);
    EXPECT_EQ(asked->delay, plain.delay);
    clock_.Advance(std::chrono::milliseconds(300));
  }
}

TEST_P(EveryLimiter, TakesTheTimeItIsGivenForTheClocks) {
  const Now now = clock_.Read();
  Exhaust("ann");
  const Now later{.steady = now.steady + hours(1), .wall = now.wall + hours(1)};
  EXPECT_TRUE(limiter_.Check("ann", later).allowed);
  EXPECT_TRUE(limiter_.Check("ann", Ask{.cost = 2, .now = later})->allowed);
}

TEST_P(EveryLimiter, ManagesKeys) {
  limiter_.Check("ann", Ask{.cost = 7}).value();
  EXPECT_EQ(Remaining("ann"), GetParam().at_once - 7);
  EXPECT_TRUE(limiter_.Refund("ann", {.cost = 2})->allowed);
  EXPECT_EQ(Remaining("ann"), GetParam().at_once - 5);
  EXPECT_TRUE(limiter_.Penalize("ann", {.cost = 4})->allowed);
  EXPECT_EQ(Remaining("ann"), GetParam().at_once - 9);
  EXPECT_TRUE(limiter_.Reset("ann")->allowed);
  EXPECT_EQ(Remaining("ann"), 10);
}

TEST_P(EveryLimiter, AsksForNothingWithoutTakingAnything) {
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(limiter_.Check("ann", Ask{.cost = 0})->allowed);
  EXPECT_EQ(Remaining("ann"), 10);
  EXPECT_EQ(limiter_.Stats().entries, 0U);
  Exhaust("ann");
  EXPECT_FALSE(limiter_.Check("ann", Ask{.cost = 0})->allowed);
}

TEST_P(EveryLimiter, ChecksABatchAsOneByOne) {
  Limiter twin = Made(Limiter::Make(GetParam().limit, {.clock = &clock_}));
  std::vector<std::string> keys;
  std::vector<BatchItem> items;
  for (int i = 0; i < 100; ++i) keys.push_back("key " + std::to_string(i % 9));
  for (const std::string& key : keys) items.push_back({.key = key, .cost = key.back() % 3});
  std::vector<Decision> decisions(items.size() + 1);
  ASSERT_TRUE(limiter_.CheckBatch(items, decisions));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Decision expected = *twin.Check(items[i].key, Ask{.cost = items[i].cost});
    EXPECT_EQ(decisions[i].allowed, expected.allowed) << i;
    EXPECT_EQ(decisions[i].remaining, expected.remaining) << i;
    EXPECT_EQ(decisions[i].retry_after, expected.retry_after) << i;
    EXPECT_EQ(decisions[i].cost, expected.cost) << i;
  }
  EXPECT_EQ(decisions.back().reason, Reason::kNoRule);  // One too many is left alone.
}

TEST_P(EveryLimiter, RefusesCostsOutOfRangeAndChangesNothing) {
  for (const std::int64_t cost : {std::int64_t{-1}, kMaxCount + 1}) {
    const std::string allowed = "0 to 1000000000000000";
    const Ask ask{.cost = cost};
    ExpectInvalid(limiter_.Check("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Peek("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Refund("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Penalize("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Reset("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Reserve("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Acquire("ann", ask), "cost", allowed);
    ExpectInvalid(limiter_.Wait("ann", seconds(1), ask), "cost", allowed);
    const std::array items{BatchItem{.key = "ann"}, BatchItem{.key = "ann", .cost = cost}};
    std::array<Decision, 2> decisions;
    ExpectInvalid(limiter_.CheckBatch(items, decisions), "items[1].cost", allowed);
  }
  EXPECT_EQ(Remaining("ann"), 10);
  EXPECT_EQ(limiter_.Stats().entries, 0U);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryLimiter, testing::ValuesIn(EveryAlgorithm()),
                         NameOfAlgorithm());

// --- Making one ---

TEST(MakeLimiter, RefusesALimitThatIsNone) {
  EXPECT_FALSE(Limiter::Make("100 per minute"));
  EXPECT_FALSE(Limiter::Make("0/s"));
}

TEST(MakeLimiter, RefusesACapOutOfRange) {
  ExpectInvalid(Limiter::Make("1/s", {.memory_cap = 1'000}), "memory_cap", "2097152 to ");
  ExpectInvalid(Limiter::Make("1/s", {.memory_cap = ~std::size_t{0}}), "memory_cap", "2097152 to ");
  ExpectInvalid(Limiter::Make("1/s", {.max_reservations = ~std::size_t{0}}), "max_reservations",
                "0 to ");
  EXPECT_TRUE(Limiter::Make("1/s", {.memory_cap = std::size_t{2} << 20}));
}

TEST(MakeLimiter, TakesAnyNumberOfExpectedKeysAsAWish) {
  EXPECT_TRUE(Limiter::Make("1/s", {.expected_keys = ~std::size_t{0}}));
}

TEST(MakeLimiter, RefusesNoLayerAndMoreThanSixtyFour) {
  ExpectInvalid(Limiter::Make(std::vector<Layer>{}), "layers", "1 to 64");
  std::vector<Layer> layers;
  for (int i = 0; i < 65; ++i) layers.push_back({std::to_string(i), LimitOf("10/s")});
  ExpectInvalid(Limiter::Make(layers), "layers", "1 to 64");
  layers.pop_back();
  ManualClock clock;
  Limiter limiter = Made(Limiter::Make(layers, {.clock = &clock}));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limiter.Check("ann").allowed);
  EXPECT_FALSE(limiter.Check("ann").allowed);
}

TEST(MakeLimiter, RefusesTwoLayersOfOneName) {
  ExpectInvalid(Limiter::Make({{"user", LimitOf("10/s")}, {"user", LimitOf("20/s")}}), "layers",
                "\"user\"");
}

TEST(MakeLimiter, HashesHostileKeysAsWell) {
  ManualClock clock;
  Limiter limiter = Made(Limiter::Make("2/s", {.clock = &clock, .hostile_keys = true}));
  EXPECT_TRUE(limiter.Check("ann").allowed);
  EXPECT_TRUE(limiter.Check("ann").allowed);
  EXPECT_FALSE(limiter.Check("ann").allowed);
  EXPECT_TRUE(limiter.Check("bob").allowed);
}

TEST(MakeLimiter, UsesTheMachinesClockUnlessTold) {
  Limiter limiter = Made(Limiter::Make("1/h"));
  EXPECT_TRUE(limiter.Check("ann").allowed);
  EXPECT_FALSE(limiter.Check("ann").allowed);
}

TEST(MovedLimiter, GoesOnWithItsKeys) {
  ManualClock clock;
  Limiter first = Made(Limiter::Make("1/h", {.clock = &clock}));
  first.Check("ann");
  Limiter second = std::move(first);
  EXPECT_FALSE(second.Check("ann").allowed);
  Limiter third = Made(Limiter::Make("5/h", {.clock = &clock}));
  third = std::move(second);
  EXPECT_FALSE(third.Check("ann").allowed);
}

TEST(UnlimitedLimiter, LetsAllThroughAndDenyNone) {
  ManualClock clock;
  Limiter open = Made(Limiter::Make("unlimited", {.clock = &clock}));
  Limiter closed = Made(Limiter::Make("deny", {.clock = &clock}));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(open.Check("ann").allowed);
  const Decision denied = closed.Check("ann");
  EXPECT_EQ(denied.reason, Reason::kDenyList);
  EXPECT_EQ(denied.retry_after, kNever);
  EXPECT_FALSE(closed.Wait("ann", seconds(5))->allowed);
  EXPECT_TRUE(open.Wait("ann", seconds(5))->allowed);
  EXPECT_EQ(open.Stats().entries + closed.Stats().entries, 0U);
}

// --- Layers ---

class Layered : public testing::Test {
 protected:
  std::int64_t Remaining(std::initializer_list<Key> keys) { return limiter_.Peek(keys)->remaining; }

  ManualClock clock_;
  Limiter limiter_ = Made(Limiter::Make(
      {{"address", LimitOf("20/10s")},
       {"user", LimitOf("5/10s", {.algorithm = Algorithm::kSlidingLog})},
       {"trial", LimitOf("3/10s", {.algorithm = Algorithm::kFixedWindow}), /*shadow=*/true}},
      {.clock = &clock_}));
};

TEST_F(Layered, AreDecidedAllOrNothing) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter_.Check({"10.0.0.1", "ann", "x"})->allowed);
  const Decision denied = *limiter_.Check({"10.0.0.1", "ann", "x"});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.rule, "user");
  EXPECT_EQ(denied.limit, 5);
  EXPECT_EQ(Remaining({"10.0.0.1", kSkip, kSkip}), 15);
}

TEST_F(Layered, LeaveAbsentKeysAbsentWhenTheyDeny) {
  for (int i = 0; i < 5; ++i) limiter_.Check({kSkip, "ann", kSkip}).value();
  const std::size_t entries = limiter_.Stats().entries;
  EXPECT_FALSE(limiter_.Check({"10.0.0.9", "ann", "y"})->allowed);
  EXPECT_EQ(limiter_.Stats().entries, entries);
  EXPECT_EQ(Remaining({"10.0.0.9", kSkip, kSkip}), 20);
}

TEST_F(Layered, NameTheOneNearestToExhaustion) {
  EXPECT_EQ(limiter_.Check({"10.0.0.1", "ann", kSkip})->rule, "user");
  for (int i = 0; i < 16; ++i) limiter_.Check({"10.0.0.1", kSkip, kSkip}).value();
  EXPECT_EQ(limiter_.Check({"10.0.0.1", "ann", kSkip})->rule, "address");
}

TEST_F(Layered, NameTheDenyingOneWithTheLongestWait) {
  limiter_.Penalize({"10.0.0.1", kSkip, kSkip}, {.cost = 40}).value();
  limiter_.Penalize({kSkip, "ann", kSkip}, {.cost = 5}).value();
  EXPECT_EQ(limiter_.Check({"10.0.0.1", "ann", kSkip})->rule, "address");
  limiter_.Refund({"10.0.0.1", kSkip, kSkip}, {.cost = 20}).value();
  EXPECT_EQ(limiter_.Check({"10.0.0.1", "ann", kSkip})->rule, "user");
}

TEST_F(Layered, MayBeSkippedOneByOneOrAltogether) {
  EXPECT_EQ(limiter_.Check({kSkip, "ann", kSkip})->rule, "user");
  const Decision nothing = *limiter_.Check({kSkip, kSkip, kSkip});
  EXPECT_TRUE(nothing.allowed);
  EXPECT_EQ(nothing.reason, Reason::kNoRule);
  EXPECT_EQ(Remaining({kSkip, "ann", kSkip}), 4);
}

TEST_F(Layered, GiveOneKeyToAllOfThem) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter_.Check("ann").allowed);
  EXPECT_FALSE(limiter_.Check("ann").allowed);
  EXPECT_FALSE(limiter_.Check({"other", "ann", kSkip})->allowed);
}

TEST_F(Layered, NeedOneKeyForEach) {
  const auto expect_error = [](const auto& result, const char* given) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message,
                AllOf(HasSubstr("keys: "), HasSubstr(given), HasSubstr("each of the 3 layers")));
  };
  expect_error(limiter_.Check({"10.0.0.1", "ann"}), "2 given");
  expect_error(limiter_.Peek({"a", "b", "c", "d"}), "4 given");
  expect_error(limiter_.Reserve(std::span<const Key>()), "0 given");
  expect_error(limiter_.Wait({"10.0.0.1"}, seconds(1)), "1 given");
  EXPECT_EQ(limiter_.Stats().entries, 0U);
}

TEST_F(Layered, CountShadowsButNeverStopForThem) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter_.Check({kSkip, kSkip, "x"})->allowed);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter_.Check({kSkip, "ann", "y"})->allowed);
  EXPECT_EQ(limiter_.Check({kSkip, kSkip, "x"})->reason, Reason::kNoRule);
  EXPECT_EQ(limiter_.Stats().shadow_denied, 5U);  // Three pass of the six, and of the five.
  EXPECT_TRUE(limiter_.Peek({kSkip, kSkip, "x"})->allowed);
  EXPECT_EQ(limiter_.Stats().shadow_denied, 5U);
}

TEST_F(Layered, CheckABatchAsOneByOne) {
  const std::vector<BatchItem> items(7, BatchItem{.key = "ann"});
  std::vector<Decision> decisions(7);
  ASSERT_TRUE(limiter_.CheckBatch(items, decisions));
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(decisions[i].allowed, i < 5);
}

TEST_F(Layered, KeepTheSameKeyApart) {
  Limiter limiter = Made(
      Limiter::Make({{"one", LimitOf("2/10s")}, {"other", LimitOf("2/10s")}}, {.clock = &clock_}));
  EXPECT_TRUE(limiter.Check({"ann", kSkip})->allowed);
  EXPECT_TRUE(limiter.Check({"ann", kSkip})->allowed);
  EXPECT_FALSE(limiter.Check({"ann", kSkip})->allowed);
  EXPECT_TRUE(limiter.Check({kSkip, "ann"})->allowed);
}

// Each of these has been, or could be, taken for another: two texts for the ends of one, braces for
// a time.
TEST_F(Layered, UnderstandEveryFormOfACheck) {
  const Now now = clock_.Read();
  const std::string user = "ann";
  static_assert(std::is_same_v<decltype(limiter_.Check({"a", "b"}, now)), Result<Decision>>);
  static_assert(std::is_same_v<decltype(limiter_.Check({"a"}, now)), Result<Decision>>);
  static_assert(std::is_same_v<decltype(limiter_.Check("a", now)), Decision>);
  static_assert(std::is_same_v<decltype(limiter_.Check(user, now)), Decision>);
  static_assert(std::is_same_v<decltype(limiter_.Check("a", {})), Result<Decision>>);

  Limiter pair = Made(
      Limiter::Make({{"one", LimitOf("9/10s")}, {"other", LimitOf("9/10s")}}, {.clock = &clock_}));
  EXPECT_TRUE(pair.Check({"a", "b"}, now)->allowed);
  EXPECT_TRUE(pair.Check({"a", "b"}, clock_.Read())->allowed);
  EXPECT_TRUE(pair.Check({"a", "b"}, {})->allowed);
  EXPECT_TRUE(pair.Check({"a", "b"}, {.cost = 1})->allowed);
  EXPECT_TRUE(pair.Check({"a", user}, now)->allowed);
  EXPECT_TRUE(pair.Check({"a", kSkip}, now)->allowed);
  EXPECT_TRUE(pair.Check(Keys({"a", "b"}), {})->allowed);
  EXPECT_TRUE(pair.Check({"a", "b"})->allowed);
  EXPECT_EQ(pair.Peek({"a", "b"})->remaining, 1);
  EXPECT_EQ(pair.Peek({"a", "b"}, {})->remaining, 1);
  EXPECT_EQ(pair.Peek({kSkip, "b"}, {.now = now})->remaining, 3);
  EXPECT_FALSE(pair.Check({"a"}, now));  // One key for two layers.
  EXPECT_FALSE(pair.Check({}, now));
  EXPECT_FALSE(pair.Check({}));
}

TEST_F(Layered, KeepKeysApartThatReadLikeTheirNames) {
  const std::vector<std::string> names{"one", "other"};
  for (const std::string prefix : {"", "layer ", "layer"}) {
    Limiter limiter = Made(Limiter::Make(
        {{names[0], LimitOf("2/10s")}, {names[1], LimitOf("2/10s")}}, {.clock = &clock_}));
    EXPECT_TRUE(limiter.Check({prefix + names[0], kSkip}, Ask{.cost = 2})->allowed);
    for (const std::string& name : names) {
      EXPECT_TRUE(limiter.Check({kSkip, prefix + name}, Ask{.cost = 2})->allowed) << prefix + name;
    }
  }
}

TEST(SingleShadowLayer, StopsNobody) {
  ManualClock clock;
  Limiter limiter = Made(Limiter::Make({{.name = "trial", .limit = LimitOf("1/h"), .shadow = true}},
                                       {.clock = &clock}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limiter.Check("ann").allowed);
  const std::array<BatchItem, 2> items{BatchItem{.key = "ann"}, BatchItem{.key = "ann"}};
  std::array<Decision, 2> decisions;
  ASSERT_TRUE(limiter.CheckBatch(items, decisions));
  EXPECT_TRUE(decisions[1].allowed);
}

TEST(Batch, NeedsRoomForItsDecisions) {
  ManualClock clock;
  Limiter limiter = Made(Limiter::Make("10/s", {.clock = &clock}));
  const std::array<BatchItem, 3> items{};
  std::array<Decision, 2> decisions;
  ExpectInvalid(limiter.CheckBatch(items, decisions), "decisions", "at least 3");
  EXPECT_TRUE(limiter.CheckBatch({}, {}));
  EXPECT_EQ(limiter.Stats().entries, 0U);
}

TEST(Stats, TellWhatIsThere) {
  ManualClock clock;
  Limiter limiter = Made(Limiter::Make(
      {{"places", LimitOf("10 concurrent")}, {"rate", LimitOf("10/s")}}, {.clock = &clock}));
  EXPECT_EQ(limiter.Stats().reservations, 0U);
  const Decision decision = limiter.Check("ann");
  LimiterStats stats = limiter.Stats();
  EXPECT_EQ(stats.entries, 2U);
  EXPECT_EQ(stats.reservations, 1U);
  EXPECT_EQ(stats.waiters, 0U);
  EXPECT_GT(stats.bytes, 0U);
  EXPECT_LE(stats.bytes, LimiterOptions().memory_cap);
  EXPECT_EQ(stats.evicted_live + stats.evicted_denied + stats.growths, 0U);
  ASSERT_TRUE(limiter.Release(decision.reservation));
  EXPECT_EQ(limiter.Stats().reservations, 0U);
  for (int i = 0; i < 10'000; ++i) limiter.Check(std::to_string(i));
  EXPECT_GT(limiter.Stats().growths, 0U);
}

}  // namespace
}  // namespace weir
