#include "frontend/rate_limit_headers.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir {
namespace {

constexpr char kAvailable[] = ";r=";
constexpr char kEffectiveWindow[] = ";t=";

constexpr std::size_t kFixedRoom = 512;  // The names of all headers, and their numbers.
constexpr std::size_t kItemRoom = 2 + PolicyTexts::kMostBytes;  // With what separates it.

// Rules' names hold nothing that would have to be escaped.
void PutName(RoomyText& out, std::string_view name) noexcept {
  out.Put('"');
  out.Put(NameInHeaders(name));
  out.Put('"');
}

PolicyTexts::Item ItemOf(const RuleDecision& rule) noexcept {
  return {.name = NameInHeaders(rule.decision.rule),
          .quota = rule.decision.limit,
          .window = rule.window};
}

void PutPolicies(RoomyText& out, const Decision& decision, std::span<const RuleDecision> each,
                 PolicyTexts& texts) noexcept {
  bool first = true;
  for (const RuleDecision& rule : each) {
    if (rule.shadow) continue;
    if (std::exchange(first, false)) {
      out.Put("RateLimit-Policy: ");
    } else {
      out.Put(", ");
    }
    texts.Put(out, ItemOf(rule));
  }
  if (first) {
    out.Put("RateLimit-Policy: ");
    texts.Put(out, ItemOf({.decision = decision}));
  }
  out.Put("\r\n");
}

template <std::size_t size>
void PutLine(RoomyText& out, const char (&name)[size], std::int64_t number) noexcept {
  out.Put(name);
  out.PutNumber(number);
  out.Put("\r\n");
}

bool HasNoLimit(const Decision& decision, std::span<const RuleDecision> each) noexcept {
  switch (decision.reason) {
    case Reason::kAllowList:
    case Reason::kNoRule:
      return true;
    case Reason::kDenyList:
      return decision.rule.empty();
    case Reason::kOverload:
      return decision.rule.empty() && each.empty();
    default:
      return false;
  }
}

}  // namespace

void PutFieldInteger(RoomyText& out, std::int64_t number) noexcept {
  constexpr std::int64_t kMost = 999'999'999'999'999;
  out.PutNumber(std::clamp<std::int64_t>(number, 0, kMost));
}

std::size_t RateLimitHeadersRoom(std::span<const RuleDecision> each) noexcept {
  return kFixedRoom + PolicyTexts::kMostNameBytes + (each.size() + 1) * kItemRoom;
}

void PutRateLimitHeaders(RoomyText& out, const Decision& decision,
                         std::span<const RuleDecision> each, const Settings& settings,
                         const DecisionFields& fields, PolicyTexts& texts) noexcept {
  if (HasNoLimit(decision, each)) return;
  if (settings.x_ratelimit_headers) {
    PutLine(out, "X-RateLimit-Limit: ", decision.limit);
    PutLine(out, "X-RateLimit-Remaining: ", decision.remaining);
    PutLine(out, "X-RateLimit-Reset: ",
            settings.reset == ResetStyle::kEpoch ? fields.reset_at : fields.reset_after);
  }
  if (!settings.ratelimit_headers) return;
  PutPolicies(out, decision, each, texts);
  out.Put("RateLimit: ");
  PutName(out, decision.rule);
  out.Put(kAvailable);
  PutFieldInteger(out, decision.remaining);
  const bool waits = decision.remaining <= 0 && fields.retry_after.value_or(0) > 0;
  out.Put(kEffectiveWindow);
  PutFieldInteger(out, waits ? *fields.retry_after : fields.reset_after);
  out.Put("\r\n");
}

std::int64_t RetryAfterSeconds(Duration retry_after, std::uint64_t random) noexcept {
  constexpr std::int64_t kShare = 10;
  const std::int64_t most = retry_after.count() / kShare;
  const auto extra = static_cast<std::int64_t>(random % static_cast<std::uint64_t>(most + 1));
  return std::max<std::int64_t>(RoundUpTo<std::chrono::seconds>(retry_after + Duration(extra)), 1);
}

void PutDenialHeaders(RoomyText& out, const Decision& decision, std::uint64_t random) noexcept {
  // Longer than any wait that there is; above it, adding to it would overflow.
  constexpr Duration kLongest = std::chrono::hours(24 * 366 * 100);
  if (decision.reason != Reason::kDenyList && decision.reason != Reason::kNeverFits &&
      decision.retry_after < kLongest) {
    PutLine(out, "Retry-After: ",
            RetryAfterSeconds(std::max(decision.retry_after, Duration(0)), random));
  }
  out.Put("Cache-Control: no-store\r\n");
}

}  // namespace weir
