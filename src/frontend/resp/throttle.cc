#include "frontend/resp/throttle.h"

#include <array>
#include <string>

#include "base/ticks.h"
#include "frontend/invalid_argument.h"
#include "limit/limit_words.h"
#include "net/resp/writer.h"

namespace weir::resp {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"key", "max_burst", "count", "period",
                                                    "quantity"};

// False if it is none, or one that nothing here accepts: up to 18 digits cannot overflow.
bool ReadInteger(std::string_view text, std::int64_t& number) noexcept {
  constexpr std::size_t kMostDigits = 18;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > kMostDigits) return false;
  std::int64_t value = 0;
  for (const char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  number = negative ? -value : value;
  return true;
}

std::unexpected<Error> NotAllowed(std::size_t field, std::string_view text, std::int64_t least,
                                  std::int64_t most) {
  return std::unexpected(InvalidArgument(std::string(kNames[field]) + ": " + Quoted(text) +
                                         " is not allowed; write a whole number from " +
                                         std::to_string(least) + " to " + std::to_string(most)));
}

// Up only if there is a whole millisecond; what is less is dropped.
std::int64_t CellSeconds(Duration length) noexcept {
  const std::int64_t milliseconds = length.count() / 1'000'000;
  return milliseconds / 1000 + (milliseconds % 1000 > 0 ? 1 : 0);
}

struct FiveIntegers {
  std::int64_t verdict;
  std::int64_t limit;
  std::int64_t remaining;
  std::int64_t first_time;
  std::int64_t second_time;
};

FiveIntegers CellReply(const ThrottleCall& call, const Decision& decision) noexcept {
  FiveIntegers reply{.verdict = decision.allowed ? 0 : 1,
                     .limit = decision.limit,
                     .remaining = decision.remaining,
                     .first_time = -1,
                     .second_time = CellSeconds(decision.reset_after)};
  if (call.quantity > 0) {
    const bool later = !decision.allowed && decision.retry_after != kNever;
    if (later) reply.first_time = CellSeconds(decision.retry_after);
  } else {
    const Duration excess = decision.reset_after - ToDuration(Ticks(call.burst_tolerance));
    const bool limited = excess > Duration(0) && call.quantity == 0;
    reply.verdict = limited ? 1 : 0;
    if (limited) reply.first_time = CellSeconds(excess);
  }
  return reply;
}

FiveIntegers CrabReply(const Decision& decision) noexcept {
  using std::chrono::seconds;
  const std::int64_t retry_after =
      decision.retry_after == kNever ? -1 : RoundUpTo<seconds>(decision.retry_after);
  return {.verdict = decision.allowed ? 1 : 0,
          .limit = decision.limit,
          .remaining = decision.remaining,
          .first_time = RoundUpTo<seconds>(decision.reset_after),
          .second_time = retry_after};
}

}  // namespace

Result<ThrottleWords> ReadThrottleWords(ThrottleStyle style,
                                        std::span<const std::string_view> words) {
  const bool cell = style == ThrottleStyle::kRedisCell;
  std::array<std::int64_t, 5> numbers = {0, 0, 0, 0, 1};
  for (std::size_t i = 1; i < words.size(); ++i) {
    // One less than the largest bucket for redis-cell, because it counts one more.
    const std::int64_t most = cell && i == 1 ? kMaxCount - 1 : kMaxCount;
    const std::int64_t least = i == 4 ? (cell ? -kMaxCount : 0) : (cell && i == 1 ? 0 : 1);
    const bool read = ReadInteger(words[i], numbers[i]);
    if (cell && read && numbers[i] == 0 && (i == 2 || i == 3)) {
      return std::unexpected(InvalidArgument("Cell error: Zero rates are not supported"));
    }
    if (!read || numbers[i] < least || numbers[i] > most) [[unlikely]]
      return NotAllowed(i, words[i], least, most);
  }
  return ThrottleWords{.bucket = {.capacity = cell ? numbers[1] + 1 : numbers[1],
                                  .count = numbers[2],
                                  .seconds = numbers[3]},
                       .quantity = numbers[4]};
}

LimitRequest ThrottleRequest(ThrottleStyle style, std::string_view key, const Limit* limit,
                             std::int64_t quantity) noexcept {
  LimitRequest request{.key = key, .limit = limit, .cost = quantity};
  if (quantity < 0) {
    request.cost = -quantity;
    request.verb = LimitRequest::Verb::kRefund;
  } else if (quantity == 0 && style == ThrottleStyle::kRedisCell) {
    request.cost = 1;
    request.verb = LimitRequest::Verb::kPeek;
  }
  return request;
}

void WriteThrottleReply(ByteBuffer& out, const ThrottleCall& call, const Decision& decision) {
  const FiveIntegers reply =
      call.style == ThrottleStyle::kRedisCell ? CellReply(call, decision) : CrabReply(decision);
  char* at = out.Room(5 * (kMostDecimalBytes + 3) + 8);
  at = PutDecimal(PutText(at, "*5\r\n:"), reply.verdict);
  at = PutDecimal(PutText(at, "\r\n:"), reply.limit);
  at = PutDecimal(PutText(at, "\r\n:"), reply.remaining);
  at = PutDecimal(PutText(at, "\r\n:"), reply.first_time);
  at = PutDecimal(PutText(at, "\r\n:"), reply.second_time);
  out.WroteUpTo(PutText(at, "\r\n"));
}

}  // namespace weir::resp
