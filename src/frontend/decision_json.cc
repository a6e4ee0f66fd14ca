#include "frontend/decision_json.h"

#include <algorithm>

#include "frontend/error_table.h"
#include "frontend/json_string.h"

namespace weir {
namespace {

void PutReservation(RoomyText& out, ReservationId id) noexcept {
  out.Put(",\"reservation\":\"");
  out.Put(ReservationText(id).view());
  out.Put('"');
}

}  // namespace

// Rules' names need no escaping.
void PutDecision(RoomyText& out, const Decision& decision, const DecisionFields& fields) noexcept {
  out.Put(decision.allowed ? "\"allowed\":true,\"rule\":" : "\"allowed\":false,\"rule\":");
  if (decision.rule.empty()) {
    out.Put("null");
  } else {
    out.Put('"');
    out.Put(decision.rule);
    out.Put('"');
  }
  PutField(out, ",\"limit\":", decision.limit);
  PutField(out, ",\"remaining\":", decision.remaining);
  PutField(out, ",\"cost\":", decision.cost);
  PutField(out, ",\"retry_after\":", fields.retry_after);
  PutField(out, ",\"retry_after_ms\":", fields.retry_after_ms);
  PutField(out, ",\"reset_after\":", fields.reset_after);
  PutField(out, ",\"reset_after_ms\":", fields.reset_after_ms);
  PutField(out, ",\"reset_at\":", fields.reset_at);
  PutField(out, ",\"delay_ms\":", fields.delay_ms);
  out.Put(",\"reason\":\"");
  out.Put(NameOf(decision.reason));
  out.Put("\",\"source\":\"");
  out.Put(NameOf(decision.source));
  out.Put('"');
  if (decision.reservation != ReservationId::kNone) PutReservation(out, decision.reservation);
}

// What to say to a person, as a JSON string.
void PutMessage(RoomyText& out, const Decision& decision, std::string_view message,
                const DecisionFields& fields) noexcept {
  if (!message.empty()) return PutJsonString(out, message);
  switch (decision.reason) {
    case Reason::kNeverFits:
      return out.Put("\"This request costs more than its limit can ever hold.\"");
    case Reason::kDenyList:
      return out.Put("\"This request is not allowed.\"");
    case Reason::kStoreFailure:
      out.Put("\"The limit cannot be checked at the moment.");
      break;
    case Reason::kOverload:
      out.Put("\"Too many requests wait or hold places already.");
      break;
    default:
      out.Put("\"Too many requests.");
  }
  if (fields.retry_after) {
    const std::int64_t seconds = std::max<std::int64_t>(*fields.retry_after, 1);
    out.Put(" Retry after ");
    out.PutNumber(seconds);
    out.Put(seconds == 1 ? " second." : " seconds.");
  }
  out.Put('"');
}

std::string_view DenialNameOf(Reason reason) noexcept {
  switch (reason) {
    case Reason::kDenyList:
      return RowOf(ErrorCode::kForbidden).name;
    case Reason::kOverload:
      return RowOf(ErrorCode::kOverloaded).name;
    default:
      return "rate_limited";
  }
}

void AppendDecision(ByteBuffer& out, const Decision& decision, const DecisionFields& fields) {
  RoomyText text(out.Room(kDecisionRoom + decision.rule.size()));
  text.Put('{');
  PutDecision(text, decision, fields);
  text.Put('}');
  out.WroteUpTo(text.end());
}

void AppendDenial(ByteBuffer& out, const Decision& decision, std::string_view message,
                  const DecisionFields& fields) {
  RoomyText text(out.Room(kDecisionRoom + kSentenceRoom + decision.rule.size() +
                          JsonStringRoom(message.size())));
  text.Put("{\"error\":\"");
  text.Put(DenialNameOf(decision.reason));
  text.Put("\",\"message\":");
  PutMessage(text, decision, message, fields);
  text.Put(',');
  PutDecision(text, decision, fields);
  text.Put('}');
  out.WroteUpTo(text.end());
}

}  // namespace weir
