#include "frontend/grpc/rls_message.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/mix.h"
#include "frontend/decision_fields.h"
#include "frontend/decision_json.h"
#include "frontend/invalid_argument.h"
#include "frontend/rate_limit_headers.h"
#include "net/protobuf/wire.h"

namespace weir {
namespace {

constexpr std::size_t kMostEntries = 128;

// RateLimitResponse.Code
constexpr std::uint64_t kCodeOk = 1;
constexpr std::uint64_t kCodeOverLimit = 2;

// RateLimitUnit, and RateLimitResponse.RateLimit.Unit, which has one more.
constexpr std::array<std::int64_t, 8> kUnitSeconds = {0,      1,         60,         3'600,
                                                      86'400, 2'592'000, 31'536'000, 604'800};

Error NotReadable(std::string_view what) {
  return InvalidArgument(std::string(what) +
                         ": this is no such message; was it made from another .proto?");
}

// Reads a text. False if it is none.
bool ReadText(const ProtobufReader& reader, std::string_view& text) noexcept {
  text = reader.bytes();
  return IsUtf8(text);
}

bool ReadEntry(std::string_view message, NamedValue& entry) noexcept {
  ProtobufReader reader(message);
  bool valid = true;
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) {
      valid = ReadText(reader, entry.name) && valid;
    } else if (reader.Is(2, WireType::kBytes)) {
      valid = ReadText(reader, entry.value) && valid;
    }
  }
  return valid && !reader.is_broken();
}

bool ReadOverride(std::string_view message, RlsOverride& limit) noexcept {
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kVarint)) {
      limit.requests = static_cast<std::uint32_t>(reader.number());
    } else if (reader.Is(2, WireType::kVarint)) {
      limit.unit = reader.number();
    }
  }
  return !reader.is_broken();
}

// google.protobuf.UInt64Value
bool ReadWrapped(std::string_view message, std::uint64_t& value) noexcept {
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kVarint)) value = reader.number();
  }
  return !reader.is_broken();
}

bool ReadDescriptor(std::string_view message, RlsRequest& request) {
  RlsDescriptor descriptor{.first_entry = request.entries.size()};
  ProtobufReader reader(message);
  bool valid = true;
  // One too many is enough to know that.
  while (valid && request.entries.size() <= kMostEntries && reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) {
      valid = ReadEntry(reader.bytes(), request.entries.emplace_back());
      ++descriptor.entries;
    } else if (reader.Is(2, WireType::kBytes)) {
      if (!descriptor.limit) descriptor.limit.emplace();
      valid = ReadOverride(reader.bytes(), *descriptor.limit);
    } else if (reader.Is(3, WireType::kBytes)) {
      if (!descriptor.hits) descriptor.hits.emplace();
      valid = ReadWrapped(reader.bytes(), *descriptor.hits);
    } else if (reader.Is(4, WireType::kVarint)) {
      descriptor.is_negative = reader.number() != 0;
    }
  }
  request.descriptors.push_back(descriptor);
  return valid && !reader.is_broken();
}

std::optional<Error> Check(const RlsRequest& request) {
  if (request.domain.empty()) {
    return InvalidArgument(
        "domain: it must not be empty; Envoy's filter has a setting of that name");
  }
  if (request.descriptors.empty()) {
    return InvalidArgument("descriptors: there must be at least one");
  }
  if (request.descriptors.size() > Engine::kMostParts) {
    return InvalidArgument("descriptors: there may be at most " +
                           std::to_string(Engine::kMostParts));
  }
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    const RlsDescriptor& descriptor = request.descriptors[i];
    const std::string where = "descriptors[" + std::to_string(i) + "]";
    if (descriptor.entries == 0)
      return InvalidArgument(where + ".entries: there must be at least one");
    const auto entries = request.EntriesOf(descriptor);
    if (std::ranges::any_of(entries, [](const NamedValue& entry) { return entry.name.empty(); })) {
      return InvalidArgument(where + ".entries: a key must not be empty");
    }
    if (descriptor.limit && !SecondsOf(descriptor.limit->unit)) {
      return InvalidArgument(where + ".limit.unit: write SECOND, MINUTE, HOUR, DAY, MONTH or YEAR");
    }
  }
  return std::nullopt;
}

// The unit in which a limit is told, if there is one that is as long as its window. Windows are
// rounded up: 7/h takes a little more than an hour to fill.
std::uint64_t UnitOf(Duration window) noexcept {
  const auto rounded = std::chrono::floor<std::chrono::milliseconds>(window);
  for (std::size_t unit = 1; unit < kUnitSeconds.size(); ++unit) {
    if (rounded == std::chrono::seconds(kUnitSeconds[unit])) return unit;
  }
  return 0;
}

std::uint64_t Uint32(std::int64_t number) noexcept {
  return static_cast<std::uint64_t>(
      std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::uint32_t>::max()));
}

bool HasLimit(const Decision& decision) noexcept {
  return decision.reason != Reason::kNoRule && decision.reason != Reason::kAllowList &&
         !(decision.reason == Reason::kDenyList && decision.limit == 0);
}

void WriteStatus(ProtobufWriter& writer, const RuleDecision& status, WallTime now) {
  const Decision& decision = status.decision;
  const auto inner = writer.Begin(2);
  writer.Number(1, decision.allowed ? kCodeOk : kCodeOverLimit);
  if (decision.allowed && decision.limit >= kMaxCount) {
    // Unlimited: as others say it, without a limit.
    writer.Number(3, Uint32(decision.limit));
  } else if (HasLimit(decision)) {
    const auto limit = writer.Begin(2);
    writer.Number(1, Uint32(decision.limit));
    writer.Number(2, UnitOf(status.window));
    writer.Bytes(3, decision.rule);
    writer.End(limit);
    writer.Number(3, Uint32(decision.remaining));
    // Envoy makes Retry-After of it.
    const DecisionFields fields = FieldsOf(decision, now);
    const auto seconds = decision.allowed ? fields.reset_after : fields.retry_after;
    if (seconds && *seconds > 0) {
      const auto duration = writer.Begin(4);
      writer.Number(1, static_cast<std::uint64_t>(*seconds));
      writer.End(duration);
    }
  }
  writer.End(inner);
}

// "Name: value\r\n" as a HeaderValue, its name in lower case.
void WriteHeader(ProtobufWriter& writer, std::string_view line) {
  constexpr std::uint32_t kResponseHeadersToAdd = 3;
  std::array<char, 64> name;
  const std::size_t colon = std::min(line.find(':'), name.size());
  std::ranges::transform(line.substr(0, colon), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  const auto inner = writer.Begin(kResponseHeadersToAdd);
  writer.Bytes(1, {name.data(), colon});
  writer.Bytes(2, line.substr(colon + 2));
  writer.End(inner);
}

}  // namespace

std::int64_t RlsRequest::CostOf(const RlsDescriptor& descriptor) const noexcept {
  const std::uint64_t wanted = descriptor.hits.value_or(std::max<std::uint64_t>(hits, 1));
  return static_cast<std::int64_t>(std::min<std::uint64_t>(wanted, kMaxCount));
}

std::optional<std::int64_t> SecondsOf(std::uint64_t unit) noexcept {
  constexpr std::uint64_t kYear = 6;
  if (unit < 1 || unit > kYear) return std::nullopt;
  return kUnitSeconds[unit];
}

std::optional<Error> ReadRlsRequest(std::string_view message, RlsRequest& request) {
  request.domain = {};
  request.hits = 0;
  request.entries.clear();
  request.descriptors.clear();
  ProtobufReader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) {
      if (!ReadText(reader, request.domain)) return InvalidArgument("domain: write UTF-8");
    } else if (reader.Is(2, WireType::kBytes)) {
      if (!ReadDescriptor(reader.bytes(), request)) return NotReadable("descriptors");
      if (request.entries.size() > kMostEntries || request.descriptors.size() > kMostEntries) break;
    } else if (reader.Is(3, WireType::kVarint)) {
      request.hits = static_cast<std::uint32_t>(reader.number());
    }
  }
  if (reader.is_broken()) return NotReadable("RateLimitRequest");
  if (request.entries.size() > kMostEntries) {
    return InvalidArgument("descriptors: there may be at most " + std::to_string(kMostEntries) +
                           " entries in all of them");
  }
  return Check(request);
}

// The rules that spoke for descriptors, each once.
std::span<const RuleDecision> RlsWriter::RulesOf(std::span<const RuleDecision> statuses) {
  rules_.clear();
  for (const RuleDecision& status : statuses) {
    const auto is_same = [&](const RuleDecision& other) {
      return other.decision.rule == status.decision.rule &&
             other.decision.limit == status.decision.limit && other.window == status.window;
    };
    if (HasLimit(status.decision) && std::ranges::none_of(rules_, is_same)) {
      rules_.push_back(status);
    }
  }
  return rules_;
}

void RlsWriter::WriteHeaders(ByteBuffer& out, const RlsReply& reply, const Settings& settings) {
  const Decision& decision = reply.answer.decision;
  const auto rules = reply.rules.empty() ? RulesOf(reply.statuses) : reply.rules;
  const DecisionFields fields = FieldsOf(decision, reply.now.wall);
  lines_.Clear();
  RoomyText text(lines_.Room(RateLimitHeadersRoom(rules) + kDenialHeadersRoom));
  PutRateLimitHeaders(text, decision, rules, settings, fields, policies_);
  if (!decision.allowed) {
    random_ =
        Mix(random_ ^ static_cast<std::uint64_t>(reply.now.steady.time_since_epoch().count()));
    PutDenialHeaders(text, decision, random_);
    text.Put("Content-Type: application/json\r\n");
  }
  lines_.WroteUpTo(text.end());
  ProtobufWriter writer(out);
  for (std::string_view left = lines_.view(); !left.empty();) {
    const std::size_t end = left.find("\r\n");
    WriteHeader(writer, left.substr(0, end));
    left.remove_prefix(end + 2);
  }
  if (decision.allowed) return;
  constexpr std::uint32_t kRawBody = 5;
  body_.Clear();
  AppendDenial(body_, decision, reply.answer.message, fields);
  writer.Bytes(kRawBody, body_.view());
}

void RlsWriter::Write(ByteBuffer& out, const RlsReply& reply, const Settings& settings) {
  ProtobufWriter writer(out);
  writer.Number(1, reply.answer.decision.allowed ? kCodeOk : kCodeOverLimit);
  for (const RuleDecision& status : reply.statuses) WriteStatus(writer, status, reply.now.wall);
  WriteHeaders(out, reply, settings);
}

}  // namespace weir
