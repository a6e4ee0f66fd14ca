#include "replies.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "harness/require.h"

namespace weir::bench {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

// The number behind the type of a RESP line.
std::int64_t NumberIn(std::string_view line) {
  std::int64_t number = 0;
  std::from_chars(line.data() + 1, line.data() + line.size(), number);
  return number;
}

// Those that let a request through begin like this.
std::string_view Beginning(RequestKind kind) {
  switch (kind) {
    case RequestKind::kIncr:
      return ":";
    case RequestKind::kThrottle:
      return "*5\r\n:0\r\n";
    case RequestKind::kCheck:
      return "*";
    default:
      return "HTTP/1.1 200 ";
  }
}
// And hold this.
std::string_view Content(RequestKind kind) {
  switch (kind) {
    case RequestKind::kIncr:
      return ":";
    case RequestKind::kThrottle:
      return ":100000\r\n";
    case RequestKind::kCheck:
      return "$7\r\nallowed\r\n:1\r\n";
    case RequestKind::kHttpCheck:
      return "\"allowed\":true";
    case RequestKind::kHttpAuth:
      return "RateLimit: \"per-user-and-path\"";
    default:
      return "";
  }
}

[[noreturn]] void Refuse(std::string_view reply) {
  reply = reply.substr(0, 1000);
  std::fprintf(stderr, "benchmark: not the reply that was expected:\n%.*s\n",
               static_cast<int>(reply.size()), reply.data());
  std::abort();
}

std::size_t Count(std::string_view text, char c) noexcept {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

}  // namespace

std::optional<std::size_t> RespReplyBytes(std::string_view text) {
  const std::size_t line = text.find(kLineEnd);
  if (line == std::string_view::npos) return std::nullopt;
  std::size_t bytes = line + kLineEnd.size();
  const std::int64_t number = NumberIn(text.substr(0, line));
  switch (text.front()) {
    case '$':
      if (number < 0) return bytes;
      bytes += static_cast<std::size_t>(number) + kLineEnd.size();
      return bytes <= text.size() ? std::optional(bytes) : std::nullopt;
    case '*':
      for (std::int64_t i = 0; i < number; ++i) {
        const std::optional<std::size_t> item = RespReplyBytes(text.substr(bytes));
        if (!item) return std::nullopt;
        bytes += *item;
      }
      return bytes;
    default:
      return bytes;
  }
}

std::optional<std::size_t> HttpReplyBytes(std::string_view text) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const std::size_t head = text.find(kHeadEnd);
  if (head == std::string_view::npos) return std::nullopt;
  const std::size_t length = text.substr(0, head).find(kLength);
  if (length == std::string_view::npos) Refuse(text);
  std::size_t body = 0;
  std::from_chars(text.data() + length + kLength.size(), text.data() + head, body);
  const std::size_t bytes = head + kHeadEnd.size() + body;
  return bytes <= text.size() ? std::optional(bytes) : std::nullopt;
}

ReplyShape::ReplyShape(RequestKind kind, std::string_view reply) : kind_(kind) {
  if (!Fits(reply)) Refuse(reply);
  lines_ = Count(reply, '\n');
  marker_ = kind == RequestKind::kCheck ? '*' : ':';
  markers_ = Count(reply, marker_);
}

bool ReplyShape::Fits(std::string_view reply) const noexcept {
  return reply.starts_with(Beginning(kind_)) &&
         reply.find(Content(kind_)) != std::string_view::npos;
}

bool ReplyShape::FitsAll(std::string_view text, std::size_t count) const noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<std::size_t> bytes = http() ? HttpReplyBytes(text) : RespReplyBytes(text);
    if (!bytes || !Fits(text.substr(0, *bytes))) return false;
    text.remove_prefix(*bytes);
  }
  return text.empty();
}

std::size_t ReplyCounter::Add(const ReplyShape& shape, std::string_view bytes) {
  // A power of two, and often enough to find what goes wrong for one key in a thousand.
  constexpr std::size_t kCarefully = 256;
  const bool whole = IsBetweenReplies();
  if (whole && (bytes.front() == '-' || bytes.front() == '!')) Refuse(bytes);
  const std::size_t complete = shape.http() ? AddHttp(bytes) : AddResp(shape, bytes);
  if (whole && IsBetweenReplies() && ++batches_ % kCarefully == 0 &&
      !shape.FitsAll(bytes, complete)) {
    Refuse(bytes);
  }
  return complete;
}

std::size_t ReplyCounter::AddResp(const ReplyShape& shape, std::string_view bytes) {
  lines_ += Count(bytes, '\n');
  markers_ += Count(bytes, shape.marker());
  // Exact at the end of a reply; in the middle of one there may be some markers more.
  const std::size_t complete = lines_ / shape.lines();
  if (markers_ < complete * shape.markers()) Refuse(bytes);
  lines_ -= complete * shape.lines();
  markers_ -= complete * shape.markers();
  if (lines_ == 0 && bytes.back() == '\n' && markers_ != 0) Refuse(bytes);
  return complete;
}

std::size_t ReplyCounter::AddHttp(std::string_view bytes) {
  std::size_t complete = 0;
  if (!rest_.empty()) {
    rest_ += bytes;
    bytes = rest_;
  }
  while (const std::optional<std::size_t> reply = HttpReplyBytes(bytes)) {
    if (!bytes.starts_with(Beginning(RequestKind::kHttpGet))) Refuse(bytes);
    bytes.remove_prefix(*reply);
    ++complete;
  }
  rest_ = std::string(bytes);
  return complete;
}

}  // namespace weir::bench
