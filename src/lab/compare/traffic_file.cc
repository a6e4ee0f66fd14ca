// Traffic from a file of times.
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "lab/compare/traffic.h"
#include "limit/limit_words.h"

namespace weir::lab {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
// 2200: as far as the calendar goes.
constexpr std::int64_t kLatest = 7'258'118'400;
// Numbers above this are taken for seconds since 1970 (1973 and later) rather than since some
// start.
constexpr std::int64_t kEarliestDate = 100'000'000;

// Sums of all costs stay well within 64 bits.
constexpr std::int64_t kHighestCost = 1'000'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits and nothing else.
std::optional<std::int64_t> WholeNumber(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size() &&
                        std::ranges::all_of(text, IsDigit);
  return is_whole ? std::optional(value) : std::nullopt;
}

// What is behind the point, in nanoseconds; finer digits are dropped.
std::optional<std::int64_t> Fraction(std::string_view digits) {
  if (digits.empty() || !std::ranges::all_of(digits, IsDigit)) return std::nullopt;
  std::string nine(digits.substr(0, 9));
  nine.resize(9, '0');
  return WholeNumber(nine);
}

// 12, 12.5, 1763372999.123456
std::optional<Duration> Seconds(std::string_view text) {
  const std::size_t point = text.find('.');
  const auto whole = WholeNumber(text.substr(0, point));
  const auto fraction = point == std::string_view::npos ? std::optional<std::int64_t>(0)
                                                        : Fraction(text.substr(point + 1));
  if (!whole || !fraction || *whole > kLatest) return std::nullopt;
  return Duration(*whole * kSecond + *fraction);
}

std::optional<int> Digits(std::string_view text, std::size_t at, std::size_t number) {
  if (text.size() < at + number) return std::nullopt;
  const auto value = WholeNumber(text.substr(at, number));
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

// Z, +02:00; how far the local time is ahead.
std::optional<Duration> Offset(std::string_view text) {
  if (text == "Z" || text == "z") return Duration(0);
  const auto hours = Digits(text, 1, 2);
  const auto minutes = Digits(text, 4, 2);
  const bool has_form = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':';
  if (!has_form || !hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const Duration offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return text[0] == '-' ? -offset : offset;
}

// 2026-11-17T09:30:00.5Z
std::optional<Duration> Date(std::string_view text) {
  const auto year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const bool has_form = text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == 't') &&
                        text[13] == ':' && text[16] == ':';
  std::string_view rest = text.substr(19);
  std::optional<std::int64_t> fraction = 0;
  if (rest.starts_with('.')) {
    const auto end = std::ranges::find_if_not(rest.substr(1), IsDigit);
    const auto length = static_cast<std::size_t>(end - rest.begin());
    fraction = Fraction(rest.substr(1, length - 1));
    rest = rest.substr(length);
  }
  const std::optional<Duration> offset = Offset(rest);
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  // A leap second counts as the one before it.
  const bool is_time = *hour <= 23 && *minute <= 59 && *second <= 60;
  if (!has_form || !fraction || !offset || !date.ok() || !is_time) return std::nullopt;
  if (*year < 1970 || *year >= 2200) return std::nullopt;
  const Duration time = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) +
                        std::chrono::minutes(*minute) +
                        std::chrono::seconds(std::min(*second, 59)) + Duration(*fraction) - *offset;
  return time >= Duration(0) ? std::optional(time) : std::nullopt;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Its time since 1970, for now. The error is what is wrong with the line.
std::expected<Arrival, std::string> ReadLine(std::string_view line) {
  const auto blank = static_cast<std::size_t>(std::ranges::find_if(line, IsBlank) - line.begin());
  const std::string_view time = line.substr(0, blank);
  const std::string_view cost = Trimmed(line.substr(blank));
  Arrival arrival;
  const std::optional<Duration> at = time.contains(':') ? Date(time) : Seconds(time);
  if (!at) {
    return std::unexpected(Quoted(time) +
                           " is no time; write seconds, such as 12.5, or 2026-11-17T09:30:00Z");
  }
  arrival.at = *at;
  if (cost.empty()) return arrival;
  const auto value = WholeNumber(cost);
  if (!value || *value < 1 || *value > kHighestCost) {
    return std::unexpected(Quoted(cost) + " is no cost; write a whole number from 1 to " +
                           std::to_string(kHighestCost));
  }
  arrival.cost = *value;
  return arrival;
}

// Those of the same time stay in their order. clang does not take what the library has for that.
void SortByTime(std::vector<Arrival>& arrivals) {
  std::vector<std::size_t> order(arrivals.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(arrivals[i].at, i); });
  std::vector<Arrival> sorted;
  sorted.reserve(arrivals.size());
  for (const std::size_t i : order) sorted.push_back(arrivals[i]);
  arrivals = std::move(sorted);
}

Error UnreadableTraffic(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

}  // namespace

Result<Traffic> ReadTraffic(std::string_view text, const std::string& name, Duration period) {
  Traffic traffic{.name = name, .description = "what is in " + name};
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    // A comment is looked for in its own line: in the whole rest it would be for every line.
    const std::string_view whole = text.substr(0, end);
    const std::string_view line = Trimmed(whole.substr(0, whole.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    const auto arrival = ReadLine(line);
    if (!arrival) {
      return std::unexpected(
          UnreadableTraffic(name + ":" + std::to_string(number) + ": " + arrival.error()));
    }
    if (std::ssize(traffic.arrivals) == kMostArrivals) {
      return std::unexpected(UnreadableTraffic(name + ": there are more than " +
                                               std::to_string(kMostArrivals) +
                                               " requests; take a part of them, or weir replay"));
    }
    traffic.arrivals.push_back(*arrival);
  }
  if (traffic.arrivals.empty()) {
    return std::unexpected(UnreadableTraffic(
        name + ": there is no request in it; write one time in seconds on every line"));
  }
  if (!std::ranges::is_sorted(traffic.arrivals, {}, &Arrival::at)) {
    traffic.warnings.push_back("The times in " + name +
                               " are not in order: the requests were sorted.");
    SortByTime(traffic.arrivals);
  }
  const Duration first = traffic.arrivals.front().at;
  traffic.start = WallTime(first - first % period);
  traffic.has_dates = first >= std::chrono::seconds(kEarliestDate);
  for (Arrival& arrival : traffic.arrivals) arrival.at -= traffic.start.time_since_epoch();
  traffic.length = std::max(period, traffic.arrivals.back().at + Duration(1));
  if (traffic.length > kLongestTraffic) {
    return std::unexpected(UnreadableTraffic(
        name + ": from the first request to the last it is more than " + TextOf(kLongestTraffic)));
  }
  return traffic;
}

}  // namespace weir::lab
