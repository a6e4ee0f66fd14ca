// Two other parsers of HTTP/1 requests, to compare ours with: a request that two parsers end in
// different places is how requests are smuggled. For tests and benchmarks only.
#pragma once

#include <http_parser.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "net/http/request_reader.h"

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
    const std::size_t taken =
        parser.put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), error);
    used += taken;
    if (error) return {.why_not = error.message()};
    if (taken == 0) return {.why_not = "wants more"};
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
    return {.request = request_};
  }

 private:
  static NodeParser& Of(http_parser* parser) { return *static_cast<NodeParser*>(parser->data); }

  FramedRequest request_{};
  bool done_ = false;
};

// What ours makes of it.
struct OwnOpinion {
  HttpRequestReader::Outcome outcome{};
  FramedRequest request{};
  HttpFault fault{};
  bool leaves_http = false;  // CONNECT, or an upgrade: the second parser stops reading HTTP there.
};

inline OwnOpinion ReadWithOurs(std::string bytes, const HttpRequestReader::Bounds& bounds) {
  HttpRequestReader reader;
  HttpHead head;
  OwnOpinion own;
  own.outcome = reader.Read(bytes, bounds, head);
  if (own.outcome == HttpRequestReader::Outcome::kFault) own.fault = reader.fault();
  if (own.outcome != HttpRequestReader::Outcome::kComplete) return own;
  own.request = {.method = std::string(head.method),
                 .target = std::string(head.target),
                 .body = std::string(reader.body().begin(), reader.body().end()),
                 .size = reader.size()};
  own.leaves_http = head.method == "CONNECT";
  for (const NamedValue& field : head.headers()) {
    own.leaves_http = own.leaves_http || http_bytes::IsSameName(field.name, "upgrade");
  }
  return own;
}

// What others take and ours refuses on purpose, by what it says then.
inline constexpr std::array<std::string_view, 17> kDeliberatelyStrict = {
    "Host is missing",
    "Host is there twice",
    "Host is no host",
    "Authorization is there twice",
    "Expect is there twice",
    "only 100-continue can be expected here",
    "Transfer-Encoding must be chunked",
    "HTTP/1.0 has no Transfer-Encoding",
    "the target has bytes beyond ASCII",
    "Content-Length is there twice",
    "Content-Length is a list",
    "Content-Length has too many digits",
    "chunk extensions are not accepted",
    "a chunk's size has too many digits",
    "a trailer must not say how the request is framed",
    "a header line begins with a blank",
    "there are too many headers",
};

inline bool IsDeliberate(const HttpFault& fault) {
  return fault.status == 413 || fault.status == 431 ||
         std::ranges::find(kDeliberatelyStrict, fault.message) != kDeliberatelyStrict.end();
}

// Why the three parsers do not agree enough about the first request in some bytes; empty if they
// do. Others may be stricter than ours only where they do not know a method.
inline std::string FindDisagreement(const std::string& bytes,
                                    const HttpRequestReader::Bounds& bounds) {
  using Outcome = HttpRequestReader::Outcome;
  const OwnOpinion own = ReadWithOurs(bytes, bounds);
  // An empty line before a request is ours to drop.
  const std::size_t skipped = bytes.starts_with("\r\n") ? 2 : 0;
  const std::string_view rest = std::string_view(bytes).substr(skipped);
  const SecondOpinion beast = ReadWithBeast(rest);
  const SecondOpinion node = NodeParser().Read(rest);
  if (own.outcome == Outcome::kFault) {
    const bool known = IsDeliberate(own.fault);
    if (beast.request && !known) return "Beast takes it: " + std::string(own.fault.message);
    return {};
  }
  if (own.outcome == Outcome::kIncomplete) {
    return beast.request ? "Beast thinks that it is complete" : "";
  }
  FramedRequest expected = own.request;
  expected.size -= skipped;
  if (!beast.request) return "Beast refuses it: " + beast.why_not;
  if (*beast.request != expected) return "Beast frames it differently";
  if (node.request && !own.leaves_http && *node.request != expected) {
    return "Node's parser frames it differently";
  }
  return {};
}

}  // namespace weir
