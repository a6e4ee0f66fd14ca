// Two other parsers of HTTP/1 requests, to compare ours with: a request that two parsers end in
// different places is how requests are smuggled. For tests and benchmarks only.
#pragma once

#include <http_parser.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace weir {

// A request as far as its framing goes.
struct FramedRequest {
  std::string method{};
  std::string target{};
  std::string body{};
  std::size_t size = 0;  // How many bytes it took.

  friend bool operator==(const FramedRequest&, const FramedRequest&) = default;
};

// What a parser makes of the first request in some bytes: none if it refuses it, or wants more.
struct SecondOpinion {
  std::optional<FramedRequest> request{};
  std::string why_not{};
};

inline SecondOpinion ReadWithBeast(std::string_view bytes) {
  namespace http = boost::beast::http;
  http::request_parser<http::string_body> parser;
  parser.eager(true);
  parser.header_limit(std::numeric_limits<std::uint32_t>::max());
  parser.body_limit(boost::none);
  boost::system::error_code error;
  std::size_t used = 0;
  while (!parser.is_done()) {
    used += parser.put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), error);
    if (error) return {.why_not = error.message()};
  }
  const auto& message = parser.get();
  return {.request = FramedRequest{.method = std::string(message.method_string()),
                                   .target = std::string(message.target()),
                                   .body = message.body(),
                                   .size = used}};
}

// Node's parser of old, of which many proxies have a copy.
class NodeParser {
 public:
  SecondOpinion Read(std::string_view bytes) {
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = this;
    http_parser_settings settings;
    http_parser_settings_init(&settings);
    settings.on_url = [](http_parser* of, const char* at, std::size_t length) {
      Of(of).request_.target.append(at, length);
      return 0;
    };
    settings.on_body = [](http_parser* of, const char* at, std::size_t length) {
      Of(of).request_.body.append(at, length);
      return 0;
    };
    settings.on_message_complete = [](http_parser* of) {
      Of(of).done_ = true;
      Of(of).request_.method = http_method_str(static_cast<http_method>(of->method));
      http_parser_pause(of, 1);
      return 0;
    };
    request_.size = http_parser_execute(&parser, &settings, bytes.data(), bytes.size());
    if (!done_) return {.why_not = http_errno_description(HTTP_PARSER_ERRNO(&parser))};
    // It pauses before the last byte of a chunked body, and behind that of any other.
    if (request_.size < bytes.size() && HTTP_PARSER_ERRNO(&parser) == HPE_PAUSED) {
      paused_short_ = true;
    }
    return {.request = request_};
  }

 private:
  static NodeParser& Of(http_parser* parser) { return *static_cast<NodeParser*>(parser->data); }

  FramedRequest request_{};
  bool done_ = false;
  bool paused_short_ = false;
};

}  // namespace weir
