#include "frontend/resp/decision_reply.h"

#include "frontend/decision_fields.h"

namespace weir::resp {
namespace {

// All but the name of the rule: the names of the fields, at most eleven numbers and three words.
constexpr std::size_t kMostBytesButRule = 640;

char* PutBulk(char* at, std::string_view text) noexcept {
  *at++ = '$';
  at = PutText(PutInteger(at, static_cast<std::int64_t>(text.size())), "\r\n");
  return PutText(PutText(at, text), "\r\n");
}

char* PutNumber(char* at, std::int64_t number) noexcept {
  *at++ = ':';
  return PutText(PutInteger(at, number), "\r\n");
}

char* PutNumberOrNull(char* at, std::optional<std::int64_t> number, bool resp3) noexcept {
  if (number) [[likely]]
    return PutNumber(at, *number);
  return resp3 ? PutText(at, "_\r\n") : PutText(at, "$-1\r\n");
}

char* PutReservation(char* at, ReservationId reservation) noexcept {
  at = PutText(at, "$11\r\nreservation\r\n$16\r\n");
  const auto number = static_cast<std::uint64_t>(reservation);
  for (std::size_t i = 0; i < kReservationDigits; ++i) {
    *at++ = "0123456789abcdef"[(number >> (60 - 4 * i)) & 15];
  }
  return PutText(at, "\r\n");
}

char* PutAllowed(char* at, bool allowed, bool resp3) noexcept {
  if (resp3) return allowed ? PutText(at, "#t\r\n") : PutText(at, "#f\r\n");
  return allowed ? PutText(at, ":1\r\n") : PutText(at, ":0\r\n");
}

char* PutHeader(char* at, bool resp3, bool with_reservation) noexcept {
  if (with_reservation) return resp3 ? PutText(at, "%14\r\n") : PutText(at, "*28\r\n");
  return resp3 ? PutText(at, "%13\r\n") : PutText(at, "*26\r\n");
}

}  // namespace

void WriteDecision(ByteBuffer& out, Version version, const Decision& decision, WallTime now) {
  const DecisionFields fields = FieldsOf(decision, now);
  const bool resp3 = version == Version::kResp3;
  const bool reserved = decision.reservation != ReservationId::kNone;
  char* at = out.Room(kMostBytesButRule + decision.rule.size());
  at = PutHeader(at, resp3, reserved);
  at = PutAllowed(PutText(at, "$7\r\nallowed\r\n"), decision.allowed, resp3);
  at = PutBulk(PutText(at, "$4\r\nrule\r\n"), decision.rule);
  at = PutNumber(PutText(at, "$5\r\nlimit\r\n"), decision.limit);
  at = PutNumber(PutText(at, "$9\r\nremaining\r\n"), decision.remaining);
  at = PutNumber(PutText(at, "$4\r\ncost\r\n"), decision.cost);
  at = PutNumberOrNull(PutText(at, "$11\r\nretry_after\r\n"), fields.retry_after, resp3);
  at = PutNumberOrNull(PutText(at, "$14\r\nretry_after_ms\r\n"), fields.retry_after_ms, resp3);
  at = PutNumber(PutText(at, "$11\r\nreset_after\r\n"), fields.reset_after);
  at = PutNumber(PutText(at, "$14\r\nreset_after_ms\r\n"), fields.reset_after_ms);
  at = PutNumber(PutText(at, "$8\r\nreset_at\r\n"), fields.reset_at);
  at = PutNumber(PutText(at, "$8\r\ndelay_ms\r\n"), fields.delay_ms);
  at = PutBulk(PutText(at, "$6\r\nreason\r\n"), NameOf(decision.reason));
  at = PutBulk(PutText(at, "$6\r\nsource\r\n"), NameOf(decision.source));
  if (reserved) at = PutReservation(at, decision.reservation);
  out.WroteUpTo(at);
}

}  // namespace weir::resp
