// The headers that tell a client about its limits: the family X-RateLimit-*, and RateLimit with
// RateLimit-Policy as draft-ietf-httpapi-ratelimit-headers-11 has them:
//
//   X-RateLimit-Limit: 100
//   X-RateLimit-Remaining: 99
//   X-RateLimit-Reset: 1717920660
//   RateLimit-Policy: "per-ip";q=200;w=60, "per-user";q=100;w=60
//   RateLimit: "per-user";r=99;t=1
//
// The draft still changes; the names of its parameters are in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weir/engine.h>

#include "frontend/decision_fields.h"
#include "frontend/policy_texts.h"
#include "frontend/settings.h"
#include "net/roomy_text.h"

namespace weir {

// What a rule is called in headers. A limit that came with its request has no name, but needs one.
constexpr std::string_view NameInHeaders(std::string_view rule) noexcept {
  return rule.empty() ? std::string_view("default") : rule;
}

// Integers of structured fields have at most 15 digits, and these here are not below 0.
void PutFieldInteger(RoomyText& out, std::int64_t number) noexcept;

// How much room the headers of a decision take at most.
std::size_t RateLimitHeadersRoom(std::span<const RuleDecision> each) noexcept;

// Nothing if no limit had a say: a list, or no rule.
void PutRateLimitHeaders(RoomyText& out, const Decision& decision,
                         std::span<const RuleDecision> each, const Settings& settings,
                         const DecisionFields& fields, PolicyTexts& texts) noexcept;

inline constexpr std::size_t kDenialHeadersRoom = 80;
// Cache-Control, and Retry-After unless waiting does not help. Retry-After is up to a tenth later
// than it need be, by `random`, so that those who were denied together do not come back together;
// never earlier.
void PutDenialHeaders(RoomyText& out, const Decision& decision, std::uint64_t random) noexcept;

// The seconds of Retry-After.
std::int64_t RetryAfterSeconds(Duration retry_after, std::uint64_t random) noexcept;

}  // namespace weir
