// Whatever a client sends to the HTTP endpoints, the replies must be HTTP, one for each request and
// in their order, and the same however the bytes are cut.
//
// The first byte says how the bytes are cut: into pieces of so many, growing by one each time; its
// highest bit, whether a token is wanted. The rest is what the client sends.
#include "frontend/http/http_protocol.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/exchange_under_test.h"

namespace {

[[noreturn]] void Fail(const char* what, std::string_view bytes) {
  std::fprintf(stderr, "%s:\n%.*s\n", what, static_cast<int>(bytes.size()), bytes.data());
  std::abort();
}

const weir::Policy& SmallPolicy() {
  static const weir::Policy policy = *weir::Policy::Parse(R"(
trusted_proxies: [203.0.113.9]
identity: {user: {header: x-user}}
deny: [{user: mallory}]
rules:
  - {name: a, key: ip, limit: 3/min}
  - {name: b, key: user, limit: 2/min, match: {path: /b/**}, message: "no \"more\""}
  - {name: c, key: header.x, limit: 1 concurrent lease 5s, match: {header.x: present}}
  - {name: d, key: global, limit: 1/min, mode: shadow}
  - {name: e, key: ip, limit: 5/s, algorithm: leaky_bucket, queue: true, match: {path: /e}}
)")
                                          .policy;
  return policy;
}

class Client {
 public:
  Client(bool wants_token, bool late)
      : exchange_(SmallPolicy(), weir::MakeHttpProtocol, OptionsFor(wants_token, late)) {}

  // The replies to all of it, on a connection of its own and so late that all keys are fresh.
  std::string SendAll(std::string_view bytes, std::size_t piece) {
    std::string replies;
    exchange_.Reconnect();
    exchange_.clock.Advance(std::chrono::minutes(5));
    while (!bytes.empty() && !exchange_.replies().closing()) {
      const std::string_view next = bytes.substr(0, piece++);
      bytes.remove_prefix(next.size());
      const std::size_t before = exchange_.left_over().size() + next.size();
      replies += exchange_.Send(next);
      if (exchange_.last.used > before) Fail("more was used than there is", next);
      Answer();
      replies += exchange_.Take();
    }
    return replies;
  }

 private:
  static weir::ExchangeUnderTest::Options OptionsFor(bool wants_token, bool late) {
    weir::ExchangeUnderTest::Options options;
    options.late = late;
    options.settings.limits.header = 512;
    options.settings.limits.body = 1024;
    if (wants_token) options.access = {.token = "t", .manage_token = "m"};
    return options;
  }

  // Those who wait and those who asked, the last first.
  void Answer() {
    exchange_.late.AnswerAllBackwards();
    for (; !exchange_.waits.empty(); exchange_.waits.pop_back()) {
      exchange_.Decide(exchange_.waits.back(),
                       {.decision = {.allowed = true, .reason = weir::Reason::kOk, .rule = "a"}});
    }
  }

  weir::ExchangeUnderTest exchange_;
};

std::size_t LengthIn(std::string_view head) {
  constexpr std::string_view kName = "\r\nContent-Length: ";
  const std::size_t at = head.find(kName);
  std::size_t length = 0;
  if (at == std::string_view::npos) Fail("no length", head);
  if (head.find(kName, at + 1) != std::string_view::npos) Fail("two lengths", head);
  std::from_chars(head.data() + at + kName.size(), head.data() + head.size(), length);
  return length;
}

// Whether these are replies. HEAD leaves out the body, so one may follow its head at once.
void CheckReplies(std::string_view replies) {
  while (!replies.empty()) {
    if (!replies.starts_with("HTTP/1.1 ")) Fail("no reply", replies);
    const std::size_t end = replies.find("\r\n\r\n");
    if (end == std::string_view::npos) Fail("a head without an end", replies);
    const std::string_view head = replies.substr(0, end + 2);
    replies.remove_prefix(end + 4);
    for (const char c : head) {
      const bool plain = (c >= ' ' && c < '\x7f') || c == '\r' || c == '\n';
      if (!plain) Fail("an odd byte in a head", head);
    }
    if (head.starts_with("HTTP/1.1 100 ")) continue;
    const std::size_t length = LengthIn(head);
    const bool without = replies.empty() || replies.starts_with("HTTP/1.1 ");
    if (!without && replies.size() < length) Fail("less than the length says", replies);
    if (!without) replies.remove_prefix(length);
  }
}

// What depends on how the bytes came: whether the client had to be asked to go on.
std::string WithoutContinue(std::string replies) {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at = 0; (at = replies.find(kContinue, at)) != std::string::npos;) {
    replies.erase(at, kContinue.size());
  }
  return replies;
}

// What is drawn by chance: how much later than it need be somebody should come back, and the names
// of reservations.
std::string WithoutChance(std::string replies) {
  constexpr std::string_view kRetry = "Retry-After: ";
  for (std::size_t at = 0; (at = replies.find(kRetry, at)) != std::string::npos;) {
    replies.erase(at, replies.find('\n', at) - at + 1);
  }
  constexpr std::string_view kReservation = "\"reservation\":\"";
  for (std::size_t at = 0; (at = replies.find(kReservation, at)) != std::string::npos;) {
    at += kReservation.size();
    replies.erase(at, 16);
  }
  return replies;
}

}  // namespace

namespace {

// Making an engine takes longer than all the rest, so the two, one for the whole and one for the
// pieces, serve many inputs: what one has counted, the other has, too.
class Pair {
 public:
  // `late`: the pieces are answered later, as by a shared store.
  Pair(bool wants_token, bool late) : whole(wants_token, false), pieces(wants_token, late) {}

  static Pair& For(bool wants_token, bool late) {
    constexpr int kUses = 1'000;
    static std::unique_ptr<Pair> pairs[4];
    std::unique_ptr<Pair>& pair = pairs[(wants_token ? 1 : 0) + (late ? 2 : 0)];
    if (!pair || ++pair->uses_ > kUses) pair = std::make_unique<Pair>(wants_token, late);
    return *pair;
  }

  Client whole;
  Client pieces;

 private:
  int uses_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Pair& pair = Pair::For((data[0] & 128) != 0, (data[0] & 64) != 0);
  const std::string whole = pair.whole.SendAll(bytes, bytes.size() + 1);
  CheckReplies(whole);
  const std::string pieces = pair.pieces.SendAll(bytes, data[0] % 64 + 1U);
  CheckReplies(pieces);
  const std::string one = WithoutContinue(WithoutChance(whole));
  const std::string other = WithoutContinue(WithoutChance(pieces));
  // In pieces a fault may be found a little later, and then not at all.
  if (!one.starts_with(other)) Fail("other replies when cut into pieces", one + "\n---\n" + other);
  return 0;
}
