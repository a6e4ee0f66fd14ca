// The head of an HTTP/1 request: its first line and its headers, as views of the bytes they stand
// in, or of a copy of the same. Strict by RFC 9112; what is ambiguous about where a request ends is
// refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weir/request.h>

#include "net/http/field_line.h"
#include "net/http/head_memo.h"

namespace weir {

enum class HttpVersion : std::uint8_t { k10, k11 };

struct HttpHead {
  static constexpr std::size_t kMostFields = 100;

  HttpHead() = default;
  HttpHead(const HttpHead&) = delete;  // Its views may be of its own memo.
  HttpHead& operator=(const HttpHead&) = delete;

  std::string_view method{};
  std::string_view target{};  // As it was sent.
  HttpVersion version = HttpVersion::k11;
  bool keep_alive = true;
  bool chunked = false;
  bool expects_continue = false;
  bool has_host = false;
  bool has_length = false;
  bool has_expect = false;
  bool says_keep_alive = false;  // Connection, as it was sent.
  bool says_close = false;
  std::uint64_t length = 0;        // Of the body, unless it is chunked,
  std::string_view length_text{};  // as it was sent.
  std::size_t size = 0;            // Bytes up to and with the empty line.
  std::string_view host{};
  std::string_view authorization{};
  std::string_view weir_token{};  // Of our own: Authorization may be the token of somebody else.
  bool has_cookie = false;
  std::string_view accept{};  // The first, if there are several.

  std::size_t field_count = 0;
  std::array<NamedValue, kMostFields> fields;

  std::span<const NamedValue> headers() const noexcept { return {fields.data(), field_count}; }

  HttpHeadMemo memo{};
  bool is_of_memo = false;  // All of the above was parsed from there.
};

// The path and the query of a target, be it /path?query or http://host/path?query.
struct HttpTarget {
  std::string_view path{};
  std::string_view query{};
};
HttpTarget SplitTarget(std::string_view target) noexcept;

class HttpHeadParser {
 public:
  enum class Outcome : std::uint8_t { kIncomplete, kComplete, kFault };

  // Reads the head that begins with `bytes`. Goes from left to right, so that a fault is the same
  // however much of the request is there already. `head` may hold what was read last, by whomever:
  // then one that says the same again is not parsed again.
  Outcome Parse(std::string_view bytes, HttpHead& head) noexcept;
  const HttpFault& fault() const noexcept { return fault_; }

 private:
  Outcome ParseAnew(std::string_view bytes, HttpHead& head) noexcept;
  Outcome ParseFirstLine() noexcept;
  Outcome ParseVersion(const char* version) noexcept;
  bool NoteField(std::string_view name, std::string_view value) noexcept;
  bool NoteConnection(std::string_view value, bool counts) noexcept;
  bool NoteLength(std::string_view value) noexcept;
  bool NoteTransferEncoding(std::string_view value) noexcept;
  bool NoteExpect(std::string_view value) noexcept;
  bool NoteHost(std::string_view value) noexcept;
  bool NoteAuthorization(std::string_view value) noexcept;
  bool NoteWeirToken(std::string_view value) noexcept;
  Outcome Finish() noexcept;

  Outcome Fault(std::string_view message, int status = 400) noexcept {
    fault_ = {.status = status, .message = message};
    return Outcome::kFault;
  }
  bool Refuse(std::string_view message, int status = 400) noexcept {
    Fault(message, status);
    return false;
  }

  const char* begin_ = nullptr;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  HttpHead* head_ = nullptr;
  HttpFault fault_{};
};

}  // namespace weir
