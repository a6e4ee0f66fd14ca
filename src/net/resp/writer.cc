#include "net/resp/writer.h"

#include <charconv>
#include <cmath>

namespace weir::resp {
namespace {

// A type, a number and a line end.
constexpr std::size_t kMostHeaderBytes = kMostDecimalBytes + 3;

char* PutHeader(char* at, char type, std::int64_t number) noexcept {
  // NOLINTNEXTLINE(clang-analyzer-security.ArrayBound): the caller made room for the header.
  *at++ = type;
  return PutText(PutDecimal(at, number), "\r\n");
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

void ReplyWriter::Header(char type, std::int64_t number) {
  out_.WroteUpTo(PutHeader(out_.Room(kMostHeaderBytes), type, number));
}

void ReplyWriter::Line(char type, std::string_view text) {
  char* at = out_.Room(text.size() + 3);
  // NOLINTNEXTLINE(clang-analyzer-security.ArrayBound): the caller made room for the header.
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
