// The fields of bodies by their names, and where their values go.
#pragma once

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

// None if there is no such field.
std::optional<BodyField> BodyFieldOf(std::string_view name) noexcept;

// The place of a field's value, if that is a text.
std::string_view* TextOf(RequestBody& body, BodyField field) noexcept;
// The place of a field's values, if those have names.
std::vector<NamedValue>* PairsOf(RequestBody& body, BodyField field) noexcept;

}  // namespace weir
