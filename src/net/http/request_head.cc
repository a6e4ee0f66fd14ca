#include "net/http/request_head.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir {
namespace {

using http_bytes::IsSameName;

// What stands between two blanks of the first line.
bool IsTargetByte(char c) noexcept { return c > ' ' && c < '\x7f'; }

bool IsHostByte(char c) noexcept {
  return (http_bytes::IsToken(c) && c != '#' && c != '^' && c != '`' && c != '|') || c == ':' ||
         c == '[' || c == ']' || c == '(' || c == ')' || c == ';' || c == '=';
}

bool IsDigit(char c) noexcept { return c >= '0' && c <= '9'; }

std::uint64_t NumberIn(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<unsigned>(c - '0');
  return number;
}

}  // namespace

HttpTarget SplitTarget(std::string_view target) noexcept {
  if (!target.starts_with('/')) {
    const std::size_t scheme = target.find("://");
    if (scheme != std::string_view::npos) {
      target.remove_prefix(scheme + 3);
      const std::size_t path = target.find_first_of("/?");
      target = path == std::string_view::npos ? "/" : target.substr(path);
    }
  }
  const std::size_t query = target.find('?');
  if (query == std::string_view::npos) return {.path = target};
  return {.path = target.substr(0, query), .query = target.substr(query + 1)};
}

HttpHeadParser::Outcome HttpHeadParser::Parse(std::string_view bytes, HttpHead& head) noexcept {
  if (head.memo.Recall(bytes)) {
    if (!std::exchange(head.is_of_memo, true)) return ParseAnew(head.memo.text(), head);
    head.length = NumberIn(head.memo.length());
    return Outcome::kComplete;
  }
  head.is_of_memo = false;
  const Outcome outcome = ParseAnew(bytes, head);
  // No secret is kept: whether others send the same could be told by the time that comparing takes.
  const bool has_secret =
      head.has_cookie || !head.authorization.empty() || !head.weir_token.empty();
  if (outcome == Outcome::kComplete && !has_secret) {
    head.memo.Keep(bytes.substr(0, head.size), head.length_text);
  }
  return outcome;
}

HttpHeadParser::Outcome HttpHeadParser::ParseAnew(std::string_view bytes, HttpHead& head) noexcept {
  using Line = HttpFieldLine::Outcome;
  begin_ = p_ = bytes.data();
  end_ = p_ + bytes.size();
  head_ = &head;
  // The array of fields stays as it is: clearing it would cost more than reading a request.
  head.field_count = 0;
  head.length = 0;
  head.chunked = head.expects_continue = head.has_host = head.has_length = head.has_expect =
      head.says_keep_alive = head.says_close = head.has_cookie = false;
  head.host = head.authorization = head.weir_token = head.accept = head.length_text = {};
  const Outcome first = ParseFirstLine();
  if (first != Outcome::kComplete) return first;
  for (;;) {
    const HttpFieldLine line = ReadFieldLine(p_, end_);
    if (line.outcome == Line::kIncomplete) return Outcome::kIncomplete;
    if (line.outcome == Line::kFault) return Fault(line.fault);
    p_ = line.next;
    if (line.outcome == Line::kEnd) return Finish();
    if (head.field_count == HttpHead::kMostFields) return Fault("there are too many headers", 431);
    head.fields[head.field_count++] = {.name = line.name, .value = line.value};
    if (!NoteField(line.name, line.value)) return Outcome::kFault;
  }
}

HttpHeadParser::Outcome HttpHeadParser::ParseFirstLine() noexcept {
  // An empty line before a request is left over from clients that end a body with one.
  if (p_ != end_ && *p_ == '\r') {
    if (end_ - p_ < 2) return Outcome::kIncomplete;
    if (p_[1] != '\n') return Fault("a CR stands without its LF");
    p_ += 2;
  }
  const char* const method = p_;
  while (p_ != end_ && http_bytes::IsToken(*p_)) ++p_;
  if (p_ == end_) return Outcome::kIncomplete;
  if (*p_ != ' ' || p_ == method) return Fault("this is no HTTP request");
  head_->method = {method, static_cast<std::size_t>(p_ - method)};
  const char* const target = ++p_;
  while (p_ != end_ && IsTargetByte(*p_)) ++p_;
  if (p_ == end_) return Outcome::kIncomplete;
  if (static_cast<unsigned char>(*p_) >= 0x80) return Fault("the target has bytes beyond ASCII");
  if (*p_ != ' ' || p_ == target) {
    return Fault("the target has a character that it must not have, or no version behind it");
  }
  head_->target = {target, static_cast<std::size_t>(p_ - target)};
  return ParseVersion(++p_);
}

// Eight characters and CR LF.
HttpHeadParser::Outcome HttpHeadParser::ParseVersion(const char* version) noexcept {
  constexpr std::string_view kNumbers = "HTTP/1.1\r\n";
  const auto there = static_cast<std::size_t>(end_ - version);
  if (there >= kNumbers.size() && std::memcmp(version, kNumbers.data(), kNumbers.size()) == 0) {
    head_->version = HttpVersion::k11;
    p_ = version + kNumbers.size();
    return Outcome::kComplete;
  }
  for (std::size_t i = 0; i < std::min(there, kNumbers.size()); ++i) {
    const bool is_number = i == 5 || i == 7;
    if (is_number ? !IsDigit(version[i]) : version[i] != kNumbers[i]) {
      return Fault("the first line does not end with an HTTP version");
    }
  }
  if (there < kNumbers.size()) return Outcome::kIncomplete;
  if (version[5] != '1' || version[7] > '1') {
    return Fault("HTTP/1.1 and HTTP/1.0 are spoken here", 505);
  }
  head_->version = HttpVersion::k10;
  p_ = version + kNumbers.size();
  return Outcome::kComplete;
}

bool HttpHeadParser::NoteField(std::string_view name, std::string_view value) noexcept {
  switch (name.size()) {
    case 4:
      return !IsSameName(name, "host") || NoteHost(value);
    case 6:
      if (IsSameName(name, "accept") && head_->accept.empty()) head_->accept = value;
      if (IsSameName(name, "cookie")) head_->has_cookie = true;
      return !IsSameName(name, "expect") || NoteExpect(value);
    case 10:
      return !IsSameName(name, "connection") || NoteConnection(value, true);
    case 12:
      return !IsSameName(name, "x-weir-token") || NoteWeirToken(value);
    case 13:
      return !IsSameName(name, "authorization") || NoteAuthorization(value);
    case 14:
      return !IsSameName(name, "content-length") || NoteLength(value);
    case 16:  // Nobody's business here, but others read it like Connection.
      return !IsSameName(name, "proxy-connection") || NoteConnection(value, false);
    case 17:
      return !IsSameName(name, "transfer-encoding") || NoteTransferEncoding(value);
    default:
      return true;
  }
}

bool HttpHeadParser::NoteHost(std::string_view value) noexcept {
  if (head_->has_host) return Refuse("Host is there twice");
  if (!std::ranges::all_of(value, IsHostByte)) return Refuse("Host is no host");
  head_->has_host = true;
  head_->host = value;
  return true;
}

bool HttpHeadParser::NoteAuthorization(std::string_view value) noexcept {
  if (head_->authorization.data() != nullptr) return Refuse("Authorization is there twice");
  head_->authorization = value;
  return true;
}

bool HttpHeadParser::NoteWeirToken(std::string_view value) noexcept {
  if (head_->weir_token.data() != nullptr) return Refuse("X-Weir-Token is there twice");
  head_->weir_token = value;
  return true;
}

// A list of tokens. `close` wins.
bool HttpHeadParser::NoteConnection(std::string_view value, bool counts) noexcept {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    std::string_view word = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));
    while (!word.empty() && http_bytes::IsBlank(word.front())) word.remove_prefix(1);
    while (!word.empty() && http_bytes::IsBlank(word.back())) word.remove_suffix(1);
    if (!std::ranges::all_of(word, http_bytes::IsToken)) return Refuse("Connection is no list");
    if (!counts) continue;
    head_->says_close = head_->says_close || IsSameName(word, "close");
    head_->says_keep_alive = head_->says_keep_alive || IsSameName(word, "keep-alive");
  }
  return true;
}

bool HttpHeadParser::NoteLength(std::string_view value) noexcept {
  constexpr std::size_t kMostDigits = 18;  // Which always fit.
  if (head_->has_length) return Refuse("Content-Length is there twice");
  if (head_->chunked) return Refuse("Content-Length and Transfer-Encoding exclude each other");
  if (value.empty()) return Refuse("Content-Length is empty");
  if (value.contains(',')) return Refuse("Content-Length is a list");
  if (!std::ranges::all_of(value, IsDigit)) return Refuse("Content-Length is no number");
  if (value.size() > kMostDigits) return Refuse("Content-Length has too many digits");
  head_->has_length = true;
  head_->length = NumberIn(value);
  head_->length_text = value;
  return true;
}

bool HttpHeadParser::NoteTransferEncoding(std::string_view value) noexcept {
  if (head_->chunked) return Refuse("Transfer-Encoding is there twice");
  if (head_->has_length) return Refuse("Content-Length and Transfer-Encoding exclude each other");
  if (head_->version == HttpVersion::k10) return Refuse("HTTP/1.0 has no Transfer-Encoding");
  if (!IsSameName(value, "chunked")) return Refuse("Transfer-Encoding must be chunked");
  head_->chunked = true;
  return true;
}

bool HttpHeadParser::NoteExpect(std::string_view value) noexcept {
  constexpr std::string_view kContinue = "100-continue";
  if (head_->has_expect) return Refuse("Expect is there twice");
  head_->has_expect = true;
  const bool known = value.size() == kContinue.size() && value.starts_with("100-") &&
                     IsSameName(value.substr(4), kContinue.substr(4));
  if (!known) return Refuse("only 100-continue can be expected here", 417);
  head_->expects_continue = head_->version == HttpVersion::k11;
  return true;
}

HttpHeadParser::Outcome HttpHeadParser::Finish() noexcept {
  if (!head_->has_host && head_->version == HttpVersion::k11) return Fault("Host is missing");
  head_->keep_alive =
      !head_->says_close && (head_->version == HttpVersion::k11 || head_->says_keep_alive);
  head_->size = static_cast<std::size_t>(p_ - begin_);
  return Outcome::kComplete;
}

}  // namespace weir
