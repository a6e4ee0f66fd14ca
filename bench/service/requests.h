// The requests of a run, as bytes that are ready to be sent: all of one size and side by side in
// the order in which they go out, so that a batch of them is one piece of memory.
//
// They ask about keys of 21 bytes, "user:" and 16 hex digits. Those that go by a policy also say
// an address, which is another for every key, a path and a method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::bench {

enum class RequestKind : std::uint8_t {
  kIncr,       // INCR key
  kThrottle,   // CL.THROTTLE key ..., a limit that lets all of them through
  kCheck,      // WEIR.CHECK * ...
  kHttpGet,    // GET /
  kHttpCheck,  // POST /v1/check
  kHttpAuth,   // GET /v1/auth, as nginx asks for a client that sends few headers
};
// By its name: incr, throttle, check, http-get, http-check, http-auth.
std::optional<RequestKind> RequestKindOf(std::string_view name);
constexpr bool IsHttp(RequestKind kind) {
  return kind == RequestKind::kHttpGet || kind == RequestKind::kHttpCheck ||
         kind == RequestKind::kHttpAuth;
}

class RequestSequence {
 public:
  struct Options {
    RequestKind kind = RequestKind::kIncr;
    std::uint64_t keys = 1;   // How many different ones.
    bool each_once = false;   // So many requests, each with a new key; otherwise drawn at random.
    std::size_t deepest = 1;  // The largest batch that is asked for.
  };
  explicit RequestSequence(const Options& options);

  // The next `count` requests; after the last come the first again.
  std::string_view Next(std::size_t count) noexcept {
    const std::size_t at = at_;
    at_ += count;
    if (at_ >= length_) at_ -= length_;
    return {text_.data() + at * request_bytes_, count * request_bytes_};
  }
  std::size_t length() const noexcept { return length_; }

 private:
  std::size_t request_bytes_ = 0;
  std::size_t length_ = 0;
  std::size_t at_ = 0;
  std::string text_;
};

}  // namespace weir::bench
