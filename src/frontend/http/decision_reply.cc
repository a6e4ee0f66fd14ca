#include "frontend/http/decision_reply.h"

#include <algorithm>

#include "base/mix.h"
#include "frontend/decision_json.h"
#include "frontend/json_string.h"
#include "frontend/rate_limit_headers.h"

namespace weir {
namespace {

constexpr int kForbidden = 403;
constexpr int kLimited = 429;
constexpr std::string_view kJson = "Content-Type: application/json\r\n";
constexpr std::string_view kProblemJson = "Content-Type: application/problem+json\r\n";
constexpr std::size_t kReasonRoom = 48;
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

void PutReason(RoomyText& out, Reason reason) noexcept {
  out.Put("X-Weir-Reason: ");
  out.Put(NameOf(reason));
  out.Put("\r\n");
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
      return kForbidden;
    case Reason::kOverload:
      return 503;
    default:
      return kLimited;
  }
}

void ReplyWriter::WriteProblem(const DecisionReply& reply, const DecisionFields& fields,
                               int status) {
  const ProblemType type = TypeOf(reply.decision.reason);
  RoomyText text(body_.Room(kDecisionRoom + 2 * kSentenceRoom + NamesRoom(reply) +
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
  body_.WroteUpTo(text.end());
}

int ReplyWriter::Decide(ByteBuffer& out, const DecisionReply& reply, const Settings& settings,
                        const ReplyForm& form) {
  const Decision& decision = reply.decision;
  const DecisionFields fields = FieldsOf(decision, reply.now.wall);
  const int own_status = StatusOf(decision);
  const int status = form.denies_by_403 && own_status == kLimited ? kForbidden : own_status;
  const bool problem = form.problem && !decision.allowed;
  const bool is_silent = form.is_auth && decision.allowed;
  body_.Clear();
  if (problem) {
    WriteProblem(reply, fields, status);
  } else if (!decision.allowed) {
    AppendDenial(body_, decision, reply.message, fields);
  } else if (!is_silent) {
    AppendDecision(body_, decision, fields);
  }
  HttpResponseWriter response(out, {.status = status,
                                    .persistence = form.persistence,
                                    .without_body = form.without_body,
                                    .room = kProblemJson.size() + kDenialHeadersRoom + kReasonRoom +
                                            RateLimitHeadersRoom(reply.each),
                                    .date = date()});
  RoomyText& lines = response.lines();
  if (!is_silent) lines.Put(problem ? kProblemJson : kJson);
  PutRateLimitHeaders(lines, decision, reply.each, settings, fields, policies_);
  if (!decision.allowed) {
    random_ =
        Mix(random_ ^ static_cast<std::uint64_t>(reply.now.steady.time_since_epoch().count()));
    PutDenialHeaders(lines, decision, random_);
    if (form.is_auth) PutReason(lines, decision.reason);
  } else if (is_silent) {
    lines.Put("Cache-Control: no-store\r\n");  // It is the answer to a GET, and holds only once.
  }
  response.Finish(body_.view());
  return status;
}

void ReplyWriter::Tell(ByteBuffer& out, const DecisionReply& reply, const ReplyForm& form) {
  body_.Clear();
  AppendDecision(body_, reply.decision, FieldsOf(reply.decision, reply.now.wall));
  HttpResponseWriter response(out, {.persistence = form.persistence,
                                    .without_body = form.without_body,
                                    .room = kJson.size(),
                                    .date = date()});
  response.lines().Put(kJson);
  response.Finish(body_.view());
}

void ReplyWriter::Refuse(ByteBuffer& out, const ErrorReply& error, const ReplyForm& form) {
  body_.Clear();
  const std::string_view title = HttpStatusName(error.status);
  RoomyText text(body_.Room(kSentenceRoom + title.size() + error.name.size() +
                            JsonStringRoom(error.message.size())));
  if (form.problem) {
    text.Put("{\"type\":\"about:blank\",\"title\":\"");
    text.Put(title);
    PutField(text, "\",\"status\":", error.status);
    text.Put(",\"detail\":");
    PutJsonString(text, error.message);
    text.Put(",\"error\":\"");
    text.Put(error.name);
    text.Put("\"}");
  } else {
    text.Put("{\"error\":\"");
    text.Put(error.name);
    text.Put("\",\"message\":");
    PutJsonString(text, error.message);
    text.Put('}');
  }
  body_.WroteUpTo(text.end());
  HttpResponseWriter response(out, {.status = error.status,
                                    .persistence = form.persistence,
                                    .without_body = form.without_body,
                                    .room = kProblemJson.size() + error.header.size(),
                                    .date = date()});
  response.lines().Put(form.problem ? kProblemJson : kJson);
  response.lines().Put(error.header);
  response.Finish(body_.view());
}

}  // namespace weir
