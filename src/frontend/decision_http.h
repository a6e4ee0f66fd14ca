// What HTTP says of a decision whoever sends it: status, header lines, and the body of a denial.
// The front end of HTTP sends them itself; over RESP they go to those who answer a request with
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weir/engine.h>

#include "frontend/decision_fields.h"
#include "frontend/policy_texts.h"
#include "frontend/settings.h"
#include "net/byte_buffer.h"
#include "net/roomy_text.h"

namespace weir {

struct DecisionReply {
  const Decision& decision;
  std::string_view message{};  // Of the rule that denied.
  std::span<const RuleDecision> each{};
  Now now;
};

// 200; 429 or another for a denial.
int StatusOf(const Decision& decision) noexcept;

inline constexpr std::string_view kJsonLine = "Content-Type: application/json\r\n";
inline constexpr std::string_view kProblemJsonLine = "Content-Type: application/problem+json\r\n";

// The body of a denial as RFC 9457 has it.
void AppendProblem(ByteBuffer& out, const DecisionReply& reply, const DecisionFields& fields,
                   int status);

// Writes header lines for one thread.
class DecisionLines {
 public:
  // How much room they take at most.
  static std::size_t RoomFor(std::span<const RuleDecision> each) noexcept;

  // The rate-limit headers, and for a denial when to come back.
  void Put(RoomyText& out, const DecisionReply& reply, const Settings& settings,
           const DecisionFields& fields) noexcept;

 private:
  PolicyTexts policies_;
  std::uint64_t random_ = 0;
};

// What there is to tell of the rules behind a decision. Where the engine says nothing of each, the
// one that the decision describes is looked up in the policy, for its window.
class ToldRules {
 public:
  // How many rules are told of in the headers.
  static constexpr std::size_t kMost = 32;

  ToldRules(const Engine& engine, const Decision& decision, std::span<const RuleDecision> each);

  // Refers to this object.
  std::span<const RuleDecision> each() const noexcept {
    return each_.empty() ? std::span(&described_, is_described_ ? 1U : 0U) : each_;
  }

 private:
  std::span<const RuleDecision> each_;
  RuleDecision described_{};
  bool is_described_ = false;
};

}  // namespace weir
