#include "net/http/response_writer.h"

#include <algorithm>
#include <array>

namespace weir {
namespace {

struct Status {
  int number;
  std::string_view line;
};
constexpr std::array<Status, 19> kStatuses = {{
    {200, "HTTP/1.1 200 OK\r\n"},
    {400, "HTTP/1.1 400 Bad Request\r\n"},
    {401, "HTTP/1.1 401 Unauthorized\r\n"},
    {403, "HTTP/1.1 403 Forbidden\r\n"},
    {404, "HTTP/1.1 404 Not Found\r\n"},
    {405, "HTTP/1.1 405 Method Not Allowed\r\n"},
    {408, "HTTP/1.1 408 Request Timeout\r\n"},
    {409, "HTTP/1.1 409 Conflict\r\n"},
    {411, "HTTP/1.1 411 Length Required\r\n"},
    {413, "HTTP/1.1 413 Content Too Large\r\n"},
    {415, "HTTP/1.1 415 Unsupported Media Type\r\n"},
    {417, "HTTP/1.1 417 Expectation Failed\r\n"},
    {429, "HTTP/1.1 429 Too Many Requests\r\n"},
    {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
    {500, "HTTP/1.1 500 Internal Server Error\r\n"},
    {501, "HTTP/1.1 501 Not Implemented\r\n"},
    {503, "HTTP/1.1 503 Service Unavailable\r\n"},
    {504, "HTTP/1.1 504 Gateway Timeout\r\n"},
    {505, "HTTP/1.1 505 HTTP Version Not Supported\r\n"},
}};
constexpr int kServerError = 500;

}  // namespace

std::string_view HttpStatusLine(int status) noexcept {
  if (status == kStatuses.front().number) return kStatuses.front().line;
  const auto* found = std::ranges::find(kStatuses, status, &Status::number);
  return found != kStatuses.end() ? found->line : HttpStatusLine(kServerError);
}

std::string_view HttpStatusName(int status) noexcept {
  constexpr std::size_t kBefore = std::string_view("HTTP/1.1 200 ").size();
  const std::string_view line = HttpStatusLine(status);
  return line.substr(kBefore, line.size() - kBefore - 2);
}

HttpResponseWriter::HttpResponseWriter(ByteBuffer& out, const Options& options)
    : out_(out), without_body_(options.without_body), text_(out.Room(options.room + kOwnRoom)) {
  text_.Put(HttpStatusLine(options.status));
  text_.Put(options.date);
  if (options.persistence == HttpPersistence::kClose) {
    text_.Put("Connection: close\r\n");
  } else if (options.persistence == HttpPersistence::kKeepAlive) {
    text_.Put("Connection: keep-alive\r\n");
  }
}

void HttpResponseWriter::Header(std::string_view name, std::string_view value) noexcept {
  text_.Put(name);
  text_.Put(": ");
  text_.Put(value);
  text_.Put("\r\n");
}

void HttpResponseWriter::Finish(std::string_view body) {
  text_.Put("Content-Length: ");
  text_.PutNumber(static_cast<std::int64_t>(body.size()));
  text_.Put("\r\n\r\n");
  out_.WroteUpTo(text_.end());
  if (!without_body_) out_.Append(body);
}

}  // namespace weir
