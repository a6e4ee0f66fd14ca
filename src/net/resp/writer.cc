#include "net/resp/writer.h"

#include <array>
#include <charconv>
#include <cmath>

namespace weir::resp {
namespace {

// "00" to "99": a division by 100 gives two digits at once.
using Pair = std::array<char, 2>;
constexpr std::array<Pair, 100> kPairs = [] {
  std::array<Pair, 100> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return pairs;
}();

// Zeros in front included.
inline char* PutTwoDigits(char* at, std::uint32_t number) noexcept {
  std::memcpy(at, kPairs[number].data(), 2);
  return at + 2;
}

inline char* PutFourDigits(char* at, std::uint32_t number) noexcept {
  return PutTwoDigits(PutTwoDigits(at, number / 100), number % 100);
}

// Without zeros in front.
inline char* PutUpToFourDigits(char* at, std::uint32_t number) noexcept {
  if (number >= 1000) return PutFourDigits(at, number);
  if (number >= 100) {
    *at++ = static_cast<char>('0' + number / 100);
    return PutTwoDigits(at, number % 100);
  }
  if (number >= 10) return PutTwoDigits(at, number);
  *at = static_cast<char>('0' + number);
  return at + 1;
}

inline char* PutUpToEightDigits(char* at, std::uint32_t number) noexcept {
  if (number < 10'000) return PutUpToFourDigits(at, number);
  return PutFourDigits(PutUpToFourDigits(at, number / 10'000), number % 10'000);
}

char* PutUnsigned(char* at, std::uint64_t number) noexcept {
  constexpr std::uint64_t kEightDigits = 100'000'000;
  if (number < kEightDigits) return PutUpToEightDigits(at, static_cast<std::uint32_t>(number));
  at = PutUnsigned(at, number / kEightDigits);
  const auto rest = static_cast<std::uint32_t>(number % kEightDigits);
  return PutFourDigits(PutFourDigits(at, rest / 10'000), rest % 10'000);
}

// A type, a number and a line end.
constexpr std::size_t kMostHeaderBytes = kMostIntegerBytes + 3;

char* PutHeader(char* at, char type, std::int64_t number) noexcept {
  *at++ = type;
  return PutText(PutInteger(at, number), "\r\n");
}

char* PutBulk(char* at, std::string_view text) noexcept {
  at = PutHeader(at, '$', static_cast<std::int64_t>(text.size()));
  return PutText(PutText(at, text), "\r\n");
}

std::string_view NameOfOddNumber(double number) noexcept {
  if (std::isnan(number)) return "nan";
  return number > 0 ? "inf" : "-inf";
}

}  // namespace

char* PutLongInteger(char* at, std::int64_t number) noexcept {
  auto magnitude = static_cast<std::uint64_t>(number);
  if (number < 0) {
    *at++ = '-';
    magnitude = 0 - magnitude;
  }
  return PutUnsigned(at, magnitude);
}

void ReplyWriter::Header(char type, std::int64_t number) {
  out_.WroteUpTo(PutHeader(out_.Room(kMostHeaderBytes), type, number));
}

void ReplyWriter::Line(char type, std::string_view text) {
  char* at = out_.Room(text.size() + 3);
  *at++ = type;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    *at++ = control ? ' ' : c;
  }
  out_.WroteUpTo(PutText(at, "\r\n"));
}

void ReplyWriter::Bulk(std::string_view text) {
  out_.WroteUpTo(PutBulk(out_.Room(text.size() + kMostHeaderBytes + 2), text));
}

void ReplyWriter::Null() { out_.Append(is_resp3() ? "_\r\n" : "$-1\r\n"); }

void ReplyWriter::Boolean(bool value) {
  if (is_resp3()) return out_.Append(value ? "#t\r\n" : "#f\r\n");
  Integer(value ? 1 : 0);
}

void ReplyWriter::Double(double number) {
  char digits[32];
  std::string_view text = NameOfOddNumber(number);
  if (std::isfinite(number)) {
    const char* end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    text = {digits, static_cast<std::size_t>(end - digits)};
  }
  if (is_resp3()) return Line(',', text);
  Bulk(text);
}

void ReplyWriter::Map(std::size_t pairs) {
  if (!is_resp3()) return Array(pairs * 2);
  Header('%', static_cast<std::int64_t>(pairs));
}

void ReplyWriter::Set(std::size_t items) {
  Header(is_resp3() ? '~' : '*', static_cast<std::int64_t>(items));
}

void ReplyWriter::Push(std::size_t items) {
  Header(is_resp3() ? '>' : '*', static_cast<std::int64_t>(items));
}

void WriteCommand(ByteBuffer& out, std::span<const std::string_view> words) {
  std::size_t most = kMostHeaderBytes;
  for (const std::string_view word : words) most += word.size() + kMostHeaderBytes + 2;
  char* at = PutHeader(out.Room(most), '*', static_cast<std::int64_t>(words.size()));
  for (const std::string_view word : words) at = PutBulk(at, word);
  out.WroteUpTo(at);
}

}  // namespace weir::resp
