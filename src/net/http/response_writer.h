// Writes HTTP/1 responses: the status line, headers, a Content-Length and a body.
//
//   HttpResponseWriter response(out, {.status = 200, .room = 64});
//   response.Header("Content-Type", "application/json");
//   response.Finish("{}");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/byte_buffer.h"
#include "net/roomy_text.h"

namespace weir {

// "HTTP/1.1 200 OK\r\n"; a status that has no name here is a bug, and written as 500.
std::string_view HttpStatusLine(int status) noexcept;
// "OK"
std::string_view HttpStatusName(int status) noexcept;

// What a response says about the connection: nothing, which is keep-alive in HTTP/1.1; that it goes
// on, which HTTP/1.0 wants to hear; or that it ends.
enum class HttpPersistence : std::uint8_t { kDefault, kKeepAlive, kClose };

class HttpResponseWriter {
 public:
  struct Options {
    int status = 200;
    HttpPersistence persistence = HttpPersistence::kDefault;
    bool without_body = false;  // The answer to HEAD: as for GET, but for the body itself.
    std::size_t room = 0;       // For all headers together, CR LF and colons included.
    std::string_view date{};    // The line, of a HttpDateLine.
  };
  HttpResponseWriter(ByteBuffer& out, const Options& options);

  void Header(std::string_view name, std::string_view value) noexcept;
  // Headers that are written by others: whole lines.
  RoomyText& lines() noexcept { return text_; }

  void Finish(std::string_view body);

 private:
  static constexpr std::size_t kOwnRoom = 192;  // Status line, Connection, Date and Content-Length.

  ByteBuffer& out_;
  bool without_body_;
  RoomyText text_;
};

}  // namespace weir
