#include "frontend/http/body_fields.h"

#include <algorithm>

namespace weir {
namespace {

// By the length and the first letter of their names, no two fields have the same slot.
constexpr std::size_t kSlots = 64;
constexpr std::size_t SlotOf(std::string_view name) noexcept {
  return (name.size() + 9 * static_cast<unsigned char>(name[0])) % kSlots;
}

constexpr std::uint8_t kNoField = kBodyFields;
constexpr std::array<std::uint8_t, kSlots> FieldsBySlot() {
  std::array<std::uint8_t, kSlots> fields{};
  fields.fill(kNoField);
  for (std::uint8_t i = 0; i < kBodyFields; ++i) fields[SlotOf(kBodyFieldNames[i])] = i;
  return fields;
}
constexpr auto kFieldsBySlot = FieldsBySlot();
static_assert(std::ranges::count(kFieldsBySlot, kNoField) == kSlots - kBodyFields,
              "two fields have the same slot: change how it is worked out");

}  // namespace

std::optional<BodyField> BodyFieldOf(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;
  const std::uint8_t field = kFieldsBySlot[SlotOf(name)];
  if (field == kNoField || kBodyFieldNames[field] != name) return std::nullopt;
  return static_cast<BodyField>(field);
}

std::string_view* TextOf(RequestBody& body, BodyField field) noexcept {
  Request& request = body.request;
  switch (field) {
    case BodyField::kIp:
      return &request.ip;
    case BodyField::kUser:
      return &request.user;
    case BodyField::kApiKey:
      return &request.api_key;
    case BodyField::kOrg:
      return &request.org;
    case BodyField::kTier:
      return &request.tier;
    case BodyField::kMethod:
      return &request.method;
    case BodyField::kPath:
      return &request.path;
    case BodyField::kHost:
      return &request.host;
    case BodyField::kDomain:
      return &request.domain;
    case BodyField::kKey:
      return &body.key;
    case BodyField::kLimit:
      return &body.limit;
    case BodyField::kAlgorithm:
      return &body.algorithm;
    default:
      return nullptr;
  }
}

std::vector<NamedValue>* PairsOf(RequestBody& body, BodyField field) noexcept {
  switch (field) {
    case BodyField::kHeaders:
      return &body.headers;
    case BodyField::kCookies:
      return &body.cookies;
    case BodyField::kQuery:
      return &body.query;
    case BodyField::kDescriptors:
      return &body.descriptors;
    default:
      return nullptr;
  }
}

}  // namespace weir
