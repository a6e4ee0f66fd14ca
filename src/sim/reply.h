// What a simulated server answers, before it is written as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/byte_buffer.h"

namespace weir::sim {

struct Reply {
  enum class Kind : std::uint8_t { kNil, kNilArray, kInteger, kBulk, kStatus, kError, kArray };

  static Reply Nil() { return {}; }
  static Reply Integer(std::int64_t number) { return {.kind = Kind::kInteger, .integer = number}; }
  static Reply Bulk(std::string text) { return {.kind = Kind::kBulk, .text = std::move(text)}; }
  static Reply Status(std::string text) { return {.kind = Kind::kStatus, .text = std::move(text)}; }
  static Reply Ok() { return Status("OK"); }
  // With its code: "ERR syntax error".
  static Reply Error(std::string text) { return {.kind = Kind::kError, .text = std::move(text)}; }
  static Reply Array(std::vector<Reply> items = {}) {
    return {.kind = Kind::kArray, .items = std::move(items)};
  }

  bool IsError() const noexcept { return kind == Kind::kError; }

  friend bool operator==(const Reply&, const Reply&) = default;

  Kind kind = Kind::kNil;
  std::int64_t integer = 0;
  std::string text{};
  std::vector<Reply> items{};
};

// As RESP2.
void Write(const Reply& reply, ByteBuffer& out);

// For people: (integer) 3, "text", (error) ERR ..., [a, b].
std::string ToText(const Reply& reply);

}  // namespace weir::sim
