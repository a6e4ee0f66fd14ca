#include "sim/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace weir::sim {

std::optional<std::int64_t> ReadInteger(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.starts_with('0') && text != "0") return std::nullopt;
  return number;
}

std::optional<double> ReadDouble(std::string_view text) {
  const std::string copy(text);
  if (copy.empty() || copy.front() == ' ') return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(number)) return std::nullopt;
  return number;
}

std::optional<ScoreBound> ReadScoreBound(std::string_view text) {
  ScoreBound bound{.is_open = text.starts_with('(')};
  if (bound.is_open) text.remove_prefix(1);
  const std::optional<double> score = ReadDouble(text);
  if (!score) return std::nullopt;
  bound.score = *score;
  return bound;
}

std::string WriteDouble(double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  constexpr double kExact = 4503599627370496.0;  // 2^52
  if (number > -kExact && number < kExact && number == std::trunc(number)) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  char text[64];
  const int length = std::snprintf(text, sizeof text, "%.17g", number);
  return {text, static_cast<std::size_t>(length)};
}

bool IsWord(std::string_view text, std::string_view word_in_lower_case) {
  if (text.size() != word_in_lower_case.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != word_in_lower_case[i]) return false;
  }
  return true;
}

}  // namespace weir::sim
