#include "frontend/resp/decision_reply.h"

#include "frontend/decision_fields.h"
#include "frontend/decision_json.h"

namespace weir::resp {
namespace {

// All but the name of the rule: the names of the fields, at most eleven numbers and three words.
constexpr std::size_t kMostBytesButRule = 640;

// Texts that follow each other are written as one wherever both are known: a field begins with the
// line end of the one before it.

char* PutAllowed(char* at, bool allowed, bool resp3) noexcept {
  if (resp3) return allowed ? PutText(at, "#t") : PutText(at, "#f");
  return allowed ? PutText(at, ":1") : PutText(at, ":0");
}

char* PutHeader(char* at, bool resp3, std::int64_t fields) noexcept {
  if (fields == 13) return resp3 ? PutText(at, "%13") : PutText(at, "*26");
  *at = resp3 ? '%' : '*';
  return PutDecimal(at + 1, resp3 ? fields : 2 * fields);
}

// Behind its '$'.
char* PutBulk(char* at, std::string_view text) noexcept {
  at = PutDecimal(at, static_cast<std::int64_t>(text.size()));
  return PutText(PutText(at, "\r\n"), text);
}

char* PutNumberOrNull(char* at, std::optional<std::int64_t> number, bool resp3) noexcept {
  if (number) return PutDecimal(PutText(at, ":"), *number);
  return resp3 ? PutText(at, "_") : PutText(at, "$-1");
}

char* PutRetry(char* at, const DecisionFields& fields, bool resp3) noexcept {
  if (fields.retry_after_ms == 0) {
    return PutText(at, "\r\n$11\r\nretry_after\r\n:0\r\n$14\r\nretry_after_ms\r\n:0");
  }
  at = PutNumberOrNull(PutText(at, "\r\n$11\r\nretry_after\r\n"), fields.retry_after, resp3);
  at = PutText(at, "\r\n$14\r\nretry_after_ms\r\n");
  return PutNumberOrNull(at, fields.retry_after_ms, resp3);
}

char* PutReasonAndSource(char* at, const Decision& decision) noexcept {
  if (decision.reason == Reason::kOk && decision.source == Source::kMemory) {
    return PutText(at, "\r\n$6\r\nreason\r\n$2\r\nok\r\n$6\r\nsource\r\n$6\r\nmemory");
  }
  at = PutBulk(PutText(at, "\r\n$6\r\nreason\r\n$"), NameOf(decision.reason));
  return PutBulk(PutText(at, "\r\n$6\r\nsource\r\n$"), NameOf(decision.source));
}

char* PutReservation(char* at, ReservationId reservation) noexcept {
  at = PutText(at, "\r\n$11\r\nreservation\r\n$16\r\n");
  const auto number = static_cast<std::uint64_t>(reservation);
  for (std::size_t i = 0; i < kReservationDigits; ++i) {
    *at++ = "0123456789abcdef"[(number >> (60 - 4 * i)) & 15];
  }
  return at;
}

}  // namespace

void WriteDecision(ByteBuffer& out, Version version, const Decision& decision, WallTime now,
                   std::int64_t more) {
  const DecisionFields fields = FieldsOf(decision, now);
  const bool resp3 = version == Version::kResp3;
  const bool reserved = decision.reservation != ReservationId::kNone;
  char* at = out.Room(kMostBytesButRule + decision.rule.size());
  at = PutHeader(at, resp3, (reserved ? 14 : 13) + more);
  at = PutAllowed(PutText(at, "\r\n$7\r\nallowed\r\n"), decision.allowed, resp3);
  at = PutBulk(PutText(at, "\r\n$4\r\nrule\r\n$"), decision.rule);
  at = PutDecimal(PutText(at, "\r\n$5\r\nlimit\r\n:"), decision.limit);
  at = PutDecimal(PutText(at, "\r\n$9\r\nremaining\r\n:"), decision.remaining);
  at = PutDecimal(PutText(at, "\r\n$4\r\ncost\r\n:"), decision.cost);
  at = PutRetry(at, fields, resp3);
  at = PutDecimal(PutText(at, "\r\n$11\r\nreset_after\r\n:"), fields.reset_after);
  at = PutDecimal(PutText(at, "\r\n$14\r\nreset_after_ms\r\n:"), fields.reset_after_ms);
  at = PutDecimal(PutText(at, "\r\n$8\r\nreset_at\r\n:"), fields.reset_at);
  at = PutDecimal(PutText(at, "\r\n$8\r\ndelay_ms\r\n:"), fields.delay_ms);
  at = PutReasonAndSource(at, decision);
  if (reserved) at = PutReservation(at, decision.reservation);
  out.WroteUpTo(PutText(at, "\r\n"));
}

void WriteHttpDecision(ByteBuffer& out, Version version, const DecisionReply& reply,
                       const Settings& settings, HttpForm form) {
  // Of this thread, kept from one reply to the next.
  thread_local ByteBuffer body;
  thread_local ByteBuffer headers;
  thread_local DecisionLines lines;
  const Decision& decision = reply.decision;
  const DecisionFields fields = FieldsOf(decision, reply.now.wall);
  const int status = StatusOf(decision);
  const bool problem = form == HttpForm::kProblem;
  body.Clear();
  headers.Clear();
  RoomyText text(headers.Room(kProblemJsonLine.size() + DecisionLines::RoomFor(reply.each)));
  if (!decision.allowed) {
    text.Put(problem ? kProblemJsonLine : kJsonLine);
    if (problem) {
      AppendProblem(body, reply, fields, status);
    } else {
      AppendDenial(body, decision, reply.message, fields);
    }
  }
  lines.Put(text, reply, settings, fields);
  headers.WroteUpTo(text.end());

  WriteDecision(out, version, decision, reply.now.wall, 3);
  ReplyWriter writer(out, version);
  writer.Bulk("status");
  writer.Integer(status);
  writer.Bulk("headers");
  writer.Bulk(headers.view());
  writer.Bulk("body");
  writer.Bulk(body.view());
}

}  // namespace weir::resp
