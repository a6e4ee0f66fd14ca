#include "frontend/resp/decision_reply.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "frontend/decision_fields.h"

namespace weir::resp {
namespace {

constexpr WallTime kNow{std::chrono::milliseconds(1'717'920'000'250)};

// Field by field, as any reply is written: what WriteDecision must agree with, although it writes
// several at once where it knows them.
class FieldByField {
 public:
  explicit FieldByField(Version version) : writer_(out_, version) {}

  std::string Write(const Decision& decision) {
    const DecisionFields fields = FieldsOf(decision, kNow);
    const bool reserved = decision.reservation != ReservationId::kNone;
    writer_.Map(reserved ? 14 : 13);
    writer_.Bulk("allowed");
    writer_.Boolean(decision.allowed);
    Text("rule", decision.rule);
    Number("limit", decision.limit);
    Number("remaining", decision.remaining);
    Number("cost", decision.cost);
    Number("retry_after", fields.retry_after);
    Number("retry_after_ms", fields.retry_after_ms);
    Number("reset_after", fields.reset_after);
    Number("reset_after_ms", fields.reset_after_ms);
    Number("reset_at", fields.reset_at);
    Number("delay_ms", fields.delay_ms);
    Text("reason", NameOf(decision.reason));
    Text("source", NameOf(decision.source));
    if (reserved) Text("reservation", Digits(decision.reservation));
    return std::string(out_.view());
  }

 private:
  static std::string Digits(ReservationId reservation) {
    char digits[kReservationDigits + 1];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(reservation));
    return digits;
  }

  void Text(std::string_view name, std::string_view text) {
    writer_.Bulk(name);
    writer_.Bulk(text);
  }
  void Number(std::string_view name, std::optional<std::int64_t> number) {
    writer_.Bulk(name);
    if (number) return writer_.Integer(*number);
    writer_.Null();
  }

  ByteBuffer out_;
  ReplyWriter writer_;
};

std::string Written(Version version, const Decision& decision) {
  ByteBuffer out;
  WriteDecision(out, version, decision, kNow);
  return std::string(out.view());
}

TEST(WriteDecision, WritesTheUsualOne) {
  const Decision decision{.allowed = true,
                          .reason = Reason::kOk,
                          .rule = "per-user",
                          .limit = 1000,
                          .remaining = 999,
                          .cost = 1,
                          .reset_after = std::chrono::milliseconds(3600)};
  EXPECT_EQ(Written(Version::kResp2, decision),
            "*26\r\n$7\r\nallowed\r\n:1\r\n$4\r\nrule\r\n$8\r\nper-user\r\n$5\r\nlimit\r\n:1000\r\n"
            "$9\r\nremaining\r\n:999\r\n$4\r\ncost\r\n:1\r\n$11\r\nretry_after\r\n:0\r\n"
            "$14\r\nretry_after_ms\r\n:0\r\n$11\r\nreset_after\r\n:4\r\n"
            "$14\r\nreset_after_ms\r\n:3600\r\n$8\r\nreset_at\r\n:1717920004\r\n"
            "$8\r\ndelay_ms\r\n:0\r\n$6\r\nreason\r\n$2\r\nok\r\n$6\r\nsource\r\n$6\r\nmemory\r\n");
}

Duration AnyWait() {
  return *rc::gen::element(Duration(-1), Duration(0), Duration(1), Duration(999'999),
                           Duration(1'000'000), Duration(12'345'678'901), kNever - Duration(1),
                           kNever);
}

RC_GTEST_PROP(WriteDecision, WritesTheSameAsFieldByField, ()) {
  const std::string rule =
      *rc::gen::element<std::string>("", "r", "per-user", std::string(300, 'r'));
  const Decision decision{
      .allowed = *rc::gen::arbitrary<bool>(),
      .reason = static_cast<Reason>(*rc::gen::inRange(0, static_cast<int>(Reason::kOverload) + 1)),
      .source = static_cast<Source>(*rc::gen::inRange(0, static_cast<int>(Source::kClosed) + 1)),
      .rule = rule,
      .limit = *rc::gen::arbitrary<std::int64_t>(),
      .remaining = *rc::gen::inRange<std::int64_t>(-1, 200'000),
      .cost = *rc::gen::inRange<std::int64_t>(0, 12),
      .retry_after = AnyWait(),
      .reset_after = AnyWait(),
      .delay = AnyWait(),
      .reservation = *rc::gen::element(ReservationId::kNone, ReservationId{0x0123'4567'89ab'cdef})};
  for (const Version version : {Version::kResp2, Version::kResp3}) {
    RC_ASSERT(Written(version, decision) == FieldByField(version).Write(decision));
  }
}

}  // namespace
}  // namespace weir::resp
