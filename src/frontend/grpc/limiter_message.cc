#include "frontend/grpc/limiter_message.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <weir/limit.h>

#include "frontend/decision_fields.h"
#include "frontend/invalid_argument.h"
#include "net/protobuf/wire.h"

namespace weir {
namespace {

Error NotReadable() {
  return InvalidArgument("this is no message of weir.v1; was it made from another .proto?");
}

Error NotUtf8(std::string_view field) {
  return InvalidArgument(std::string(field) + ": write UTF-8");
}

struct TextField {
  std::uint32_t number;
  std::string_view name;
  std::string_view Request::* place;
};
constexpr std::array<TextField, 9> kTexts = {{
    {1, "ip", &Request::ip},
    {2, "user", &Request::user},
    {3, "api_key", &Request::api_key},
    {4, "org", &Request::org},
    {5, "tier", &Request::tier},
    {6, "method", &Request::method},
    {7, "path", &Request::path},
    {8, "host", &Request::host},
    {9, "domain", &Request::domain},
}};

struct PairsField {
  std::uint32_t number;
  std::string_view name;
  std::vector<NamedValue> RequestMessage::* place;
};
constexpr std::array<PairsField, 4> kPairs = {{
    {10, "headers", &RequestMessage::headers},
    {11, "cookies", &RequestMessage::cookies},
    {12, "query", &RequestMessage::query},
    {13, "descriptors", &RequestMessage::descriptors},
}};

constexpr std::uint32_t kRules = 14;
constexpr std::uint32_t kCost = 15;
constexpr std::uint32_t kWait = 16;

std::optional<Error> ReadCost(std::uint64_t number, LimiterMessage& read) {
  read.cost = static_cast<std::int64_t>(number);
  read.has_cost = true;
  if (read.cost >= 0 && read.cost <= kMaxCount) return std::nullopt;
  return InvalidArgument("cost: write a whole number, 0 to " + std::to_string(kMaxCount));
}

// A length in milliseconds, none above `most`.
std::optional<Error> ReadLength(std::uint64_t number, std::string_view field, Duration most,
                                Duration& length) {
  const auto milliseconds = static_cast<std::int64_t>(number);
  const std::int64_t most_ms = std::chrono::floor<std::chrono::milliseconds>(most).count();
  if (milliseconds < 0 || milliseconds > most_ms) {
    return InvalidArgument(std::string(field) + ": write a whole number, 0 to " +
                           std::to_string(most_ms));
  }
  length = std::chrono::milliseconds(milliseconds);
  return std::nullopt;
}

std::optional<Error> ReadPair(std::string_view message, const PairsField& field,
                              LimiterMessage& read) {
  NamedValue pair;
  ProtobufReader reader(message);
  while (reader.Next()) {
    const bool is_text = reader.Is(1, WireType::kBytes) || reader.Is(2, WireType::kBytes);
    if (!is_text) continue;
    if (!IsUtf8(reader.bytes())) return NotUtf8(field.name);
    (reader.field() == 1 ? pair.name : pair.value) = reader.bytes();
  }
  if (reader.is_broken()) return NotReadable();
  (read.*field.place).push_back(pair);
  return std::nullopt;
}

std::optional<Error> ReadBytesField(const ProtobufReader& reader, LimiterMessage& read) {
  const std::uint32_t number = reader.field();
  if (number >= 1 && number <= kTexts.size()) {
    const TextField& text = kTexts[number - 1];
    read.request.*text.place = reader.bytes();
    return IsUtf8(reader.bytes()) ? std::nullopt : std::optional(NotUtf8(text.name));
  }
  if (number >= kPairs[0].number && number < kRules) {
    return ReadPair(reader.bytes(), kPairs[number - kPairs[0].number], read);
  }
  if (number != kRules) return std::nullopt;
  read.rules.push_back(reader.bytes());
  return IsUtf8(reader.bytes()) ? std::nullopt : std::optional(NotUtf8("rules"));
}

std::optional<Error> ReadCheck(std::string_view message, LimiterMessage& read) {
  // No client waits for a day; the policy has a bound of its own.
  constexpr Duration kMostWait = std::chrono::hours(24);
  ProtobufReader reader(message);
  while (reader.Next()) {
    std::optional<Error> error;
    if (reader.type() == WireType::kBytes) {
      error = ReadBytesField(reader, read);
    } else if (reader.Is(kCost, WireType::kVarint)) {
      error = ReadCost(reader.number(), read);
    } else if (reader.Is(kWait, WireType::kVarint)) {
      error = ReadLength(reader.number(), "wait_ms", kMostWait, read.wait);
    }
    if (error) return error;
    const std::size_t pairs =
        read.headers.size() + read.cookies.size() + read.query.size() + read.descriptors.size();
    if (pairs > LimiterMessage::kMostPairs) {
      return InvalidArgument("headers, cookies, query and descriptors: there may be at most " +
                             std::to_string(LimiterMessage::kMostPairs) + " in all");
    }
    if (read.rules.size() > LimiterMessage::kMostRules) {
      return InvalidArgument("rules: there may be at most " +
                             std::to_string(LimiterMessage::kMostRules));
    }
  }
  if (reader.is_broken()) return NotReadable();
  read.request.headers = read.headers;
  read.request.cookies = read.cookies;
  read.request.query = read.query;
  read.request.descriptors = read.descriptors;
  read.request.rules = read.rules;
  return std::nullopt;
}

std::optional<Error> ReadLimit(std::string_view message, LimiterMessage& read) {
  constexpr std::array<std::pair<std::string_view, std::string_view RequestMessage::*>, 3> kFields =
      {{{"key", &RequestMessage::key},
        {"limit", &RequestMessage::limit},
        {"algorithm", &RequestMessage::algorithm}}};
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.type() == WireType::kBytes && reader.field() <= kFields.size()) {
      const auto& [name, place] = kFields[reader.field() - 1];
      read.*place = reader.bytes();
      if (!IsUtf8(reader.bytes())) return NotUtf8(name);
    } else if (reader.Is(4, WireType::kVarint)) {
      if (auto error = ReadCost(reader.number(), read)) return error;
    }
  }
  if (reader.is_broken()) return NotReadable();
  if (read.key.empty()) return InvalidArgument("key: write whom to count");
  if (read.limit.empty()) return InvalidArgument("limit: write how much, such as 100/min burst 50");
  return std::nullopt;
}

std::optional<Error> ReadReserve(std::string_view message, LimiterMessage& read) {
  ProtobufReader reader(message);
  while (reader.Next()) {
    std::optional<Error> error;
    if (reader.Is(1, WireType::kBytes)) {
      error = ReadCheck(reader.bytes(), read);
    } else if (reader.Is(2, WireType::kVarint) && reader.number() != 0) {
      error = ReadLength(reader.number(), "ttl_ms", kMostReservationTtl, read.ttl);
    }
    if (error) return error;
  }
  if (reader.is_broken()) return NotReadable();
  if (read.cost == 0) return InvalidArgument("cost: there is nothing to reserve; write at least 1");
  return std::nullopt;
}

std::optional<Error> ReadSettle(std::string_view message, LimiterMessage& read) {
  std::string_view id;
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) {
      id = reader.bytes();
      if (!IsUtf8(id)) return NotUtf8("reservation");
    } else if (reader.Is(2, WireType::kVarint)) {
      if (auto error = ReadCost(reader.number(), read)) return error;
    }
  }
  if (reader.is_broken()) return NotReadable();
  const std::optional<ReservationId> reservation = ParseReservation(id);
  if (!reservation) return InvalidArgument("reservation: write what Reserve or Check answered");
  read.reservation = *reservation;
  return std::nullopt;
}

void WriteFields(ProtobufWriter& writer, const LimiterReply& reply) {
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const Decision& decision = reply.decision;
  const DecisionFields fields = FieldsOf(decision, reply.now);
  writer.Number(1, decision.allowed ? 1 : 0);
  writer.Bytes(2, decision.rule);
  writer.Number(3, number(decision.limit));
  writer.Number(4, number(decision.remaining));
  writer.Number(5, number(decision.cost));
  if (fields.retry_after_ms) writer.WantedNumber(6, number(*fields.retry_after_ms));
  writer.Number(7, number(fields.reset_after_ms));
  writer.Number(8, number(fields.reset_at));
  writer.Number(9, number(fields.delay_ms));
  writer.Number(10, static_cast<std::uint64_t>(decision.reason));
  writer.Number(11, static_cast<std::uint64_t>(decision.source));
  if (decision.reservation != ReservationId::kNone) {
    writer.Bytes(12, ReservationText(decision.reservation).view());
  }
  if (!decision.allowed) writer.Bytes(13, reply.message);
}

}  // namespace

std::optional<Error> ReadLimiterMessage(std::string_view message, GrpcMethodKind method,
                                        LimiterMessage& read) {
  read.Clear();
  std::optional<Error> error;
  switch (method) {
    case GrpcMethodKind::kLimit:
      return ReadLimit(message, read);
    case GrpcMethodKind::kReserve:
      error = ReadReserve(message, read);
      break;
    case GrpcMethodKind::kCommit:
    case GrpcMethodKind::kCancel:
    case GrpcMethodKind::kRelease:
      return ReadSettle(message, read);
    default:
      error = ReadCheck(message, read);
  }
  if (error) return error;
  if (method != GrpcMethodKind::kCheck && read.wait > Duration(0)) {
    return InvalidArgument("wait_ms: only Check waits; write 0 or leave it out");
  }
  return std::nullopt;
}

std::optional<Error> ReadBatchMessage(std::string_view message,
                                      std::vector<std::string_view>& requests) {
  requests.clear();
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (!reader.Is(1, WireType::kBytes)) continue;
    requests.push_back(reader.bytes());
    if (requests.size() > kMostGrpcBatch) {
      return InvalidArgument("requests: there may be at most " + std::to_string(kMostGrpcBatch));
    }
  }
  if (reader.is_broken()) return NotReadable();
  return std::nullopt;
}

void WriteDecision(ByteBuffer& out, const LimiterReply& reply) {
  ProtobufWriter writer(out);
  WriteFields(writer, reply);
}

void WriteBatchItem(ByteBuffer& out, const LimiterReply& reply) {
  ProtobufWriter writer(out);
  const auto inner = writer.Begin(1);
  WriteFields(writer, reply);
  writer.End(inner);
}

}  // namespace weir
