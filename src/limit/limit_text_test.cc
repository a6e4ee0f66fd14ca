#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/limit.h>

#include "limit/limit_words.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr const char* kUnitsAllowed = "ms, s, min, h, day, week";

LimitSpec DefaultsOf(Algorithm algorithm) { return {.algorithm = algorithm}; }

LimitSpec OfCalendar() { return {.algorithm = Algorithm::kFixedWindow, .align = Align::kCalendar}; }

LimitSpec Parse(std::string_view text, const LimitSpec& defaults = {}) {
  const Result<Limit> limit = Limit::Parse(text, defaults);
  EXPECT_TRUE(limit.has_value()) << limit.error().message;
  return limit.has_value() ? limit->spec() : LimitSpec();
}

std::string ProblemOf(std::string_view text, const LimitSpec& defaults = {}) {
  const Result<Limit> limit = Limit::Parse(text, defaults);
  if (limit.has_value()) return "none";
  EXPECT_EQ(limit.error().code, ErrorCode::kInvalidArgument);
  return limit.error().message;
}

TEST(LimitText, IsACountPerPeriod) {
  const LimitSpec spec = Parse("100/min");
  EXPECT_EQ(spec.kind, LimitKind::kCounted);
  EXPECT_EQ(spec.count, 100);
  EXPECT_EQ(spec.period, minutes(1));
  EXPECT_EQ(spec.burst, 0);
}

TEST(LimitText, MayNameABurst) {
  const LimitSpec spec = Parse("100/min burst 50");
  EXPECT_EQ(spec.count, 100);
  EXPECT_EQ(spec.burst, 50);
}

TEST(LimitText, HasEveryUnitWithAndWithoutANumber) {
  EXPECT_EQ(Parse("5/ms").period, milliseconds(1));
  EXPECT_EQ(Parse("5/s").period, seconds(1));
  EXPECT_EQ(Parse("5/h").period, hours(1));
  EXPECT_EQ(Parse("5/day").period, hours(24));
  EXPECT_EQ(Parse("5/week").period, hours(24 * 7));
  EXPECT_EQ(Parse("5/30s").period, seconds(30));
  EXPECT_EQ(Parse("5/500ms").period, milliseconds(500));
  EXPECT_EQ(Parse("5/52week").period, hours(24 * 7 * 52));
}

TEST(LimitText, HasCountsInThousandsMillionsAndThousandMillions) {
  EXPECT_EQ(Parse("2k/s").count, 2'000);
  EXPECT_EQ(Parse("3M/day").count, 3'000'000);
  EXPECT_EQ(Parse("4G/week burst 1k").count, 4'000'000'000);
  EXPECT_EQ(Parse("4G/week burst 1k").burst, 1'000);
  EXPECT_EQ(Parse("1000000G/day", DefaultsOf(Algorithm::kFixedWindow)).count, kMaxCount);
}

TEST(LimitText, MayBeSpacedOutOrNot) {
  const LimitSpec spec = Parse("100/30s burst 50");
  EXPECT_EQ(Parse("  100 /  30 s   burst\t50 "), spec);
  EXPECT_EQ(Parse("100/30s burst50"), spec);
  EXPECT_EQ(Parse("20concurrent lease 30 s"), Parse("20 concurrent lease 30s"));
}

TEST(LimitText, OfConcurrencySetsTheAlgorithm) {
  const LimitSpec spec = Parse("20 concurrent lease 90s");
  EXPECT_EQ(spec.algorithm, Algorithm::kConcurrency);
  EXPECT_EQ(spec.count, 20);
  EXPECT_EQ(spec.lease, seconds(90));
  EXPECT_EQ(Parse("2k concurrent").count, 2'000);
  EXPECT_EQ(Parse("20 concurrent").lease, seconds(30));
  EXPECT_EQ(Parse("20 concurrent", {.lease = hours(1)}).lease, hours(1));
}

TEST(LimitText, MayBeAWord) {
  EXPECT_EQ(Parse("unlimited").kind, LimitKind::kUnlimited);
  EXPECT_EQ(Parse(" deny ").kind, LimitKind::kDeny);
  EXPECT_EQ(Parse("5/s", {.kind = LimitKind::kDeny}).kind, LimitKind::kCounted);
}

TEST(LimitText, TakesWhatItDoesNotSayFromTheDefaults) {
  LimitSpec defaults = DefaultsOf(Algorithm::kLeakyBucket);
  defaults.queue = true;
  defaults.burst = 7;
  defaults.max_wait = seconds(5);
  const LimitSpec spec = Parse("10/s", defaults);
  EXPECT_EQ(spec.algorithm, Algorithm::kLeakyBucket);
  EXPECT_TRUE(spec.queue);
  EXPECT_EQ(spec.burst, 7);
  EXPECT_EQ(spec.max_wait, seconds(5));
  EXPECT_EQ(Parse("10/s burst 3", defaults).burst, 3);
}

TEST(LimitText, NamesAPeriodOfTheCalendarIfAligned) {
  EXPECT_EQ(Parse("1000/day", OfCalendar()).calendar, CalendarPeriod::kDay);
  EXPECT_EQ(Parse("1000/day", OfCalendar()).period, Duration(0));
  EXPECT_EQ(Parse("1000/week", OfCalendar()).calendar, CalendarPeriod::kWeek);
  EXPECT_EQ(Parse("1M/month", OfCalendar()).calendar, CalendarPeriod::kMonth);
  EXPECT_EQ(Parse("1M/1year", OfCalendar()).calendar, CalendarPeriod::kYear);
}

TEST(LimitText, RefusesOtherPeriodsIfAligned) {
  EXPECT_EQ(ProblemOf("1000/30s", OfCalendar()),
            "limit \"1000/30s\": column 6: with align: calendar the period is day, week, month or "
            "year, not \"30s\"");
  EXPECT_THAT(ProblemOf("1000/2day", OfCalendar()), HasSubstr("not \"2day\""));
  EXPECT_THAT(ProblemOf("1000/0day", OfCalendar()), HasSubstr("not \"0day\""));
}

TEST(LimitText, ExplainsAnUnknownPeriod) {
  EXPECT_EQ(ProblemOf("100/mim"),
            "limit \"100/mim\": column 5: unknown period \"mim\"; allowed are ms, s, min, h, day, "
            "week, and with align: calendar month and year");
  EXPECT_EQ(ProblemOf("100/month"),
            "limit \"100/month\": column 5: \"month\" is a period only with align: calendar; "
            "allowed without it are ms, s, min, h, day, week");
  EXPECT_THAT(ProblemOf("100/2year"), HasSubstr("column 6: \"year\" is a period only"));
  EXPECT_THAT(ProblemOf("100/Min"), HasSubstr(kUnitsAllowed));
}

TEST(LimitText, RefusesZeroAndPointsToDeny) {
  EXPECT_EQ(ProblemOf("0/min"),
            "limit \"0/min\": column 1: \"0\" is not allowed; write 1 to 1000000000000000, or the "
            "limit \"deny\"");
  EXPECT_THAT(ProblemOf("0k/min"), HasSubstr("\"0k\" is not allowed"));
  EXPECT_THAT(ProblemOf("0 concurrent"), HasSubstr("the limit \"deny\""));
  EXPECT_EQ(ProblemOf("1/min burst 0"),
            "limit \"1/min burst 0\": column 13: \"0\" is not allowed; write 1 to "
            "1000000000000000");
  EXPECT_EQ(ProblemOf("1/0s"),
            "limit \"1/0s\": column 3: \"0s\" is not allowed; write more than 0, up to 366day");
  EXPECT_THAT(ProblemOf("1 concurrent lease 0s"), HasSubstr("column 20: \"0s\" is not allowed"));
}

TEST(LimitText, RefusesNumbersThatAreTooLarge) {
  EXPECT_THAT(ProblemOf("1000000000000001/day"), HasSubstr("is not allowed; write 1 to"));
  EXPECT_THAT(ProblemOf("1000001G/day"), HasSubstr("\"1000001G\" is not allowed"));
  EXPECT_THAT(ProblemOf("99999999999999999999999999999999/day"), HasSubstr("is not allowed"));
  EXPECT_THAT(ProblemOf("1/99999999999999999999week"), HasSubstr("up to 366day"));
  EXPECT_THAT(ProblemOf("1/367day"), HasSubstr("column 3: \"367day\" is not allowed"));
  EXPECT_THAT(ProblemOf(std::string(10'000, '9') + "/s"), HasSubstr("99...\" is not allowed"));
}

TEST(LimitText, RefusesAnythingButWholeNumbers) {
  EXPECT_EQ(ProblemOf("1.5k/min"),
            "limit \"1.5k/min\": column 2: found \".\"; write whole numbers, digits only");
  EXPECT_THAT(ProblemOf("1,000/min"), HasSubstr("column 2: found \",\""));
  EXPECT_THAT(ProblemOf("5/1.5s"), HasSubstr("column 4: found \".\""));
  EXPECT_THAT(ProblemOf("5/s burst 1.5"), HasSubstr("column 12: found \".\""));
  EXPECT_THAT(ProblemOf("5 concurrent lease 1.5s"), HasSubstr("column 21: found \".\""));
  EXPECT_THAT(ProblemOf("-5/min"), HasSubstr("column 1: found \"-\", expected a count"));
}

TEST(LimitText, SaysWhereItBrokeOffAndWhatWasExpected) {
  EXPECT_EQ(ProblemOf(""),
            "limit \"\": column 1: found the end, expected a count, \"unlimited\" or \"deny\"");
  EXPECT_THAT(ProblemOf("lots"), HasSubstr("column 1: found \"lots\", expected a count"));
  EXPECT_THAT(ProblemOf("100"), HasSubstr("column 4: found the end, expected \"/\" and a period"));
  EXPECT_THAT(ProblemOf("100 per min"), HasSubstr("column 5: found \"per\", expected \"/\""));
  EXPECT_THAT(ProblemOf("100 k/min"), HasSubstr("column 5: found \"k\""));
  EXPECT_THAT(ProblemOf("100/"), HasSubstr("column 5: found the end, expected a period"));
  EXPECT_THAT(ProblemOf("100/30"), HasSubstr("column 7: found the end, expected a period"));
  EXPECT_THAT(ProblemOf("100//s"), HasSubstr("column 5: found \"/\", expected a period"));
  EXPECT_THAT(ProblemOf("100K/s"), HasSubstr("column 4: unknown ending of a count \"K\"; allowed"
                                             " are k, M and G"));
  EXPECT_THAT(ProblemOf("100/s 50"), HasSubstr("column 7: found \"50\", expected \"burst\""));
  EXPECT_THAT(ProblemOf("100/s burst"), HasSubstr("column 12: found the end, expected a count"));
  EXPECT_THAT(ProblemOf("100/s burst 5 6"), HasSubstr("column 15: found \"6\""));
  EXPECT_THAT(ProblemOf("5 concurrent burst 3"), HasSubstr("expected \"lease\""));
  EXPECT_THAT(ProblemOf("5 concurrent lease"), HasSubstr("expected a length of time"));
  EXPECT_THAT(ProblemOf("5 concurrent lease 30"), HasSubstr("expected a unit"));
  EXPECT_THAT(ProblemOf("5 concurrent lease 30x"), HasSubstr("ms, s, min, h, day or week"));
  EXPECT_THAT(ProblemOf("5 concurrent lease 30s x"), HasSubstr("expected nothing more"));
  EXPECT_THAT(ProblemOf("deny all"), HasSubstr("column 6: found \"all\", expected nothing more"));
  EXPECT_THAT(ProblemOf("unlimited!"), HasSubstr("column 10: found \"!\""));
}

TEST(LimitText, PassesOnWhatIsWrongWithTheLimitAsAWhole) {
  EXPECT_EQ(ProblemOf("20M/s"),
            "limit \"20M/s\": count: 20000000 in 1s is not allowed; write at most 10000000 in 1s");
  EXPECT_THAT(ProblemOf("5/min", DefaultsOf(Algorithm::kConcurrency)), HasSubstr("20 concurrent"));
  EXPECT_THAT(ProblemOf("5/min burst 9", DefaultsOf(Algorithm::kSlidingLog)),
              HasSubstr("burst: sliding_log takes none"));
  EXPECT_THAT(ProblemOf("5 concurrent", OfCalendar()), HasSubstr("align: calendar"));
}

TEST(LimitText, IsQuotedInErrorsWithoutWhatATerminalOrALogWouldChokeOn) {
  EXPECT_THAT(ProblemOf("\x1b[31m\n\xff"), HasSubstr("limit \"?[31m??\""));
  EXPECT_LT(ProblemOf(std::string(100'000, 'x')).size(), 300U);
}

TEST(LimitText, IsWrittenAsPeopleWouldWriteIt) {
  const auto rewrite = [](std::string_view text, const LimitSpec& defaults = {}) {
    const Result<Limit> limit = Limit::Parse(text, defaults);
    return limit.has_value() ? limit->ToString() : limit.error().message;
  };
  EXPECT_EQ(rewrite("100/1min burst 0050"), "100/min burst 50");
  EXPECT_EQ(rewrite("1000 / 60s"), "1000/min");
  EXPECT_EQ(rewrite("20000/24h"), "20k/day");
  EXPECT_EQ(rewrite("20500/h"), "20500/h");
  EXPECT_EQ(rewrite("3000000/14day burst 50000000"), "3M/2week burst 50M");
  EXPECT_EQ(rewrite("5/1500ms"), "5/1500ms");
  EXPECT_EQ(rewrite("20 concurrent"), "20 concurrent lease 30s");
  EXPECT_EQ(rewrite("20 concurrent lease 3600s"), "20 concurrent lease 1h");
  EXPECT_EQ(rewrite("unlimited"), "unlimited");
  EXPECT_EQ(rewrite("deny"), "deny");
  EXPECT_EQ(rewrite("1000/month", OfCalendar()), "1000/month");
}

TEST(LimitText, OfAnyLimitIsReadBackAsTheSameLimit) {
  std::vector<LimitSpec> specs;
  for (const Duration period : {Duration(1'000), Duration(1'000'001), Duration(milliseconds(7)),
                                Duration(minutes(90)), kMaxPeriod}) {
    for (const std::int64_t count : {1, 9'999, 10'000, 12'345, 1'000'000}) {
      for (const std::int64_t burst : {0, 1, 10'000}) {
        specs.push_back({.count = count, .period = period, .burst = burst});
      }
    }
  }
  int made = 0;
  for (const LimitSpec& spec : specs) {
    const Result<Limit> limit = Limit::Make(spec);
    if (!limit) continue;
    ++made;
    EXPECT_EQ(Parse(limit->ToString()), spec) << limit->ToString();
  }
  EXPECT_GT(made, 30);
}

TEST(TextOf, WritesEveryLength) {
  EXPECT_EQ(TextOf(Duration(0)), "0s");
  EXPECT_EQ(TextOf(Duration(-1)), "-1ns");
  EXPECT_EQ(TextOf(std::chrono::microseconds(7)), "7us");
  EXPECT_EQ(TextOf(Duration::max()), std::to_string(Duration::max().count()) + "ns");
}

TEST(AlgorithmName, IsReadBack) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kLeakyBucket, Algorithm::kFixedWindow,
        Algorithm::kSlidingWindow, Algorithm::kSlidingLog, Algorithm::kConcurrency}) {
    const Result<Algorithm> read = ParseAlgorithm(NameOf(algorithm));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(*read, algorithm);
  }
  EXPECT_EQ(NameOf(Algorithm::kTokenBucket), "token_bucket");
  EXPECT_EQ(NameOf(static_cast<Algorithm>(99)), "unknown");
}

TEST(AlgorithmName, ThatIsUnknownIsRefusedWithAllThatAreAllowed) {
  const Result<Algorithm> read = ParseAlgorithm("gcra");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message,
            "unknown algorithm \"gcra\"; allowed are token_bucket, leaky_bucket, fixed_window, "
            "sliding_window, sliding_log, concurrency");
}

}  // namespace
}  // namespace weir
