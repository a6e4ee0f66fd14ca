#include "net/http/chunked_body.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir {
namespace {

constexpr int kNoDigit = -1;

int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : kNoDigit;
}

// What says where a request ends, or what becomes of its connection, has no business behind it.
bool IsFramingName(std::string_view name) noexcept {
  static constexpr std::array<std::string_view, 5> kNames = {
      "content-length", "transfer-encoding", "host", "connection", "proxy-connection"};
  return std::ranges::any_of(
      kNames, [&](std::string_view framing) { return http_bytes::IsSameName(name, framing); });
}

}  // namespace

ChunkedBody::Outcome ChunkedBody::Read(std::span<char> bytes, const Bounds& bounds) noexcept {
  for (;;) {
    if (expects_ == Expects::kData) {
      MoveData(bytes);
      if (expects_ == Expects::kData) return Outcome::kIncomplete;
    }
    // Nothing is looked at beyond the bound, so that it does not matter how much is there already.
    const std::size_t allowed = bounds.overhead - std::min(bounds.overhead, raw_ - decoded_);
    const std::string_view rest(bytes.data() + raw_, std::min(allowed, bytes.size() - raw_));
    const Outcome step = ReadLine(rest, bounds);
    if (step == Outcome::kIncomplete && rest.size() == allowed) {
      return Fault("the body is cut into too many chunks", 413);
    }
    if (step != Outcome::kComplete) return step;
    if (expects_ == Expects::kNothing) return Outcome::kComplete;
  }
}

ChunkedBody::Outcome ChunkedBody::ReadLine(std::string_view rest, const Bounds& bounds) noexcept {
  switch (expects_) {
    case Expects::kSize:
      return ReadSize(rest, bounds);
    case Expects::kDataEnd:
      return ReadDataEnd(rest);
    default:
      return ReadTrailer(rest);
  }
}

ChunkedBody::Outcome ChunkedBody::ReadSize(std::string_view rest, const Bounds& bounds) noexcept {
  constexpr std::size_t kMostDigits = 15;  // Which always fit.
  std::size_t digits = 0;
  std::size_t size = 0;
  for (; digits < rest.size() && HexDigit(rest[digits]) != kNoDigit; ++digits) {
    if (digits == kMostDigits) return Fault("a chunk's size has too many digits");
    size = size * 16 + static_cast<std::size_t>(HexDigit(rest[digits]));
  }
  if (digits == rest.size()) return Outcome::kIncomplete;
  if (digits == 0) return Fault("a chunk has no size");
  if (rest[digits] == ';') return Fault("chunk extensions are not accepted");
  if (rest[digits] != '\r') return Fault("a chunk's size is no number");
  if (digits + 1 == rest.size()) return Outcome::kIncomplete;
  if (rest[digits + 1] != '\n') return Fault("a CR stands without its LF");
  if (size > bounds.body - std::min(bounds.body, decoded_))
    return Fault("the body is too large", 413);
  raw_ += digits + 2;
  chunk_ = size;
  expects_ = size == 0 ? Expects::kTrailer : Expects::kData;
  return Outcome::kComplete;
}

void ChunkedBody::MoveData(std::span<char> bytes) noexcept {
  const std::size_t count = std::min(chunk_, bytes.size() - raw_);
  std::memmove(bytes.data() + decoded_, bytes.data() + raw_, count);
  raw_ += count;
  decoded_ += count;
  chunk_ -= count;
  if (chunk_ == 0) expects_ = Expects::kDataEnd;
}

ChunkedBody::Outcome ChunkedBody::ReadDataEnd(std::string_view rest) noexcept {
  if (!rest.empty() && rest[0] != '\r') return Fault("a chunk is longer than its size");
  if (rest.size() < 2) return Outcome::kIncomplete;
  if (rest[1] != '\n') return Fault("a CR stands without its LF");
  raw_ += 2;
  expects_ = Expects::kSize;
  return Outcome::kComplete;
}

ChunkedBody::Outcome ChunkedBody::ReadTrailer(std::string_view rest) noexcept {
  using Line = HttpFieldLine::Outcome;
  if (std::memchr(rest.data() + searched_, '\n', rest.size() - searched_) == nullptr) {
    searched_ = rest.size();
    return Outcome::kIncomplete;
  }
  searched_ = 0;
  const HttpFieldLine line = ReadFieldLine(rest.data(), rest.data() + rest.size());
  if (line.outcome == Line::kFault) return Fault(line.fault);
  if (line.outcome == Line::kIncomplete) return Outcome::kIncomplete;
  raw_ += static_cast<std::size_t>(line.next - rest.data());
  if (line.outcome == Line::kEnd) {
    expects_ = Expects::kNothing;
  } else if (IsFramingName(line.name)) {
    return Fault("a trailer must not say how the request is framed");
  }
  return Outcome::kComplete;
}

}  // namespace weir
