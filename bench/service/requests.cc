#include "requests.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <utility>

#include "harness/keys.h"
#include "harness/random.h"
#include "harness/require.h"

namespace weir::bench {
namespace {

// Draws of a population before the sequence begins anew.
constexpr std::size_t kDrawn = 1 << 17;

std::string UserOf(std::uint64_t id) {
  std::string text(kKeyBytes, ' ');
  WriteKey(id, text.data());
  return text;
}

// Always 15 bytes: four numbers from 100 to 199.
std::string AddressOf(std::uint64_t id) {
  constexpr std::uint64_t kNumbers = 100;
  Require(id < kNumbers * kNumbers * kNumbers * kNumbers, "there are addresses for all keys");
  std::string text;
  for (int i = 0; i < 4; ++i, id /= kNumbers) {
    text += (text.empty() ? "" : ".") + std::to_string(100 + id % kNumbers);
  }
  return text;
}

std::string Command(std::initializer_list<std::string_view> words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    text.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
  }
  return text;
}

std::string HttpCheck(std::uint64_t id) {
  const std::string body = R"({"ip":")" + AddressOf(id) + R"(","user":")" + UserOf(id) +
                           R"(","method":"GET","path":"/api/v1/orders"})";
  return "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string HttpAuth(std::uint64_t id) {
  return "GET /v1/auth?deny_status=403 HTTP/1.1\r\nHost: weir\r\n"
         "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /api/v1/orders\r\n"
         "X-Forwarded-Host: 127.0.0.1\r\nX-Forwarded-For: " +
         AddressOf(id) + "\r\nX-User-Id: " + UserOf(id) +
         "\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";
}

std::string RequestFor(RequestKind kind, std::uint64_t id) {
  switch (kind) {
    case RequestKind::kIncr:
      return Command({"INCR", UserOf(id)});
    case RequestKind::kThrottle:
      // One every 100 s and 100,000 at once: no key is denied, and none is forgotten in a run.
      return Command({"CL.THROTTLE", UserOf(id), "99999", "864", "86400"});
    case RequestKind::kCheck:
      return Command({"WEIR.CHECK", "*", "ip", AddressOf(id), "user", UserOf(id), "method", "GET",
                      "path", "/api/v1/orders"});
    case RequestKind::kHttpGet:
      return "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    case RequestKind::kHttpCheck:
      return HttpCheck(id);
    case RequestKind::kHttpAuth:
      return HttpAuth(id);
  }
  return "";
}

}  // namespace

std::optional<RequestKind> RequestKindOf(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, RequestKind>, 6> kNames = {{
      {"incr", RequestKind::kIncr},
      {"throttle", RequestKind::kThrottle},
      {"check", RequestKind::kCheck},
      {"http-get", RequestKind::kHttpGet},
      {"http-check", RequestKind::kHttpCheck},
      {"http-auth", RequestKind::kHttpAuth},
  }};
  const auto found = std::ranges::find(kNames, name, &decltype(kNames)::value_type::first);
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

RequestSequence::RequestSequence(const Options& options)
    : request_bytes_(RequestFor(options.kind, 0).size()),
      length_(options.each_once ? options.keys : kDrawn) {
  // The beginning once more behind the end, so that no batch is in two pieces.
  Require(options.deepest <= length_, "a batch is not longer than the sequence");
  text_.reserve((length_ + options.deepest) * request_bytes_);
  Random random(options.keys);
  for (std::size_t i = 0; i < length_; ++i) {
    text_ += RequestFor(options.kind, options.each_once ? i : random.Below(options.keys));
  }
  Require(text_.size() == length_ * request_bytes_, "all requests are of one size");
  text_.append(text_, 0, options.deepest * request_bytes_);
}

}  // namespace weir::bench
