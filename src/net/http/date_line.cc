#include "net/http/date_line.h"

#include <algorithm>

#include "net/http/response_writer.h"

namespace weir {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void PutTwoDigits(RoomyText& out, long number) noexcept {
  out.Put(static_cast<char>('0' + number / 10 % 10));
  out.Put(static_cast<char>('0' + number % 10));
}

}  // namespace

void HttpDateLine::Write(std::chrono::sys_seconds time) noexcept {
  using std::chrono::sys_days;
  constexpr std::chrono::sys_seconds kFirst = sys_days(std::chrono::year(0) / 1 / 1);
  constexpr std::chrono::sys_seconds kEnd = sys_days(std::chrono::year(10'000) / 1 / 1);
  time_ = time;
  const auto told = std::clamp(time, kFirst, kEnd - std::chrono::seconds(1));
  const auto day = std::chrono::floor<std::chrono::days>(told);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(told - day);
  const int year = static_cast<int>(date.year());
  RoomyText out(line_.data());
  out.Put("Date: ");
  out.Put(kDays[std::chrono::weekday(day).c_encoding()]);
  out.Put(", ");
  PutTwoDigits(out, static_cast<long>(static_cast<unsigned>(date.day())));
  out.Put(' ');
  out.Put(kMonths[static_cast<unsigned>(date.month()) - 1]);
  out.Put(' ');
  PutTwoDigits(out, year / 100);
  PutTwoDigits(out, year % 100);
  out.Put(' ');
  PutTwoDigits(out, clock.hours().count());
  out.Put(':');
  PutTwoDigits(out, clock.minutes().count());
  out.Put(':');
  PutTwoDigits(out, clock.seconds().count());
  out.Put(" GMT\r\n");
}

}  // namespace weir
