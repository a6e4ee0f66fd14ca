#include "frontend/decision_http.h"

#include <algorithm>

#include "base/mix.h"
#include "frontend/decision_json.h"
#include "frontend/json_string.h"
#include "frontend/rate_limit_headers.h"
#include "policy/compiled_policy.h"

namespace weir {
namespace {

// The types that the draft of the rate-limit headers has for this.
struct ProblemType {
  std::string_view type;
  std::string_view title;
};
ProblemType TypeOf(Reason reason) noexcept {
  switch (reason) {
    case Reason::kDenyList:
      return {"about:blank", "Forbidden"};
    case Reason::kBanned:
      return {"https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
              "Abnormal usage detected"};
    case Reason::kStoreFailure:
    case Reason::kOverload:
      return {"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
              "Temporarily reduced capacity"};
    default:
      return {"https://iana.org/assignments/http-problem-types#quota-exceeded", "Quota exceeded"};
  }
}

void PutViolatedPolicies(RoomyText& out, const DecisionReply& reply) noexcept {
  out.Put(",\"violated-policies\":[");
  bool first = true;
  for (const RuleDecision& rule : reply.each) {
    if (rule.shadow || rule.decision.allowed) continue;
    out.Put(first ? "\"" : ",\"");
    first = false;
    out.Put(NameInHeaders(rule.decision.rule));
    out.Put('"');
  }
  if (first && !reply.decision.rule.empty()) {
    out.Put('"');
    out.Put(reply.decision.rule);
    out.Put('"');
  }
  out.Put(']');
}

std::size_t NamesRoom(const DecisionReply& reply) noexcept {
  std::size_t room = reply.decision.rule.size() + 4;
  for (const RuleDecision& rule : reply.each) {
    room += NameInHeaders(rule.decision.rule).size() + 4;
  }
  return room;
}

}  // namespace

int StatusOf(const Decision& decision) noexcept {
  if (decision.allowed) return 200;
  switch (decision.reason) {
    case Reason::kDenyList:
      return 403;
    case Reason::kOverload:
      return 503;
    default:
      return 429;
  }
}

void AppendProblem(ByteBuffer& out, const DecisionReply& reply, const DecisionFields& fields,
                   int status) {
  const ProblemType type = TypeOf(reply.decision.reason);
  RoomyText text(out.Room(kDecisionRoom + 2 * kSentenceRoom + NamesRoom(reply) +
                          JsonStringRoom(reply.message.size())));
  text.Put("{\"type\":\"");
  text.Put(type.type);
  text.Put("\",\"title\":\"");
  text.Put(type.title);
  PutField(text, "\",\"status\":", status);
  text.Put(",\"detail\":");
  PutMessage(text, reply.decision, reply.message, fields);
  if (type.type != "about:blank") PutViolatedPolicies(text, reply);
  text.Put(',');
  PutDecision(text, reply.decision, fields);
  text.Put('}');
  out.WroteUpTo(text.end());
}

std::size_t DecisionLines::RoomFor(std::span<const RuleDecision> each) noexcept {
  return kDenialHeadersRoom + RateLimitHeadersRoom(each);
}

void DecisionLines::Put(RoomyText& out, const DecisionReply& reply, const Settings& settings,
                        const DecisionFields& fields) noexcept {
  PutRateLimitHeaders(out, reply.decision, reply.each, settings, fields, policies_);
  if (reply.decision.allowed) return;
  random_ = Mix(random_ ^ static_cast<std::uint64_t>(reply.now.steady.time_since_epoch().count()));
  PutDenialHeaders(out, reply.decision, random_);
}

ToldRules::ToldRules(const Engine& engine, const Decision& decision,
                     std::span<const RuleDecision> each)
    : each_(each.first(std::min(each.size(), kMost))) {
  if (!each.empty() || decision.rule.empty()) return;
  is_described_ = true;
  described_.decision = decision;
  const Policy policy = engine.policy();
  const auto& rules = policy.compiled().rules;
  const auto rule = std::ranges::find(rules, decision.rule, &CompiledRule::name);
  if (rule == rules.end()) return;
  // Which of the limits it was is not told; of those that hold as much, most are the same.
  const auto limit = std::ranges::find(rule->limits, decision.limit, &Limit::capacity);
  if (limit != rule->limits.end()) described_.window = limit->refill_time();
}

}  // namespace weir
