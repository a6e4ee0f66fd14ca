// The words of limit text, shared by those who read it, write it or complain about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <weir/limit.h>
#include <weir/time.h>

namespace weir {

template <typename Meaning>
struct Word {
  std::string_view text;
  Meaning meaning;
};

// Largest first. ns and us are there so that every limit made in code can be written down; people
// are not told of them.
inline constexpr std::array<Word<Duration>, 8> kUnits = {{
    {"week", std::chrono::weeks(1)},
    {"day", std::chrono::days(1)},
    {"h", std::chrono::hours(1)},
    {"min", std::chrono::minutes(1)},
    {"s", std::chrono::seconds(1)},
    {"ms", std::chrono::milliseconds(1)},
    {"us", std::chrono::microseconds(1)},
    {"ns", std::chrono::nanoseconds(1)},
}};

inline constexpr std::array<Word<CalendarPeriod>, 4> kCalendarUnits = {{
    {"day", CalendarPeriod::kDay},
    {"week", CalendarPeriod::kWeek},
    {"month", CalendarPeriod::kMonth},
    {"year", CalendarPeriod::kYear},
}};

// Largest first.
inline constexpr std::array<Word<std::int64_t>, 3> kCountEndings = {{
    {"G", 1'000'000'000},
    {"M", 1'000'000},
    {"k", 1'000},
}};

inline constexpr std::array<Word<Algorithm>, 6> kAlgorithms = {{
    {"token_bucket", Algorithm::kTokenBucket},
    {"leaky_bucket", Algorithm::kLeakyBucket},
    {"fixed_window", Algorithm::kFixedWindow},
    {"sliding_window", Algorithm::kSlidingWindow},
    {"sliding_log", Algorithm::kSlidingLog},
    {"concurrency", Algorithm::kConcurrency},
}};

template <typename Meaning, std::size_t size>
constexpr std::optional<Meaning> MeaningOf(std::string_view text,
                                           const std::array<Word<Meaning>, size>& words) {
  for (const Word<Meaning>& word : words) {
    if (word.text == text) return word.meaning;
  }
  return std::nullopt;
}

template <typename Meaning, std::size_t size>
constexpr std::string_view WordFor(Meaning meaning, const std::array<Word<Meaning>, size>& words) {
  for (const Word<Meaning>& word : words) {
    if (word.meaning == meaning) return word.text;
  }
  return "unknown";
}

// Text from outside, in quotes and fit for a message: short, and printable ASCII only.
std::string Quoted(std::string_view text);

// "30s", "1day", "-5ms": a number and the largest unit that goes into it.
std::string TextOf(Duration length);

// The same read back: digits and a unit, nothing else, up to kMaxPeriod.
std::optional<Duration> ParseLength(std::string_view text);
// Digits, perhaps with k, M or G right behind them, up to kMaxCount.
std::optional<std::int64_t> ParseCount(std::string_view text);

}  // namespace weir
