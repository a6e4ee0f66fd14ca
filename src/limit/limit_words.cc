#include "limit/limit_words.h"

#include <charconv>

namespace weir {
namespace {

// "500", "1500", "20k", "1M". Short numbers are easier to read in full.
std::string CountText(std::int64_t count) {
  constexpr std::int64_t kReadable = 10'000;
  for (const auto& [ending, factor] : kCountEndings) {
    if (count >= kReadable && count % factor == 0) {
      return std::to_string(count / factor) + std::string(ending);
    }
  }
  return std::to_string(count);
}

// "min" rather than "1min".
std::string PeriodText(const LimitSpec& spec) {
  if (spec.align == Align::kCalendar) return std::string(WordFor(spec.calendar, kCalendarUnits));
  if (const std::string_view unit = WordFor(spec.period, kUnits); unit != "unknown") {
    return std::string(unit);
  }
  return TextOf(spec.period);
}

// "30s" as 30 and "s". Digits come first: no sign, no blank.
struct NumberAndWord {
  std::int64_t number = 0;
  std::string_view word{};
};
std::optional<NumberAndWord> SplitNumber(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  NumberAndWord read;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, read.number);
  if (error != std::errc()) return std::nullopt;
  read.word = std::string_view(end, text_end);
  return read;
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kLongest)) quoted += c >= ' ' && c <= '~' ? c : '?';
  quoted += text.size() > kLongest ? "...\"" : "\"";
  return quoted;
}

std::string TextOf(Duration length) {
  if (length == Duration(0)) return "0s";
  std::size_t unit = 0;
  while (length % kUnits[unit].meaning != Duration(0)) ++unit;  // Ends at ns at the latest.
  return std::to_string(length / kUnits[unit].meaning) + std::string(kUnits[unit].text);
}

std::optional<std::int64_t> ParseCount(std::string_view text) {
  const std::optional<NumberAndWord> read = SplitNumber(text);
  if (!read) return std::nullopt;
  const std::optional<std::int64_t> factor =
      read->word.empty() ? std::optional<std::int64_t>(1) : MeaningOf(read->word, kCountEndings);
  if (!factor || read->number > kMaxCount / *factor) return std::nullopt;
  return read->number * *factor;
}

std::optional<Duration> ParseLength(std::string_view text) {
  const std::optional<NumberAndWord> read = SplitNumber(text);
  if (!read) return std::nullopt;
  const std::optional<Duration> unit = MeaningOf(read->word, kUnits);
  if (!unit || read->number > kMaxPeriod / *unit) return std::nullopt;
  return read->number * *unit;
}

std::string Limit::ToString() const {
  switch (spec_.kind) {
    case LimitKind::kUnlimited:
      return "unlimited";
    case LimitKind::kDeny:
      return "deny";
    case LimitKind::kCounted:
      break;
  }
  const std::string count = CountText(spec_.count);
  if (spec_.algorithm == Algorithm::kConcurrency) {
    return count + " concurrent lease " + TextOf(spec_.lease);
  }
  const std::string rate = count + "/" + PeriodText(spec_);
  return spec_.burst == 0 ? rate : rate + " burst " + CountText(spec_.burst);
}

std::string_view NameOf(Algorithm algorithm) noexcept { return WordFor(algorithm, kAlgorithms); }

Result<Algorithm> ParseAlgorithm(std::string_view name) {
  if (const std::optional<Algorithm> algorithm = MeaningOf(name, kAlgorithms)) return *algorithm;
  std::string allowed;
  for (const auto& [text, algorithm] : kAlgorithms) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(text);
  }
  return std::unexpected(Error{ErrorCode::kInvalidArgument,
                               "unknown algorithm " + Quoted(name) + "; allowed are " + allowed});
}

}  // namespace weir
