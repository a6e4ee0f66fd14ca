// The fields of bodies by their names, and where their values go.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <weir/request.h>

#include "frontend/http/request_body.h"

namespace weir {

inline constexpr std::array<std::string_view, kBodyFields> kBodyFieldNames = {
    "ip",   "user",    "api_key", "org",     "tier",  "method",      "path",
    "host", "domain",  "headers", "cookies", "query", "descriptors", "rules",
    "cost", "wait_ms", "ttl_ms",  "key",     "limit", "algorithm",   "reservation"};

constexpr std::string_view NameOf(BodyField field) {
  return kBodyFieldNames[static_cast<std::size_t>(field)];
}

namespace body_fields {

// By the length and the first letter of their names, no two fields have the same slot.
inline constexpr std::size_t kSlots = 64;
constexpr std::size_t SlotOf(std::string_view name) noexcept {
  return (name.size() + std::size_t{9} * static_cast<unsigned char>(name[0])) % kSlots;
}

inline constexpr std::uint8_t kNoField = kBodyFields;
constexpr std::array<std::uint8_t, kSlots> FieldsBySlot() {
  std::array<std::uint8_t, kSlots> fields{};
  fields.fill(kNoField);
  for (std::uint8_t i = 0; i < kBodyFields; ++i) fields[SlotOf(kBodyFieldNames[i])] = i;
  return fields;
}
inline constexpr auto kFieldsBySlot = FieldsBySlot();
static_assert(std::ranges::count(kFieldsBySlot, kNoField) == kSlots - kBodyFields,
              "two fields have the same slot: change how it is worked out");

}  // namespace body_fields

// None if there is no such field.
inline std::optional<BodyField> BodyFieldOf(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;
  const std::uint8_t field = body_fields::kFieldsBySlot[body_fields::SlotOf(name)];
  if (field == body_fields::kNoField || kBodyFieldNames[field] != name) return std::nullopt;
  return static_cast<BodyField>(field);
}

// The place of a field's value, if that is a text.
std::string_view* TextOf(RequestBody& body, BodyField field) noexcept;
// The place of a field's values, if those have names.
std::vector<NamedValue>* PairsOf(RequestBody& body, BodyField field) noexcept;

}  // namespace weir
