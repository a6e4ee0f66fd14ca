// Numbers in words: the same on a page, in a terminal and in a picture. web/src/value.ts says the
// same in the page's language; both are held to web/values.json. No locale has a say.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "lab/report.h"

namespace weir::lab {
namespace {

// Without zeros at the end of the fraction.
std::string Fixed(double value, int decimals) {
  std::array<char, 400> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::fixed, decimals);
  std::string text(buffer.data(), end.ptr);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string WithCommas(std::string text) {
  const std::size_t first = text[0] == '-' ? 1 : 0;
  for (std::size_t i = std::min(text.find('.'), text.size()); i > first + 3;) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

// So many decimals that three digits are seen, two of small numbers; whole numbers as they are.
std::string Plain(double value) {
  const double size = std::abs(value);
  if (size >= 1e15) {
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                   std::chars_format::scientific, 2);
    return {buffer.data(), end.ptr};
  }
  if (size >= 100 || size == std::floor(size)) return WithCommas(Fixed(value, 0));
  if (size >= 10) return Fixed(value, 1);
  if (size >= 0.1) return Fixed(value, 2);
  return Fixed(value, std::min(12, 1 - static_cast<int>(std::floor(std::log10(size)))));
}

struct Step {
  double size;
  const char* name;
};

// "3 min 20 s"; the smaller part is left out if it is nothing.
std::string TwoParts(double seconds, const Step& great, const Step& small) {
  const double parts = std::round(seconds / small.size);
  const double in_great = std::round(great.size / small.size);
  const double whole = std::floor(parts / in_great);
  const double rest = parts - whole * in_great;
  std::string text = WithCommas(Fixed(whole, 0)) + " " + great.name;
  if (rest > 0) text += " " + Fixed(rest, 0) + " " + small.name;
  return text;
}

std::string Seconds(double value) {
  const double size = std::abs(value);
  const std::string sign = value < 0 ? "-" : "";
  if (size == 0) return "0 s";
  // The limits are where rounding would reach the next unit.
  if (size < 9.995e-7) return sign + Plain(size * 1e9) + " ns";
  if (size < 9.995e-4) return sign + Plain(size * 1e6) + " µs";
  if (size < 0.9995) return sign + Plain(size * 1e3) + " ms";
  if (size < 59.95) return sign + Plain(size) + " s";
  if (size < 3599.5) return sign + TwoParts(size, {60, "min"}, {1, "s"});
  if (size < 86'370) return sign + TwoParts(size, {3600, "h"}, {60, "min"});
  if (size < 86'400e4) return sign + TwoParts(size, {86'400, "d"}, {3600, "h"});
  return sign + Plain(size / 86'400) + " d";
}

std::string Time(double value) {
  if (std::abs(value) > 2e11) return Plain(value) + " s";  // Thousands of years: no date.
  const double milliseconds = std::round(value * 1000);
  const std::chrono::sys_time<std::chrono::milliseconds> time{
      std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  std::array<char, 96> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02u %02d:%02d:%02d",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  std::string text = buffer.data();
  const auto fraction = static_cast<int>(clock.subseconds().count());
  if (fraction != 0) {
    std::snprintf(buffer.data(), buffer.size(), ".%03d", fraction);
    text += buffer.data();
  }
  return text;
}

std::string Bytes(double value) {
  constexpr std::array<const char*, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  // 1023.5 B would be written as 1,024 B.
  while (unit + 1 < kNames.size() && std::abs(value) >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  return Plain(value) + " " + kNames[unit];
}

// Nearly all is not all, so that as many nines are shown as it takes.
std::string Percent(double value) {
  const double percent = value * 100;
  if (percent < 99.95 || percent >= 100) return Plain(percent) + " %";
  for (int decimals = 2; decimals <= 6; ++decimals) {
    const std::string text = Fixed(percent, decimals);
    if (text != "100") return text + " %";
  }
  return "99.999999 %";
}

}  // namespace

std::string WriteValue(double value, Unit unit) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value < 0 ? "-∞" : "∞";
  switch (unit) {
    case Unit::kCount:
      return Plain(value);
    case Unit::kRate:
      return Plain(value) + "/s";
    case Unit::kSeconds:
      return Seconds(value);
    case Unit::kTime:
      return Time(value);
    case Unit::kBytes:
      return Bytes(value);
    case Unit::kPercent:
      return Percent(value);
    case Unit::kFactor:
      return Plain(value) + "×";
  }
  return "";
}

}  // namespace weir::lab
