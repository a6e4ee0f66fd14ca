// Reads limit text:
//
//   COUNT / PERIOD [burst COUNT]     100/min burst 50     5/30s     1M/month
//   COUNT concurrent [lease LENGTH]  20 concurrent lease 30s
//   unlimited | deny
//
// A COUNT is a whole number, perhaps with k, M or G right behind it; a PERIOD is a unit, perhaps
// with a whole number before it; a LENGTH is a number and a unit.
#include <algorithm>
#include <optional>
#include <utility>

#include <weir/limit.h>

#include "limit/limit_words.h"

namespace weir {
namespace {

constexpr bool IsSpace(char c) { return c == ' ' || c == '\t'; }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A run of digits, a run of letters, any other character, or the empty end.
struct Token {
  std::string_view text;
  std::size_t at = 0;
  bool glued = false;  // No space before it.

  bool IsNumber() const { return !text.empty() && IsDigit(text.front()); }
  bool IsWord() const { return !text.empty() && IsLetter(text.front()); }
  bool IsPoint() const { return text == "." || text == ","; }
};

// Digits as a number; above kMaxCount it is kMaxCount + 1, which nothing accepts.
std::int64_t ValueOf(const Token& digits) {
  std::int64_t value = 0;
  for (const char c : digits.text) value = std::min(value * 10 + (c - '0'), kMaxCount + 1);
  return value;
}

// Reads one limit from left to right. Each Read says whether it went well, and leaves an error if
// not.
class LimitReader {
 public:
  LimitReader(std::string_view text, LimitSpec defaults) : text_(text), spec_(std::move(defaults)) {
    Take();
  }

  Result<Limit> Read() {
    if (!ReadSpec()) return std::unexpected(std::move(error_));
    Result<Limit> limit = Limit::Make(spec_);
    if (!limit) limit.error().message = "limit " + Quoted(text_) + ": " + limit.error().message;
    return limit;
  }

 private:
  bool ReadSpec() {
    if (TakeIf("unlimited")) return ReadEnd(LimitKind::kUnlimited, "nothing more");
    if (TakeIf("deny")) return ReadEnd(LimitKind::kDeny, "nothing more");
    if (!next_.IsNumber()) return Expected("a count, \"unlimited\" or \"deny\"");
    if (!ReadCount(spec_.count, ", or the limit \"deny\"")) return false;
    if (TakeIf("/")) return ReadPeriod() && ReadBurst();
    if (TakeIf("concurrent")) return ReadLease();
    return Expected("\"/\" and a period, or \"concurrent\"");
  }

  bool ReadPeriod() {
    const std::size_t start = next_.at;
    std::int64_t number = 1;
    if (next_.IsNumber() && !ReadNumber(number)) return false;
    if (!next_.IsWord()) return Expected("a period such as s, min or 30s");
    const Token unit = Take();
    return spec_.align == Align::kCalendar ? SetCalendarPeriod(start, number, unit)
                                           : SetPeriod(start, number, unit);
  }

  bool SetCalendarPeriod(std::size_t start, std::int64_t number, const Token& unit) {
    const std::optional<CalendarPeriod> period = MeaningOf(unit.text, kCalendarUnits);
    if (!period || number != 1) {
      return Fail(start, "with align: calendar the period is day, week, month or year, not " +
                             Quoted(TakenSince(start)));
    }
    spec_.calendar = *period;
    spec_.period = Duration(0);
    return true;
  }

  bool SetPeriod(std::size_t start, std::int64_t number, const Token& unit) {
    spec_.calendar = CalendarPeriod::kNone;
    const std::optional<Duration> length = MeaningOf(unit.text, kUnits);
    if (length) return SetLength(spec_.period, start, number, *length);
    if (MeaningOf(unit.text, kCalendarUnits)) {
      return Fail(unit.at, Quoted(unit.text) +
                               " is a period only with align: calendar; allowed without it are ms, "
                               "s, min, h, day, week");
    }
    return Fail(unit.at, "unknown period " + Quoted(unit.text) +
                             "; allowed are ms, s, min, h, day, week, and with align: calendar "
                             "month and year");
  }

  bool ReadBurst() {
    if (!TakeIf("burst")) {
      return ReadEnd(LimitKind::kCounted, "\"burst\" and a count, or nothing more");
    }
    if (!next_.IsNumber()) return Expected("a count: how much may come at once");
    return ReadCount(spec_.burst, "") && ReadEnd(LimitKind::kCounted, "nothing more");
  }

  bool ReadLease() {
    spec_.algorithm = Algorithm::kConcurrency;
    spec_.period = Duration(0);
    spec_.calendar = CalendarPeriod::kNone;
    if (!TakeIf("lease")) {
      return ReadEnd(LimitKind::kCounted, "\"lease\" and a length of time, or nothing more");
    }
    const std::size_t start = next_.at;
    std::int64_t number = 0;
    if (!next_.IsNumber()) return Expected("a length of time such as 30s");
    if (!ReadNumber(number)) return false;
    const std::optional<Duration> unit = MeaningOf(next_.text, kUnits);
    if (!unit) return Expected("a unit: ms, s, min, h, day or week");
    Take();
    return SetLength(spec_.lease, start, number, *unit) &&
           ReadEnd(LimitKind::kCounted, "nothing more");
  }

  bool SetLength(Duration& length, std::size_t start, std::int64_t number, Duration unit) {
    if (number == 0 || number > kMaxPeriod / unit) {
      return Fail(start, Quoted(TakenSince(start)) + " is not allowed; write more than 0, up to " +
                             TextOf(kMaxPeriod));
    }
    length = number * unit;
    return true;
  }

  bool ReadCount(std::int64_t& count, std::string_view instead_of_zero) {
    const std::size_t start = next_.at;
    if (!ReadNumber(count)) return false;
    if (next_.glued && next_.IsWord() && next_.text != "concurrent") {
      const std::optional<std::int64_t> factor = MeaningOf(next_.text, kCountEndings);
      if (!factor) {
        return Fail(next_.at,
                    "unknown ending of a count " + Quoted(next_.text) + "; allowed are k, M and G");
      }
      Take();
      count = count > kMaxCount / *factor ? kMaxCount + 1 : count * *factor;
    }
    if (count >= 1 && count <= kMaxCount) return true;
    return Fail(start, Quoted(TakenSince(start)) + " is not allowed; write 1 to " +
                           std::to_string(kMaxCount) + std::string(instead_of_zero));
  }

  bool ReadNumber(std::int64_t& number) {
    const Token digits = Take();
    number = ValueOf(digits);
    if (!next_.glued || !next_.IsPoint()) return true;
    return Fail(next_.at, "found " + Quoted(next_.text) + "; write whole numbers, digits only");
  }

  bool ReadEnd(LimitKind kind, std::string_view expected) {
    spec_.kind = kind;
    return next_.text.empty() || Expected(expected);
  }

  // Returns the token at hand and moves on to the one after it.
  Token Take() {
    taken_until_ = next_.at + next_.text.size();
    std::size_t at = taken_until_;
    while (at < text_.size() && IsSpace(text_[at])) ++at;
    std::size_t end = std::min(at + 1, text_.size());
    if (at < text_.size()) {
      const auto same_kind = [&](char c) {
        return (IsDigit(text_[at]) && IsDigit(c)) || (IsLetter(text_[at]) && IsLetter(c));
      };
      while (end < text_.size() && same_kind(text_[end])) ++end;
    }
    const Token after{.text = text_.substr(at, end - at), .at = at, .glued = at == taken_until_};
    return std::exchange(next_, after);
  }

  bool TakeIf(std::string_view expected) {
    if (next_.text != expected) return false;
    Take();
    return true;
  }

  std::string_view TakenSince(std::size_t start) const {
    return text_.substr(start, taken_until_ - start);
  }

  bool Expected(std::string_view expected) {
    return Fail(next_.at, "found " + (next_.text.empty() ? "the end" : Quoted(next_.text)) +
                              ", expected " + std::string(expected));
  }

  bool Fail(std::size_t at, const std::string& problem) {
    error_ = {ErrorCode::kInvalidArgument,
              "limit " + Quoted(text_) + ": column " + std::to_string(at + 1) + ": " + problem};
    return false;
  }

  const std::string_view text_;
  LimitSpec spec_;
  Token next_;
  std::size_t taken_until_ = 0;
  Error error_;
};

}  // namespace

Result<Limit> Limit::Parse(std::string_view text, LimitSpec defaults) {
  return LimitReader(text, std::move(defaults)).Read();
}

}  // namespace weir
