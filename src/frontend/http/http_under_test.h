// What the tests of the HTTP endpoints share: requests to write and replies to read.
#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/exchange_under_test.h"
#include "frontend/http/http_protocol.h"

namespace weir {

// The body of a request by Ann.
inline constexpr const char* kAnn = R"({"ip":"203.0.113.9","user":"ann"})";

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers{};  // Names in lower case.
  std::string body{};

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "(absent)" : found->second;
  }
};

// Every reply of the bytes. One that has no body though it tells its length is that to a HEAD.
inline std::vector<HttpReply> RepliesIn(std::string_view bytes, bool without_bodies = false) {
  std::vector<HttpReply> replies;
  while (!bytes.empty()) {
    HttpReply& reply = replies.emplace_back();
    const std::size_t head = bytes.find("\r\n\r\n");
    std::string_view lines = bytes.substr(0, head + 2);
    bytes.remove_prefix(std::min(bytes.size(), head + 4));
    reply.status = std::stoi(std::string(lines.substr(9, 3)));
    lines.remove_prefix(lines.find("\r\n") + 2);
    while (!lines.empty()) {
      const std::string_view line = lines.substr(0, lines.find("\r\n"));
      std::string name(line.substr(0, line.find(':')));
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      reply.headers[name] = line.substr(line.find(':') + 2);
      lines.remove_prefix(line.size() + 2);
    }
    if (reply.status == 100 || without_bodies) continue;
    const std::size_t length = std::stoul(reply.header("content-length"));
    reply.body = bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
  return replies;
}

inline std::string Post(const std::string& path, const std::string& body,
                        const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: weir\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
inline std::string Get(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: weir\r\n" + headers + "\r\n";
}

// Three rules and two lists.
inline constexpr std::string_view kPolicyUnderTest = R"(
allow: [{ip: 10.0.0.0/8}]
deny: [{user: mallory}]
rules:
  - name: per-ip
    key: ip
    limit: 200/min
  - name: per-user
    key: user
    limit: 100/min
    match: {user: present}
  - name: login
    match: {path: /login}
    key: ip
    limit: 2/min
    message: Too many attempts to log in.
  - name: shadowed
    key: global
    limit: 1/day
    mode: shadow
  - name: exports
    match: {path: /export}
    key: user
    limit: 1 concurrent lease 30s
  - name: retired
    key: ip
    limit: 1/day
    mode: off
)";

class HttpUnderTest : public ExchangeUnderTest {
 public:
  explicit HttpUnderTest(const Options& options = {}, std::string_view policy = kPolicyUnderTest)
      : ExchangeUnderTest(*Policy::Parse(policy).policy, MakeHttpProtocol, options) {}

  // The only reply to a request.
  HttpReply Ask(std::string_view request) {
    const std::vector<HttpReply> replies = RepliesIn(Send(request));
    return replies.size() == 1 ? replies[0]
                               : HttpReply{.status = -static_cast<int>(replies.size())};
  }
  HttpReply Check(const std::string& body, const std::string& headers = "") {
    return Ask(Post("/v1/check", body, headers));
  }
  std::uint64_t Counted(std::string_view code) const {
    return metrics.requests[ReplyCodeNumber(code)].Value();
  }
  std::uint64_t Refused(Refusal why) const {
    return metrics.refused[static_cast<std::size_t>(why)].Value();
  }
};

}  // namespace weir
