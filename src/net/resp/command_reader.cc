#include "net/resp/command_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "net/resp/words.h"

namespace weir::resp {
namespace {

using CommandKind = CommandReading::Kind;
using Problem = CommandReading::Problem;

// "$0\r\n\r\n": no argument is shorter.
constexpr std::size_t kShortestArgument = 6;
// Of a length; more than anybody may send.
constexpr std::ptrdiff_t kMostDigits = 10;

enum class Line : std::uint8_t { kComplete, kIncomplete, kBad };

inline std::uint32_t FourBytes(const char* at) noexcept {
  std::uint32_t bytes;
  std::memcpy(&bytes, at, 4);
  return bytes;
}

// A type, one or two digits and a line end, which are nearly all headers there are. They are looked
// at together, because this is where most of the time goes. `at` moves behind them. False if there
// is something else, or too little to tell; then the header has to be read byte by byte.
template <char kType>
inline bool ReadShortHeader(const char*& at, const char* end, std::size_t& number) noexcept {
  if constexpr (std::endian::native != std::endian::little) return false;
  if (end - at < 5) return false;
  // Taking "$0\r\n" from "$7\r\n" leaves a 7 in the second byte, and no other bytes leave that.
  constexpr std::uint32_t kZero = kType | '0' << 8 | '\r' << 16 | '\n' << 24;
  const std::uint32_t digit = std::rotr(FourBytes(at) - kZero, 8);
  if (digit <= 9) {
    at += 4;
    number = digit;
    return true;
  }
  // Taking "00\r\n" from "75\r\n" leaves 7 and 5.
  constexpr std::uint32_t kTwoZeros = '0' | '0' << 8 | '\r' << 16 | '\n' << 24;
  const std::uint32_t digits = FourBytes(at + 1) - kTwoZeros;
  const std::uint32_t tens = digits & 0xff;
  const std::uint32_t ones = digits >> 8;
  if (*at != kType || tens == 0 || tens > 9 || ones > 9) return false;
  at += 5;
  number = tens * 10 + ones;
  return true;
}

// Digits and a line end. `at` moves behind them if they are complete. As in Redis no zero may lead.
Line ReadNumber(const char*& at, const char* end, std::size_t& number) noexcept {
  const char* p = at;
  std::size_t value = 0;
  for (; p != end; ++p) {
    const unsigned digit = static_cast<unsigned char>(*p) - unsigned{'0'};
    if (digit > 9) break;
    if (p - at >= kMostDigits) return Line::kBad;
    value = value * 10 + digit;
  }
  if (p == end) return Line::kIncomplete;
  if (*p != '\r' || p == at || (*at == '0' && p - at > 1)) return Line::kBad;
  if (p + 1 == end) return Line::kIncomplete;
  if (p[1] != '\n') return Line::kBad;
  at = p + 2;
  number = value;
  return Line::kComplete;
}

constexpr CommandReading Malformed(Problem problem, char got = 0) noexcept {
  return {.kind = CommandKind::kMalformed, .problem = problem, .got = got};
}

constexpr CommandReading TooLarge(Problem problem) noexcept {
  return {.kind = CommandKind::kTooLarge, .problem = problem};
}

}  // namespace

// On the way through the arguments of an array.
struct CommandReader::Walk {
  const char* begin;
  const char* at;  // Where the next argument begins.
  const char* end;
  std::size_t left;  // Arguments from there on.
  std::size_t most;  // Bytes.

  CommandReading reading{};  // kCommand if nothing stopped it.
  std::size_t awaited = 0;   // kIncomplete within a text: where that ends.

  // Goes on to the end of the last argument, as far as the bytes go. `words` is where to put the
  // arguments, or null.
  void Go(std::string_view* words) noexcept {
    reading.kind = CommandKind::kCommand;
    while (left > 0) {
      const char* text = at;
      std::size_t length = 0;
      if (!ReadShortHeader<'$'>(text, end, length) && !ReadHeader(text, length)) return;
      const auto rest = static_cast<std::size_t>(end - text);
      if (rest < length + 2) [[unlikely]]
        return StopWithin(text, length);
      if (std::memcmp(text + length, "\r\n", 2) != 0) [[unlikely]]
        return Stop(Malformed(Problem::kNoLineEnd));
      if (words != nullptr) *words++ = {text, length};
      at = text + length + 2;
      --left;
    }
  }

  std::size_t passed() const noexcept { return static_cast<std::size_t>(at - begin); }

 private:
  // The length of the next argument, however it is written. False: nothing can be read.
  bool ReadHeader(const char*& text, std::size_t& length) noexcept {
    if (text != end && *text != '$') {
      Stop(Malformed(Problem::kNoDollar, *text));
      return false;
    }
    const Line line = text == end ? Line::kIncomplete : ReadNumber(++text, end, length);
    if (line == Line::kBad) Stop(Malformed(Problem::kLength));
    if (line == Line::kIncomplete) Stop({.wants = Least()});
    return line == Line::kComplete;
  }

  void Stop(const CommandReading& with) noexcept { reading = with; }
  // How many bytes it takes at least to have all that is left.
  std::size_t Least() const noexcept { return passed() + left * kShortestArgument; }

  void StopWithin(const char* text, std::size_t length) noexcept {
    awaited = static_cast<std::size_t>(text - begin) + length + 2;
    const std::size_t whole = awaited + (left - 1) * kShortestArgument;
    Stop(whole > most ? TooLarge(Problem::kTooManyBytes) : CommandReading{.wants = whole});
  }
};

CommandReading CommandReader::Read(std::span<char> input, std::span<std::string_view> room,
                                   const CommandBounds& bounds) noexcept {
  if (input.size() < std::max<std::size_t>(awaited_, 1)) return {.wants = wants_};
  // What lies beyond cannot belong to a command that is small enough.
  const std::span<char> seen = input.first(std::min(input.size(), bounds.bytes));
  // The bounds may have become narrower meanwhile.
  if (scanned_ > seen.size()) return TooLarge(Problem::kTooManyBytes);
  if (seen.front() != '*') return ReadLine(seen, room, bounds);
  const std::string_view text(seen.data(), seen.size());
  return scanned_ == 0 ? ReadArray(text, room, bounds) : Resume(text, room, bounds);
}

CommandReading CommandReader::ReadArray(std::string_view input, std::span<std::string_view> room,
                                        const CommandBounds& bounds) noexcept {
  const char* const end = input.data() + input.size();
  const char* at = input.data();
  std::size_t count = 0;
  // A negative count is that of no command, as in Redis.
  bool negative = false;
  if (!ReadShortHeader<'*'>(at, end, count)) {
    ++at;
    negative = at != end && *at == '-';
    if (negative) ++at;
    const Line line = ReadNumber(at, end, count);
    if (line == Line::kIncomplete) return Incomplete(input.size() + 1, input, bounds);
    if (line == Line::kBad) return Malformed(Problem::kCount);
  }
  const auto header = static_cast<std::size_t>(at - input.data());
  if (negative || count == 0) {
    Forget();
    return {.kind = CommandKind::kCommand, .used = header};
  }
  if (count > bounds.arguments) return TooLarge(Problem::kTooManyArguments);
  if (header + count * kShortestArgument > bounds.bytes) return TooLarge(Problem::kTooManyBytes);
  if (count > room.size()) return {.kind = CommandKind::kNoRoom};

  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): its end is there too.
  Walk walk{.begin = input.data(), .at = at, .end = end, .left = count, .most = bounds.bytes};
  walk.Go(room.data());
  walk.reading.arguments = count;
  return Ended(walk, input, bounds);
}

CommandReading CommandReader::Resume(std::string_view input, std::span<std::string_view> room,
                                     const CommandBounds& bounds) noexcept {
  Walk walk{.begin = input.data(),
            .at = input.data() + scanned_,
            .end = input.data() + input.size(),
            .left = left_,
            .most = bounds.bytes};
  walk.Go(nullptr);
  if (walk.reading.kind != CommandKind::kCommand) return Ended(walk, input, bounds);
  return ReadArray(input.substr(0, walk.passed()), room, bounds);
}

CommandReading CommandReader::Ended(const Walk& walk, std::string_view input,
                                    const CommandBounds& bounds) noexcept {
  CommandReading reading = walk.reading;
  if (reading.kind == CommandKind::kCommand) [[likely]] {
    Forget();
    reading.used = walk.passed();
  } else if (reading.kind == CommandKind::kIncomplete) {
    scanned_ = walk.passed();
    left_ = walk.left;
    awaited_ = walk.awaited;
    return Incomplete(reading.wants, input, bounds);
  }
  return reading;
}

CommandReading CommandReader::Incomplete(std::size_t wants, std::string_view input,
                                         const CommandBounds& bounds) noexcept {
  wants_ = std::max(wants, input.size() + 1);
  if (wants_ > bounds.bytes) return TooLarge(Problem::kTooManyBytes);
  return {.wants = wants_};
}

CommandReading CommandReader::ReadLine(std::span<char> input, std::span<std::string_view> room,
                                       const CommandBounds& bounds) noexcept {
  const std::string_view text(input.data(), input.size());
  const std::size_t line_end = text.find('\n', scanned_);
  if (line_end == std::string_view::npos) {
    scanned_ = text.size();
    return Incomplete(text.size() + 1, text, bounds);
  }
  if (room.size() < bounds.arguments) return {.kind = CommandKind::kNoRoom};
  Forget();
  const std::size_t length = line_end > 0 && text[line_end - 1] == '\r' ? line_end - 1 : line_end;
  const Words words = SplitWords(input.first(length), room.first(bounds.arguments));
  if (words.outcome == Words::Outcome::kUnbalancedQuotes) return Malformed(Problem::kQuotes);
  if (words.outcome == Words::Outcome::kTooMany) return TooLarge(Problem::kTooManyArguments);
  return {.kind = CommandKind::kCommand, .used = line_end + 1, .arguments = words.count};
}

std::string ErrorText(const CommandReading& reading) {
  switch (reading.problem) {
    case Problem::kCount:
      return "Protocol error: invalid multibulk length";
    case Problem::kLength:
      return "Protocol error: invalid bulk length";
    case Problem::kNoDollar: {
      const bool printable = reading.got > ' ' && reading.got <= '~';
      return std::string("Protocol error: expected '$', got '") + (printable ? reading.got : ' ') +
             "'";
    }
    case Problem::kNoLineEnd:
      return "Protocol error: an argument is not followed by a line end";
    case Problem::kQuotes:
      return "Protocol error: unbalanced quotes in request";
    case Problem::kTooManyArguments:
      return "Protocol error: too large: more arguments than a command may have";
    case Problem::kTooManyBytes:
      return "Protocol error: too large: more bytes than a command may have";
    case Problem::kNone:
      break;
  }
  return "Protocol error";
}

}  // namespace weir::resp
