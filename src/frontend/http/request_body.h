// The bodies of requests: flat JSON, of which each endpoint takes some fields.
//
//   {"ip": "203.0.113.9", "user": "ann", "headers": {"x-cost": "5", "x-tag": ["a", "b"]}, "cost":
//   2}
//
// An error names the field and what to write there; never its value, which may be a secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <weir/result.h>

#include "frontend/request_message.h"

namespace weir {

// The fields of all bodies, in the order of kBodyFieldNames.
enum class BodyField : std::uint8_t {
  kIp,
  kUser,
  kApiKey,
  kOrg,
  kTier,
  kMethod,
  kPath,
  kHost,
  kDomain,
  kHeaders,
  kCookies,
  kQuery,
  kDescriptors,
  kRules,
  kCost,
  kWaitMs,
  kTtlMs,
  kKey,
  kLimit,
  kAlgorithm,
  kReservation,
};
inline constexpr std::size_t kBodyFields = 21;

// A set of fields, one bit for each.
using BodyFieldSet = std::uint32_t;
constexpr BodyFieldSet SetOf(BodyField field) { return BodyFieldSet{1} << static_cast<int>(field); }
// Who asks for what, and what it costs.
inline constexpr BodyFieldSet kCheckFields = SetOf(BodyField::kTtlMs) - 1;
inline constexpr BodyFieldSet kReserveFields = kCheckFields | SetOf(BodyField::kTtlMs);
inline constexpr BodyFieldSet kLimitFields = SetOf(BodyField::kKey) | SetOf(BodyField::kLimit) |
                                             SetOf(BodyField::kAlgorithm) | SetOf(BodyField::kCost);
inline constexpr BodyFieldSet kSettleFields = SetOf(BodyField::kReservation);
inline constexpr BodyFieldSet kCommitFields = kSettleFields | SetOf(BodyField::kCost);

// What a body says. Refers to the reader that read it, too.
struct RequestBody : RequestMessage {
  BodyFieldSet seen = 0;

  void Clear() noexcept {
    RequestMessage::Clear();
    seen = 0;
  }
};

// Reads one body at a time, and keeps the texts of the last. Keeps its memory, too.
class RequestBodyReader {
 public:
  struct Form {
    BodyFieldSet allowed = kCheckFields;
    BodyFieldSet required = 0;
    bool may_wait = false;  // Else wait_ms must be 0.
  };
  // The text, and how many bytes behind it may be read, whatever they are.
  struct Text {
    std::string_view json{};
    std::size_t behind = 0;
  };

  RequestBodyReader();
  RequestBodyReader(const RequestBodyReader&) = delete;
  RequestBodyReader& operator=(const RequestBodyReader&) = delete;
  ~RequestBodyReader();

  // None if it was read; else what is wrong with it.
  std::optional<Error> Read(const Text& text, const Form& form, RequestBody& body);
  // A list of them, at most `most`.
  std::optional<Error> ReadList(const Text& text, const Form& form, std::size_t most,
                                std::vector<RequestBody>& bodies);

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace weir
