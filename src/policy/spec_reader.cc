#include "policy/spec_reader.h"

#include <numeric>
#include <utility>

#include "limit/limit_words.h"
#include "policy/attribute.h"

namespace weir {
namespace {

std::string Join(std::span<const std::string_view> words) {
  std::string joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) joined += i + 1 == words.size() ? " and " : ", ";
    joined += words[i];
  }
  return joined;
}

// How many letters must be added, dropped or changed to get from one word to the other.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});  // NOLINT(modernize-use-ranges): g++ 12
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (ToLower(a[i]) == ToLower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// Digits behind a minus, or so many that they are too large: a number, but none that may stand
// here. `rest` is what follows the digits.
bool IsHopelessNumber(std::string_view text, std::string_view& rest) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  rest = text.substr(digits);
  return digits > 0;
}

}  // namespace

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kNull:
      return "nothing";
    default:
      return Quoted(node.text);
  }
}

std::optional<std::string_view> Nearest(std::string_view word,
                                        std::span<const std::string_view> allowed) {
  constexpr std::size_t kLongest = 40;
  if (word.size() > kLongest) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t least = 1 + word.size() / 3;
  for (const std::string_view candidate : allowed) {
    const std::size_t distance = Distance(word, candidate);
    if (distance > least || (nearest && distance == least)) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

void SpecReader::UnknownKey(const Where& where, std::string_view key,
                            std::span<const std::string_view> allowed) {
  std::string message = "unknown key " + Quoted(key) + "; ";
  if (const auto meant = Nearest(key, allowed)) {
    message += "did you mean " + std::string(*meant) + "?";
  } else {
    message += "allowed are " + Join(allowed);
  }
  problems_.Add(ProblemCode::kUnknownKey, where, std::move(message), Where::Point::kKey);
}

void SpecReader::UnknownWord(const Where& where, std::string_view word,
                             std::span<const std::string_view> allowed) {
  Report(ProblemCode::kUnknownWord, where,
         Quoted(word) + " is not known here; allowed are " + Join(allowed));
}

bool SpecReader::IsMap(const Spot& spot) {
  if (spot.node.kind == YamlNode::Kind::kMap) return true;
  Report(ProblemCode::kWrongType, spot.where,
         "found " + Describe(spot.node) + ", expected a map: keys with values");
  return false;
}

bool SpecReader::ReadText(const Spot& spot, std::string& text) {
  if (spot.node.kind == YamlNode::Kind::kScalar) {
    text = spot.node.text;
    return true;
  }
  Report(ProblemCode::kWrongType, spot.where,
         "found " + Describe(spot.node) + ", expected a single value");
  return false;
}

void SpecReader::ReadTexts(const Spot& spot, std::vector<std::string>& texts) {
  texts.clear();
  ReadEach(spot, [&](const Spot& item) {
    std::string text;
    if (ReadText(item, text)) texts.push_back(std::move(text));
  });
}

void SpecReader::ReadBool(const Spot& spot, bool& value) {
  const bool scalar = spot.node.kind == YamlNode::Kind::kScalar;
  const std::optional<bool> found = scalar ? MeaningOf(spot.node.text, kBools) : std::nullopt;
  if (found && !spot.node.quoted) {
    value = *found;
    return;
  }
  Report(ProblemCode::kNotABool, spot.where,
         "found " + Describe(spot.node) + ", expected true or false" +
             (found ? " without quotes" : ""));
}

void SpecReader::ReadCount(const Spot& spot, std::int64_t& value,
                           const Range<std::int64_t>& range) {
  std::string text;
  if (!ReadText(spot, text)) return;
  const std::optional<std::int64_t> count = ParseCount(text);
  if (count && range.Has(*count)) {
    value = *count;
    return;
  }
  std::string_view ending;
  const bool number = count || (IsHopelessNumber(text, ending) &&
                                (ending.empty() || MeaningOf(ending, kCountEndings)));
  Report(number ? ProblemCode::kOutOfRange : ProblemCode::kNotANumber, spot.where,
         Quoted(text) + (number ? " is not allowed" : " is no whole number") + "; write " +
             std::to_string(range.least) + " to " + std::to_string(range.most));
}

void SpecReader::ReadInt(const Spot& spot, int& value, const Range<int>& range) {
  std::int64_t wide = value;
  ReadCount(spot, wide, {.least = range.least, .most = range.most});
  value = static_cast<int>(wide);
}

void SpecReader::ReadSize(const Spot& spot, std::int64_t& bytes, const Range<std::int64_t>& range) {
  std::string text;
  if (!ReadText(spot, text)) return;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::int64_t> number = ParseCount(text.substr(0, digits));
  const std::string_view unit = std::string_view(text).substr(digits);
  const std::optional<std::int64_t> factor =
      unit.empty() ? std::optional<std::int64_t>(1) : MeaningOf(unit, kSizes);
  if (digits == 0 || !factor) {
    Report(ProblemCode::kNotASize, spot.where,
           Quoted(text) + " is no size; write bytes, or a number with KiB, MiB or GiB behind it");
  } else if (!number || *number > range.most / *factor || *number * *factor < range.least) {
    Report(ProblemCode::kOutOfRange, spot.where,
           Quoted(text) + " is not allowed; write " + std::to_string(range.least) + " to " +
               std::to_string(range.most) + " bytes");
  } else {
    bytes = *number * *factor;
  }
}

void SpecReader::ReadLength(const Spot& spot, Duration& length, const Range<Duration>& range) {
  std::string text;
  if (!ReadText(spot, text)) return;
  const std::optional<Duration> read = ParseLength(text);
  if (read && range.Has(*read)) {
    length = *read;
    return;
  }
  std::string_view unit;
  const bool is_length = read || (IsHopelessNumber(text, unit) && MeaningOf(unit, kUnits));
  if (is_length) {
    Report(ProblemCode::kOutOfRange, spot.where,
           Quoted(text) + " is not allowed; write " + TextOf(range.least) + " to " +
               TextOf(range.most));
  } else {
    Report(
        ProblemCode::kNotALength, spot.where,
        Quoted(text) + " is no length of time; write a number and a unit, such as 200ms or 10min");
  }
}

}  // namespace weir
