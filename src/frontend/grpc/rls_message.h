// What Envoy asks, and is told: envoy.service.ratelimit.v3, read from and written to the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <weir/engine.h>
#include <weir/request.h>
#include <weir/result.h>

#include "frontend/policy_texts.h"
#include "frontend/settings.h"
#include "net/byte_buffer.h"

namespace weir {

// A limit that counts instead of the policy's.
struct RlsOverride {
  std::uint64_t requests = 0;
  std::uint64_t unit = 0;
};

struct RlsDescriptor {
  // Its entries among those of the whole request.
  std::size_t first_entry = 0;
  std::size_t entries = 0;

  std::optional<RlsOverride> limit{};
  std::optional<std::uint64_t> hits{};
  bool is_negative = false;
};

// Refers to the message. Used again it keeps its memory.
struct RlsRequest {
  std::string_view domain{};
  std::uint64_t hits = 0;
  std::vector<NamedValue> entries{};
  std::vector<RlsDescriptor> descriptors{};

  std::span<const NamedValue> EntriesOf(const RlsDescriptor& descriptor) const noexcept {
    return std::span(entries).subspan(descriptor.first_entry, descriptor.entries);
  }
  std::int64_t CostOf(const RlsDescriptor& descriptor) const noexcept;
};

// None if it was read; else what is wrong with it.
std::optional<Error> ReadRlsRequest(std::string_view message, RlsRequest& request);

// How long a unit of an override is; none if there is no such unit.
std::optional<std::int64_t> SecondsOf(std::uint64_t unit) noexcept;

struct RlsReply {
  const Answer& answer;
  // What speaks for each descriptor, one to one.
  std::span<const RuleDecision> statuses{};
  // What each rule decided, for the headers; those of `statuses` if there is none.
  std::span<const RuleDecision> rules{};
  Now now;
};

// Writes messages of one thread.
class RlsWriter {
 public:
  void Write(ByteBuffer& out, const RlsReply& reply, const Settings& settings);

 private:
  std::span<const RuleDecision> RulesOf(std::span<const RuleDecision> statuses);
  void WriteHeaders(ByteBuffer& out, const RlsReply& reply, const Settings& settings);

  PolicyTexts policies_;
  ByteBuffer lines_;
  ByteBuffer body_;
  std::vector<RuleDecision> rules_{};
  std::uint64_t random_ = 0;
};

}  // namespace weir
