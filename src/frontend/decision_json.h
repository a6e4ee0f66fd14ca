// Decisions as JSON, the same wherever a body is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <weir/decision.h>

#include "frontend/decision_fields.h"
#include "net/byte_buffer.h"
#include "net/roomy_text.h"

namespace weir {

// All fields of a decision with their names and the longest numbers, but for the rule's name.
inline constexpr std::size_t kDecisionRoom = 512;
// The longest sentence of our own.
inline constexpr std::size_t kSentenceRoom = 128;

// A name with what stands before it, and a number; null if there is none.
template <std::size_t size>
void PutField(RoomyText& out, const char (&name)[size], std::int64_t value) noexcept {
  out.Put(name);
  out.PutNumber(value);
}
template <std::size_t size>
void PutField(RoomyText& out, const char (&name)[size],
              const std::optional<std::int64_t>& value) noexcept {
  out.Put(name);
  if (value) {
    out.PutNumber(*value);
  } else {
    out.Put("null");
  }
}

// Without the braces around it.
void PutDecision(RoomyText& out, const Decision& decision, const DecisionFields& fields) noexcept;
// What to say to a person, as a JSON string: `message`, or a sentence of our own if it is empty.
void PutMessage(RoomyText& out, const Decision& decision, std::string_view message,
                const DecisionFields& fields) noexcept;

// A whole object.
void AppendDecision(ByteBuffer& out, const Decision& decision, const DecisionFields& fields);
// The body of a denial: error, message, and all that a decision has.
void AppendDenial(ByteBuffer& out, const Decision& decision, std::string_view message,
                  const DecisionFields& fields);

// What a denial is called: rate_limited, or the name of an error.
std::string_view DenialNameOf(Reason reason) noexcept;

}  // namespace weir
