// Reads a body both ways, the short one for plain bodies and the parser's, and compares.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/http/body_fields.h"
#include "frontend/http/request_body.h"

namespace weir {

inline bool AreSame(RequestBody& one, RequestBody& other) {
  for (std::size_t i = 0; i < kBodyFields; ++i) {
    const auto field = static_cast<BodyField>(i);
    const std::string_view* const text = TextOf(one, field);
    if (text != nullptr && *text != *TextOf(other, field)) return false;
    const auto* const pairs = PairsOf(one, field);
    const auto is_same = [](const NamedValue& a, const NamedValue& b) {
      return a.name == b.name && a.value == b.value;
    };
    if (pairs != nullptr && !std::ranges::equal(*pairs, *PairsOf(other, field), is_same)) {
      return false;
    }
  }
  return one.seen == other.seen && one.cost == other.cost && one.wait == other.wait &&
         one.ttl == other.ttl && one.reservation == other.reservation && one.rules == other.rules;
}

// None if there is no difference. Lists are always read by the parser, so the body is put into one.
inline std::optional<std::string> DifferenceOfWays(const std::string& json,
                                                   const RequestBodyReader::Form& form) {
  RequestBodyReader reader;
  RequestBodyReader list_reader;
  RequestBody body;
  std::vector<RequestBody> bodies;
  const std::string list = "[" + json + "]";
  const auto error = reader.Read({.json = json}, form, body);
  const auto list_error = list_reader.ReadList({.json = list}, form, 2, bodies);
  const bool parsed = !list_error && bodies.size() == 1;
  if (parsed && error) return "refused, but parsed: " + error->message;
  if (!parsed && !error) return "taken, but not parsed";
  if (parsed && !AreSame(body, bodies[0])) return "not read as parsed";
  return std::nullopt;
}

}  // namespace weir
