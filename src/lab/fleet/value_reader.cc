#include "lab/fleet/value_reader.h"

#include <charconv>
#include <cmath>

#include "limit/limit_words.h"

namespace weir::lab {
namespace {

constexpr int kMostDrift = 10'000;
constexpr double kMostRate = 1'000'000;

struct TwoTexts {
  std::string_view least;
  std::string_view most;
};

TwoTexts Split(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {text, text};
  return {text.substr(0, dots), text.substr(dots + 2)};
}

std::optional<double> ParseRate(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<double> count = ParseNumber(text.substr(0, slash));
  const std::optional<Duration> period = MeaningOf(text.substr(slash + 1), kUnits);
  if (!count || !period) return std::nullopt;
  const double rate = *count / std::chrono::duration<double>(*period).count();
  return rate > 0 && rate <= kMostRate ? std::optional(rate) : std::nullopt;
}

// Reads both ends with `parse`; says `wanted` where one of them is wrong.
template <typename Value, typename Parse>
void ReadBetween(SpecReader& reader, const Spot& spot, Between<Value>& values, const Parse& parse,
                 const std::string& wanted) {
  std::string text;
  if (!reader.ReadText(spot, text)) return;
  const TwoTexts ends = Split(text);
  const std::optional<Value> least = parse(ends.least);
  const std::optional<Value> most = parse(ends.most);
  if (least && most && *least <= *most) {
    values = {*least, *most};
    return;
  }
  const bool is_upside_down = least && most;
  reader.Report(is_upside_down ? ProblemCode::kOutOfRange : ProblemCode::kNotANumber, spot.where,
                Quoted(text) + (is_upside_down ? " ends before it begins; write the smaller first"
                                               : " does not fit here; write " + wanted));
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  const std::string_view ending = text.substr(static_cast<std::size_t>(end - text.data()));
  if (ending.empty()) return value;
  const std::optional<std::int64_t> factor = MeaningOf(ending, kCountEndings);
  if (!factor) return std::nullopt;
  return value * static_cast<double>(*factor);
}

void ReadNumbers(SpecReader& reader, const Spot& spot, Between<int>& numbers,
                 const Range<int>& range) {
  const auto parse = [&](std::string_view text) -> std::optional<int> {
    const std::optional<std::int64_t> count = ParseCount(text);
    if (!count || *count < range.least || *count > range.most) return std::nullopt;
    return static_cast<int>(*count);
  };
  ReadBetween(reader, spot, numbers, parse,
              std::to_string(range.least) + " to " + std::to_string(range.most) +
                  ", or a range such as 1..4 that the seed draws from");
}

void ReadCosts(SpecReader& reader, const Spot& spot, Between<std::int64_t>& costs) {
  ReadBetween(reader, spot, costs, ParseCount,
              "a whole number, or a range such as 1..5 that the seed draws from");
}

void ReadLengths(SpecReader& reader, const Spot& spot, Between<Duration>& lengths,
                 const Range<Duration>& range) {
  const auto parse = [&](std::string_view text) -> std::optional<Duration> {
    if (text == "0") return range.Has(Duration(0)) ? std::optional(Duration(0)) : std::nullopt;
    const std::optional<Duration> length = ParseLength(text);
    return length && range.Has(*length) ? length : std::nullopt;
  };
  ReadBetween(reader, spot, lengths, parse,
              TextOf(range.least) + " to " + TextOf(range.most) +
                  ", or a range such as 1s..5s that the seed draws from");
}

void ReadRates(SpecReader& reader, const Spot& spot, Between<double>& rates) {
  ReadBetween(reader, spot, rates, ParseRate,
              "how many for how long, such as 50/s, 10/min or 5/s..40/s; at most 1M/s");
}

void ReadDrift(SpecReader& reader, const Spot& spot, int& millionths) {
  std::string text;
  if (!reader.ReadText(spot, text)) return;
  std::string_view digits = text;
  const bool has_unit = digits.ends_with("ppm");
  if (has_unit) digits.remove_suffix(3);
  const std::optional<std::int64_t> read = has_unit ? ParseCount(digits) : std::nullopt;
  if (!read || *read > kMostDrift) {
    return reader.Report(ProblemCode::kNotANumber, spot.where,
                         Quoted(text) + " is no drift; write 0ppm to 10000ppm");
  }
  millionths = static_cast<int>(*read);
}

}  // namespace weir::lab
