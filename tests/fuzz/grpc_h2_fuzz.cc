// Whatever a client sends to the gRPC listener, the replies must be HTTP/2 frames, nothing may be
// held without bound, and what the client says later must not reach what is over.
//
// The first byte says how: the highest bit, whether the store takes a while; the next, whether what
// follows is bytes as they are, behind a preface; the rest, into what pieces they are cut.
// Otherwise frames follow, each as a type, flags, a stream, a length and so many bytes; of type 10
// and 11 as a whole request, to Envoy's service or to our own, with the bytes as its message.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/exchange_under_test.h"
#include "frontend/grpc/grpc_protocol.h"

namespace {

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const weir::Policy& SmallPolicy() {
  static const weir::Policy policy = *weir::Policy::Parse(R"(
deny: [{user: mallory}]
rules:
  - {name: a, key: ip, limit: 3/min, match: {ip: present}}
  - {name: b, key: descriptor.a, limit: 2/min, match: {domain: d}}
  - {name: c, key: user, limit: 1 concurrent lease 5s, match: {user: present}}
  - {name: q, key: org, limit: 1/s burst 5, algorithm: leaky_bucket, queue: true, match: {org: present}}
)")
                                          .policy;
  return policy;
}

std::string Frame(unsigned type, unsigned flags, unsigned stream, std::string_view payload) {
  std::string frame = {static_cast<char>(payload.size() >> 16),
                       static_cast<char>(payload.size() >> 8),
                       static_cast<char>(payload.size()),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       0,
                       0,
                       static_cast<char>(stream >> 8),
                       static_cast<char>(stream)};
  return frame.append(payload);
}

// A header that is not put into the table.
std::string Field(std::string_view name, std::string_view value) {
  std::string field("\0", 1);
  field += static_cast<char>(name.size());
  field += name;
  field += static_cast<char>(value.size());
  return field += value;
}

std::string Request(unsigned stream, std::string_view path, std::string_view message) {
  const std::string headers = Field(":method", "POST") + Field(":scheme", "http") +
                              Field(":path", path) + Field("content-type", "application/grpc");
  std::string body = {0, 0, 0, 0, static_cast<char>(message.size())};
  body += message;
  return Frame(1, 4, stream, headers) + Frame(0, 1, stream, body);
}

// What the input says, as bytes.
std::string BytesOf(std::string_view input) {
  std::string bytes(kPreface);
  bytes += Frame(4, 0, 0, "");
  unsigned next_stream = 1;
  while (input.size() >= 4) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(input[at]); };
    const unsigned type = byte(0) % 14;
    const unsigned flags = byte(1);
    const unsigned stream = byte(2);
    const std::size_t size = std::min<std::size_t>(byte(3), input.size() - 4);
    const std::string_view payload = input.substr(4, size);
    input.remove_prefix(4 + size);
    if (type == 10 || type == 11) {
      constexpr std::string_view kPaths[] = {
          "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
          "/weir.v1.Limiter/Check",
          "/weir.v1.Limiter/CheckBatch",
          "/weir.v1.Limiter/Reserve",
          "/grpc.health.v1.Health/Watch",
          "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"};
      bytes += Request(next_stream, kPaths[type == 10 ? 0 : flags % std::size(kPaths)],
                       payload.substr(0, 127));
      next_stream += 2;
    } else {
      bytes += Frame(type, flags, stream, payload);
    }
  }
  return bytes;
}

void CheckFrames(std::string_view bytes) {
  if (bytes.starts_with("HTTP/1.1 505 ")) return;
  while (!bytes.empty()) {
    if (bytes.size() < 9) Fail("half a frame");
    const auto byte = [&](std::size_t at) {
      return std::size_t{static_cast<unsigned char>(bytes[at])};
    };
    const std::size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (size > 16'384) Fail("a frame larger than was agreed");
    if (bytes.size() < 9 + size) Fail("a frame that is cut off");
    bytes.remove_prefix(9 + size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const unsigned mode = data[0];
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  weir::ExchangeUnderTest exchange(SmallPolicy(), weir::MakeGrpcProtocol,
                                   {.late = (mode & 0x80U) != 0});
  const std::string bytes =
      (mode & 0x40U) != 0 ? std::string(kPreface).append(input) : BytesOf(input);
  std::size_t piece = std::max(1U, mode & 0x3fU);
  std::string replies;
  for (std::string_view left = bytes; !left.empty() && !exchange.replies().closing();) {
    const std::string_view next = left.substr(0, piece);
    piece = piece * 2 + 1;
    left.remove_prefix(next.size());
    replies += exchange.Send(next);
    if (!exchange.left_over().empty()) Fail("not all was used");
    if (piece % 3 == 0 && exchange.late.pending() > 0) exchange.late.Answer(0);
    if (piece % 5 == 0 && !exchange.waits.empty()) {
      exchange.Decide(exchange.waits.front(), {.decision = {.allowed = true}});
      exchange.waits.erase(exchange.waits.begin());
    }
    replies += exchange.Take();
    if (exchange.protocol().held_bytes() > (std::size_t{4} << 20)) Fail("too much is held");
  }
  exchange.late.AnswerAll();
  for (int i = 0; i < 3 && !exchange.replies().closing(); ++i) {
    exchange.clock.Advance(std::chrono::seconds(20));
    exchange.is_draining = i > 0;
    exchange.protocol().OnSweep(exchange.clock.Read().steady);
  }
  replies += exchange.Take();
  if (exchange.replies().held() > exchange.waits.size())
    Fail("something is waited for that is over");
  CheckFrames(replies);
  return 0;
}
