// A gRPC connection without a network: what a client sends, and what it is told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/exchange_under_test.h"
#include "frontend/grpc/grpc_protocol.h"
#include "net/byte_buffer.h"
#include "net/h2/client_under_test.h"
#include "net/protobuf/wire.h"

namespace weir {

// --- Messages, written by hand. ---

inline std::string Message(const auto& write) {
  ByteBuffer out;
  ProtobufWriter writer(out);
  write(writer);
  return std::string(out.view());
}
// What stands under this number: a text or message, the first if there are several.
inline std::string TextIn(std::string_view message, std::uint32_t field) {
  for (ProtobufReader reader(message); reader.Next();) {
    if (reader.Is(field, WireType::kBytes)) return std::string(reader.bytes());
  }
  return {};
}
inline std::vector<std::string> TextsIn(std::string_view message, std::uint32_t field) {
  std::vector<std::string> texts;
  for (ProtobufReader reader(message); reader.Next();) {
    if (reader.Is(field, WireType::kBytes)) texts.emplace_back(reader.bytes());
  }
  return texts;
}
inline std::uint64_t NumberIn(std::string_view message, std::uint32_t field) {
  for (ProtobufReader reader(message); reader.Next();) {
    if (reader.Is(field, WireType::kVarint)) return reader.number();
  }
  return 0;
}

// With the prefix that a message has on a stream.
inline std::string Framed(std::string_view message, char compressed = 0) {
  std::string frame(5, '\0');
  frame[0] = compressed;
  for (unsigned i = 0; i < 4; ++i) {
    frame[i + 1] = static_cast<char>(message.size() >> (8 * (3 - i)));
  }
  return frame + std::string(message);
}

// A RateLimitDescriptor with one entry, and what else is written.
inline std::string DescriptorOf(std::string_view key, std::string_view value,
                                const auto& and_also) {
  return Message([&](ProtobufWriter& writer) {
    const auto entry = writer.Begin(1);
    writer.Bytes(1, key);
    writer.Bytes(2, value);
    writer.End(entry);
    and_also(writer);
  });
}
inline std::string DescriptorOf(std::string_view key, std::string_view value) {
  return DescriptorOf(key, value, [](ProtobufWriter&) {});
}
inline std::string RlsRequestOf(std::string_view domain,
                                const std::vector<std::string>& descriptors,
                                std::uint64_t hits = 0) {
  return Message([&](ProtobufWriter& writer) {
    writer.Bytes(1, domain);
    for (const std::string& descriptor : descriptors) writer.WantedBytes(2, descriptor);
    writer.Number(3, hits);
  });
}

inline constexpr std::string_view kGrpcPolicyUnderTest = R"(
rules:
  - name: by-user
    match: {domain: edge, descriptor.user: present}
    key: descriptor.user
    limit: 2/min
    message: slow down
  - name: by-path
    match: {domain: edge, descriptor.path: present}
    key: descriptor.path
    limit: 10/h
  - name: per-ip
    match: {ip: present}
    key: ip
    limit: 5/min
  - name: exports
    match: {path: /export}
    key: user
    limit: 1 concurrent lease 30s
)";

class GrpcUnderTest : public ExchangeUnderTest {
 public:
  static constexpr std::string_view kRls =
      "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

  explicit GrpcUnderTest(const Options& options = {},
                         std::string_view policy = kGrpcPolicyUnderTest)
      : ExchangeUnderTest(*Policy::Parse(policy).policy, MakeGrpcProtocol, options) {}

  struct Reply {
    std::string http{};     // :status
    std::string status{};   // grpc-status
    std::string details{};  // grpc-message
    std::string message{};  // The first.
    bool ended = false;
  };

  static H2ClientUnderTest::Fields FieldsFor(std::string_view path) {
    return {{":method", "POST"},
            {":scheme", "http"},
            {":path", std::string(path)},
            {":authority", "weir"},
            {"content-type", "application/grpc"},
            {"te", "trailers"}};
  }

  std::int32_t Begin(std::string_view path, std::string_view message,
                     const H2ClientUnderTest::Fields& more = {}) {
    auto fields = FieldsFor(path);
    fields.insert(fields.end(), more.begin(), more.end());
    return client.Request(fields, Framed(message));
  }
  // Lets both sides say all they have to.
  void Exchange() {
    for (int i = 0; i < 4; ++i) {
      const std::string bytes = client.Take();
      if (!bytes.empty()) client.Receive(Send(bytes));
    }
    client.Receive(Take());
  }
  Reply Of(std::int32_t id) {
    const H2ClientUnderTest::Response& response = client.of(id);
    const auto find = [&](const std::string& name) {
      const auto trailer = response.trailers.find(name);
      if (trailer != response.trailers.end()) return trailer->second;
      const auto header = response.headers.find(name);
      return header == response.headers.end() ? std::string() : header->second;
    };
    return {.http = find(":status"),
            .status = find("grpc-status"),
            .details = find("grpc-message"),
            .message = response.body.size() < 5 ? "" : response.body.substr(5),
            .ended = response.closed};
  }
  Reply Ask(std::string_view path, std::string_view message,
            const H2ClientUnderTest::Fields& more = {}) {
    const std::int32_t id = Begin(path, message, more);
    Exchange();
    return Of(id);
  }
  Reply Rls(const std::vector<std::string>& descriptors, std::uint64_t hits = 0) {
    return Ask(kRls, RlsRequestOf("edge", descriptors, hits));
  }
  std::uint64_t Refused(Refusal why) const {
    return metrics.refused[static_cast<std::size_t>(why)].Value();
  }
  std::uint64_t Counted(std::string_view code) const {
    return metrics.requests[ReplyCodeNumber(code)].Value();
  }
  void Sweep() {
    protocol().OnSweep(clock.Read().steady);
    client.Receive(Take());
  }

  H2ClientUnderTest client;
};

}  // namespace weir
