#include "frontend/http/decision_reply.h"

#include <algorithm>

#include "frontend/decision_json.h"
#include "frontend/json_string.h"

namespace weir {
namespace {

constexpr int kForbidden = 403;
constexpr int kLimited = 429;
constexpr std::size_t kReasonRoom = 48;

void PutReason(RoomyText& out, Reason reason) noexcept {
  out.Put("X-Weir-Reason: ");
  out.Put(NameOf(reason));
  out.Put("\r\n");
}

}  // namespace

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
    AppendProblem(body_, reply, fields, status);
  } else if (!decision.allowed) {
    AppendDenial(body_, decision, reply.message, fields);
  } else if (!is_silent) {
    AppendDecision(body_, decision, fields);
  }
  HttpResponseWriter response(
      out, {.status = status,
            .persistence = form.persistence,
            .without_body = form.without_body,
            .room = kProblemJsonLine.size() + kReasonRoom + DecisionLines::RoomFor(reply.each),
            .date = date()});
  RoomyText& lines = response.lines();
  if (!is_silent) lines.Put(problem ? kProblemJsonLine : kJsonLine);
  lines_.Put(lines, reply, settings, fields);
  if (!decision.allowed) {
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
                                    .room = kJsonLine.size(),
                                    .date = date()});
  response.lines().Put(kJsonLine);
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
                                    .room = kProblemJsonLine.size() + error.header.size(),
                                    .date = date()});
  response.lines().Put(form.problem ? kProblemJsonLine : kJsonLine);
  response.lines().Put(error.header);
  response.Finish(body_.view());
}

}  // namespace weir
