#include "frontend/grpc/grpc_protocol.h"

#include <string>

#include <gtest/gtest.h>

#include "frontend/grpc/grpc_under_test.h"
#include "frontend/grpc/methods.h"
#include "frontend/grpc/reflection.h"

namespace weir {
namespace {

using std::chrono::seconds;

constexpr std::string_view kCheck = "/weir.v1.Limiter/Check";
constexpr std::string_view kHealth = "/grpc.health.v1.Health/Check";
constexpr std::string_view kWatch = "/grpc.health.v1.Health/Watch";
constexpr std::string_view kReflection =
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

std::string CheckOf(std::string_view ip) {
  return Message([&](ProtobufWriter& writer) { writer.Bytes(1, ip); });
}
std::string Waiting(std::string_view ip, std::uint64_t milliseconds) {
  return Message([&](ProtobufWriter& writer) {
    writer.Bytes(1, ip);
    writer.Number(16, milliseconds);
  });
}

TEST(GrpcProtocol, AnswersCallsOfOneTurnTogether) {
  GrpcUnderTest under;
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 7; ++i) ids.push_back(under.Begin(kCheck, CheckOf("203.0.113.9")));
  under.Exchange();
  int allowed = 0;
  for (const std::int32_t id : ids) {
    EXPECT_EQ(under.Of(id).status, "0");
    allowed += static_cast<int>(NumberIn(under.Of(id).message, 1));
  }
  EXPECT_EQ(allowed, 5);
  EXPECT_EQ(under.decided, 7U);
  EXPECT_EQ(under.Counted("OK"), 7U);
}

TEST(GrpcProtocol, SaysWhatIsWrongWithACall) {
  GrpcUnderTest under;
  const auto with = [&](const std::string& name, const std::string& value) {
    auto fields = GrpcUnderTest::FieldsFor(kCheck);
    for (auto& field : fields) {
      if (field.first == name) field.second = value;
    }
    const std::int32_t id = under.client.Request(fields, Framed(CheckOf("203.0.113.9")));
    under.Exchange();
    return under.Of(id);
  };
  EXPECT_EQ(with("content-type", "application/json").http, "415");
  EXPECT_EQ(with("content-type", "application/grpc-web").http, "415");
  EXPECT_EQ(with(":method", "GET").http, "405");
  EXPECT_EQ(with(":path", "/weir.v1.Limiter/Chek").status, "12");
  EXPECT_EQ(with("content-type", "application/grpc+proto").status, "0");
  const auto raw = [&](const std::string& body) {
    const std::int32_t id = under.client.Request(GrpcUnderTest::FieldsFor(kCheck), body);
    under.Exchange();
    return under.Of(id);
  };
  EXPECT_EQ(raw("").status, "3") << "no message";
  EXPECT_EQ(raw(Framed("abc").substr(0, 6)).status, "3") << "half a message";
  EXPECT_EQ(raw(Framed("") + Framed("")).status, "3") << "two";
  EXPECT_EQ(raw(Framed("x", 1)).status, "13") << "compressed, and nobody said how";
  EXPECT_EQ(raw(Framed("\x08")).status, "3") << "no protobuf";
  const auto zipped = under.Ask(kCheck, "", {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(zipped.status, "0") << "the message was not";
}

TEST(GrpcProtocol, NamesTheEncodingsItUnderstands) {
  GrpcUnderTest under;
  auto fields = GrpcUnderTest::FieldsFor(kCheck);
  fields.emplace_back("grpc-encoding", "gzip");
  const std::int32_t id = under.client.Request(fields, Framed("x", 1));
  under.Exchange();
  EXPECT_EQ(under.Of(id).status, "12");
  EXPECT_EQ(under.client.of(id).headers.at("grpc-accept-encoding"), "identity");
}

TEST(GrpcProtocol, RefusesWhatIsTooLarge) {
  Settings settings;
  settings.limits.body = 1'000;
  settings.limits.header = 2'000;
  GrpcUnderTest under({.settings = settings});
  EXPECT_EQ(under.Ask(kCheck, std::string(1'001, '\x08')).status, "8");
  EXPECT_EQ(under.Refused(Refusal::kBody), 1U);
  const auto large =
      under.Ask(kCheck, CheckOf("203.0.113.9"), {{"x-large", std::string(2'000, 'x')}});
  EXPECT_EQ(large.status, "8");
  EXPECT_EQ(under.Refused(Refusal::kHeader), 1U);
  EXPECT_EQ(under.Ask(kCheck, CheckOf("203.0.113.9")).status, "0") << "others go on";
}

TEST(GrpcProtocol, HoldsNoMoreForAConnectionThanForOneCall) {
  Settings settings;
  settings.limits.body = 1'000;
  GrpcUnderTest under({.settings = settings});
  const std::string half = Framed(std::string(900, 'x')).substr(0, 600);
  const auto first = under.client.Request(GrpcUnderTest::FieldsFor(kCheck), half, true);
  const auto second = under.client.Request(GrpcUnderTest::FieldsFor(kCheck), half, true);
  under.Exchange();
  EXPECT_EQ(under.Of(first).status, "");
  EXPECT_EQ(under.Of(second).status, "8");
}

TEST(GrpcProtocol, EndsWhatIsBegunAndNotCompleted) {
  GrpcUnderTest under;
  const auto id = under.client.Request(GrpcUnderTest::FieldsFor(kCheck), "", true);
  under.Exchange();
  under.clock.Advance(seconds(9));
  under.Sweep();
  EXPECT_EQ(under.Of(id).status, "");
  under.clock.Advance(seconds(2));
  under.Sweep();
  EXPECT_EQ(under.Of(id).status, "4");
  EXPECT_EQ(under.Refused(Refusal::kHeaderTimeout), 1U);
}

TEST(GrpcProtocol, EndsAnswersThatAreNotTaken) {
  GrpcUnderTest under;
  under.client.SetWindow(0);
  under.Exchange();
  const auto id = under.Begin(kCheck, CheckOf("203.0.113.9"));
  under.Exchange();
  EXPECT_EQ(under.Of(id).message, "");
  EXPECT_GT(under.protocol().held_bytes(), 0U);
  under.clock.Advance(seconds(11));
  under.Sweep();
  EXPECT_TRUE(under.Of(id).ended);
  EXPECT_EQ(under.Refused(Refusal::kWriteTimeout), 1U);
}

TEST(GrpcProtocol, WaitsForManyAtATime) {
  GrpcUnderTest under;
  const auto first = under.Begin(kCheck, Waiting("203.0.113.9", 5'000));
  const auto second =
      under.Begin(kCheck, Waiting("203.0.113.8", 5'000), {{"grpc-timeout", "200m"}});
  under.Exchange();
  ASSERT_EQ(under.waits.size(), 2U);
  EXPECT_EQ(under.waits[0].patience, seconds(5));
  EXPECT_EQ(under.waits[1].patience, std::chrono::milliseconds(200)) << "no longer than its client";
  EXPECT_EQ(under.replies().held(), 2U);
  under.Decide(under.waits[1], {.decision = {.allowed = true}});
  under.Exchange();
  EXPECT_EQ(under.Of(first).status, "");
  EXPECT_EQ(under.Of(second).status, "0");
  under.Decide(under.waits[0], {.decision = {.allowed = false}});
  under.Exchange();
  EXPECT_EQ(under.Of(first).status, "0");
  EXPECT_EQ(under.replies().held(), 0U);
}

TEST(GrpcProtocol, GivesUpTheWaitOfACallThatIsReset) {
  GrpcUnderTest under;
  const auto id = under.Begin(kCheck, Waiting("203.0.113.9", 5'000));
  under.Exchange();
  ASSERT_EQ(under.waits.size(), 1U);
  under.client.Reset(id);
  under.Exchange();
  EXPECT_TRUE(under.waits.empty());
  EXPECT_EQ(under.replies().held(), 0U);
  EXPECT_EQ(under.Counted("CANCELLED"), 1U);
}

TEST(GrpcProtocol, GivesBackPlacesOfCallsThatAreGone) {
  GrpcUnderTest under({.late = true});
  const std::string exports = Message([](ProtobufWriter& writer) {
    writer.Bytes(2, "ann");
    writer.Bytes(7, "/export");
  });
  const auto id = under.Begin(kCheck, exports);
  under.Exchange();
  ASSERT_EQ(under.late.pending(), 1U);
  under.client.Reset(id);
  under.Exchange();
  under.late.AnswerAll();
  const auto next = under.Begin(kCheck, exports);
  under.Exchange();
  under.late.AnswerAll();
  under.Exchange();
  EXPECT_EQ(NumberIn(under.Of(next).message, 1), 1U) << "the place is free again";
}

TEST(GrpcProtocol, ChargesNothingForWhatIsResetInTheSameBreath) {
  GrpcUnderTest under;
  under.Exchange();
  for (int i = 0; i < 20; ++i) {
    const auto id = under.Begin(kCheck, CheckOf("203.0.113.9"));
    // The request as a whole, and its end, reach the server together.
    std::string bytes = under.client.Take();
    under.client.Reset(id);
    bytes += under.client.Take();
    under.client.Receive(under.Send(bytes));
  }
  const auto left = under.Ask(kCheck, CheckOf("203.0.113.9"));
  EXPECT_EQ(NumberIn(left.message, 4), 4U);
}

TEST(GrpcProtocol, CutsOffWhoResetsAndResets) {
  GrpcUnderTest under;
  under.Exchange();
  for (int i = 0; i < 3'000 && !under.replies().closing(); ++i) {
    const auto id = under.Begin(kCheck, CheckOf("203.0.113.9"));
    std::string bytes = under.client.Take();
    under.client.Reset(id);
    under.client.Receive(under.Send(bytes + under.client.Take()));
  }
  EXPECT_TRUE(under.replies().closing());
  EXPECT_EQ(under.client.going_away, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(under.Refused(Refusal::kH2Resets), 1U);
}

// Even a call that is refused by its headers is no answer if nobody waits for it.
TEST(GrpcProtocol, CutsOffWhoResetsWhatIsRefusedAnyway) {
  GrpcUnderTest under;
  under.Exchange();
  for (int i = 0; i < 3'000 && !under.replies().closing(); ++i) {
    const auto id = under.Begin("/weir.v1.Limiter/Chek", "");
    std::string bytes = under.client.Take();
    under.client.Reset(id);
    const std::string said = under.Send(bytes + under.client.Take());
    under.client.Receive(said);
    if (under.replies().closing()) break;
    ASSERT_EQ(said, "") << "a reset is not answered";
  }
  EXPECT_EQ(under.client.going_away, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(under.Refused(Refusal::kH2Resets), 1U);
}

TEST(GrpcProtocol, ChargesNothingThatCannotBeAnsweredAnyMore) {
  GrpcUnderTest under;
  under.Exchange();
  under.Begin(kCheck, CheckOf("203.0.113.9"));
  // DATA for no stream breaks the rules, and ends the connection.
  under.client.Receive(under.Send(under.client.Take() + std::string(9, '\0')));
  EXPECT_EQ(under.client.going_away, NGHTTP2_PROTOCOL_ERROR);
  EXPECT_EQ(under.decided, 0U);
  EXPECT_EQ(under.Counted("OK"), 0U);
  EXPECT_TRUE(under.replies().closing());
}

TEST(GrpcProtocol, CutsMessagesThatNoHeaderCanHold) {
  GrpcUnderTest under;
  const auto ask = [&](const std::string& name) {
    return under.Ask(kHealth, Message([&](ProtobufWriter& writer) { writer.Bytes(1, name); }));
  };
  const auto unknown = ask(std::string(70'000, 'x'));
  EXPECT_EQ(unknown.status, "5");
  EXPECT_GT(unknown.details.size(), 900U);
  EXPECT_LT(unknown.details.size(), 1'100U);
  for (const std::string before : {"", "x", "xx"}) {
    std::string letters = before;
    for (int i = 0; i < 2'000; ++i) letters += "\xe2\x82\xac";
    const auto cut = ask(letters);
    EXPECT_EQ(cut.status, "5");
    EXPECT_TRUE(cut.details.ends_with("%E2%82%AC")) << "a letter is not cut in two";
    EXPECT_TRUE(cut.ended);
  }
}

TEST(GrpcProtocol, SaysWhetherCallsAreUnderWay) {
  GrpcUnderTest under;
  under.Exchange();
  EXPECT_FALSE(under.protocol().IsAmid());
  const auto id = under.client.Request(GrpcUnderTest::FieldsFor(kCheck), "", true);
  under.Exchange();
  EXPECT_TRUE(under.protocol().IsAmid()) << "it is not complete";
  under.client.SetWindow(0);
  under.client.Add(id, Framed(CheckOf("203.0.113.9")), true);
  under.Exchange();
  EXPECT_TRUE(under.protocol().IsAmid()) << "its answer has not left";
  under.client.SetWindow(65'535);
  under.Exchange();
  EXPECT_EQ(under.Of(id).status, "0");
  EXPECT_FALSE(under.protocol().IsAmid());
}

// --- Batches, of a store that takes a while. ---

constexpr std::string_view kBatch = "/weir.v1.Limiter/CheckBatch";

std::string BatchOf(const std::vector<std::string>& requests) {
  return Message([&](ProtobufWriter& writer) {
    for (const std::string& request : requests) writer.WantedBytes(1, request);
  });
}

TEST(GrpcBatch, LeavesRoomForOthersInTheStore) {
  Settings settings;
  settings.limits.pipeline = 100;
  GrpcUnderTest under({.settings = settings, .late = true});
  const std::string batch = BatchOf(std::vector<std::string>(60, CheckOf("203.0.113.9")));
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(under.Begin(kBatch, batch));
  under.Exchange();
  EXPECT_EQ(under.late.pending(), 60U);
  EXPECT_EQ(under.replies().held(), 5U) << "all of them wait";
  EXPECT_EQ(NumberIn(under.Ask(kHealth, "").message, 1), 1U) << "which is nothing to the health";
  // Who gives up asks no less of the store.
  under.client.Reset(ids[0]);
  under.client.Reset(ids[3]);
  under.Exchange();
  EXPECT_EQ(under.late.pending(), 60U);
  EXPECT_EQ(under.replies().held(), 3U);
  for (int i = 0; i < 19; ++i) under.late.Answer(0);
  EXPECT_EQ(under.late.pending(), 41U);
  under.late.Answer(0);
  EXPECT_EQ(under.late.pending(), 100U) << "40 and 60 more";
  under.late.AnswerAll();
  under.Exchange();
  for (const std::size_t i : {1U, 2U, 4U}) {
    EXPECT_EQ(TextsIn(under.Of(ids[i]).message, 1).size(), 60U) << i;
  }
  EXPECT_EQ(under.replies().held(), 0U);
}

TEST(GrpcBatch, ThatIsLargerThanTheRoomThereIsHasItForItself) {
  Settings settings;
  settings.limits.pipeline = 100;
  GrpcUnderTest under({.settings = settings, .late = true});
  const auto id =
      under.Begin(kBatch, BatchOf(std::vector<std::string>(500, CheckOf("203.0.113.9"))));
  const auto next = under.Begin(kCheck, CheckOf("203.0.113.8"));
  under.Exchange();
  EXPECT_EQ(under.late.pending(), 500U);
  under.late.AnswerAll();
  under.Exchange();
  EXPECT_EQ(TextsIn(under.Of(id).message, 1).size(), 500U);
  EXPECT_EQ(NumberIn(under.Of(next).message, 1), 1U);
}

TEST(GrpcBatch, GivesBackPlacesOfOneThatIsAbandonedHalfWay) {
  GrpcUnderTest under({.late = true});
  const auto exports = [](std::string_view user) {
    return Message([&](ProtobufWriter& writer) {
      writer.Bytes(2, user);
      writer.Bytes(7, "/export");
    });
  };
  const auto expect_free = [&](std::string_view when) {
    under.late.AnswerAll();
    for (const std::string_view user : {"ann", "bob"}) {
      const Request request{.user = user, .path = "/export"};
      const Answer answer = under.engine.Check(request, {.now = under.clock.Read()});
      EXPECT_TRUE(answer.decision.allowed) << user << when;
      EXPECT_TRUE(under.engine.Cancel(answer.decision.reservation));
    }
  };
  const auto id = under.Begin(kBatch, BatchOf({exports("ann"), exports("bob")}));
  under.Exchange();
  ASSERT_EQ(under.late.pending(), 2U);
  under.late.Answer(0);
  under.client.Reset(id);
  under.Exchange();
  expect_free(" by a reset");
  under.Begin(kBatch, BatchOf({exports("ann"), exports("bob")}));
  under.Exchange();
  ASSERT_EQ(under.late.pending(), 2U);
  under.late.Answer(0);
  under.Reconnect();
  // Nobody is there to be told, so whoever asked gives the rest back: see Connection.
  ASSERT_EQ(under.late.pending(), 2U) << "one that was asked, and one place that is given back";
}

TEST(GrpcProtocol, AnswersOtherProtocolsInWords) {
  GrpcUnderTest under;
  const std::string reply = under.Send("GET / HTTP/1.1\r\nHost: weir\r\n\r\n");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 505 "));
  EXPECT_TRUE(under.replies().closing());
  EXPECT_EQ(under.Refused(Refusal::kProtocol), 1U);
}

TEST(GrpcProtocol, TakesTheSameHoweverTheBytesAreCut) {
  for (const std::size_t piece : {1U, 3U, 17U}) {
    GrpcUnderTest under;
    const auto id = under.Begin(kCheck, CheckOf("203.0.113.9"));
    under.client.Receive(under.SendInPieces(under.client.Take(), piece));
    under.Exchange();
    EXPECT_EQ(NumberIn(under.Of(id).message, 1), 1U) << piece;
  }
}

// --- Health. ---

std::string Service(std::string_view name) {
  return Message([&](ProtobufWriter& writer) { writer.Bytes(1, name); });
}

TEST(GrpcHealth, TellsWhetherAServiceIsOfUse) {
  GrpcUnderTest under({.access = {.token = "secret"}});
  EXPECT_EQ(NumberIn(under.Ask(kHealth, "").message, 1), 1U) << "without a token";
  EXPECT_EQ(NumberIn(under.Ask(kHealth, Service("weir.v1.Limiter")).message, 1), 1U);
  EXPECT_EQ(under.Ask(kHealth, Service("nobody")).status, "5");
  under.state.ready = ServiceState::Readiness::kDegraded;
  EXPECT_EQ(NumberIn(under.Ask(kHealth, "").message, 1), 1U);
  under.state.ready = ServiceState::Readiness::kDraining;
  EXPECT_EQ(NumberIn(under.Ask(kHealth, "").message, 1), 2U);
}

TEST(GrpcHealth, TellsWatchersOfChanges) {
  GrpcUnderTest under;
  const auto id = under.Begin(kWatch, "");
  under.Exchange();
  EXPECT_EQ(under.client.of(id).body, Framed("\x08\x01"));
  under.Sweep();
  EXPECT_EQ(under.client.of(id).body, Framed("\x08\x01")) << "nothing has changed";
  under.state.ready = ServiceState::Readiness::kDraining;
  under.is_draining = true;
  under.Sweep();
  EXPECT_EQ(under.client.of(id).body, Framed("\x08\x01") + Framed("\x08\x02"));
  EXPECT_EQ(under.Of(id).status, "14");
}

TEST(GrpcHealth, TellsWatchersOfUnknownServices) {
  GrpcUnderTest under;
  const auto id = under.Begin(kWatch, Service("nobody"));
  under.Exchange();
  EXPECT_EQ(under.client.of(id).body, Framed("\x08\x03"));
  EXPECT_EQ(under.Of(id).status, "") << "it goes on";
}

TEST(GrpcProtocol, SaysGoodbyeInTwoSteps) {
  GrpcUnderTest under;
  // One that is under way, or the client would not listen any more.
  const auto id = under.client.Request(GrpcUnderTest::FieldsFor(kCheck), "", true);
  under.Exchange();
  under.is_draining = true;
  under.Sweep();
  ASSERT_TRUE(under.client.going_away.has_value());
  EXPECT_GT(under.client.last_stream, 1'000'000) << "only that there will be an end";
  under.Sweep();
  EXPECT_EQ(under.client.last_stream, id);
  EXPECT_EQ(*under.client.going_away, 0U);
  under.client.Add(id, Framed(CheckOf("203.0.113.9")), true);
  under.Exchange();
  EXPECT_EQ(under.Of(id).status, "0") << "what was begun is answered";
  EXPECT_TRUE(under.replies().closing());
}

// --- Reflection. ---

TEST(GrpcReflection, DescribesEveryMethodThereIs) {
  GrpcUnderTest under;
  const auto asked = [&](std::uint32_t field, std::string_view about) {
    return under
        .Ask(kReflection,
             Message([&](ProtobufWriter& writer) { writer.WantedBytes(field, about); }))
        .message;
  };
  const std::string services = TextIn(asked(7, ""), 6);
  for (const GrpcMethod& method : kGrpcMethods) {
    const std::string_view path = method.path.substr(1);
    const std::string service(path.substr(0, path.find('/')));
    std::string symbol(path);
    symbol[path.find('/')] = '.';
    EXPECT_NE(services.find(service), std::string::npos) << service;
    const std::string file = TextIn(TextIn(asked(4, symbol), 4), 1);
    EXPECT_FALSE(file.empty()) << symbol;
    EXPECT_EQ(TextIn(TextIn(asked(3, TextIn(file, 1)), 4), 1), file);
  }
  EXPECT_EQ(NumberIn(TextIn(asked(4, "weir.v1.Nothing"), 7), 1), 5U);
  EXPECT_NE(TextIn(asked(4, "weir.v1.CheckRequest.ip"), 4), "") << "a field";
  EXPECT_NE(TextIn(asked(4, "envoy.service.ratelimit.v3.RateLimitResponse.Code"), 4), "");
}

TEST(GrpcReflection, AnswersManyOnOneStream) {
  GrpcUnderTest under;
  const std::string list =
      Framed(Message([](ProtobufWriter& writer) { writer.WantedBytes(7, ""); }));
  const auto id = under.client.Request(GrpcUnderTest::FieldsFor(kReflection), list, true);
  under.Exchange();
  const std::size_t once = under.client.of(id).body.size();
  EXPECT_GT(once, 100U);
  under.client.Add(id, list, true);
  under.Exchange();
  EXPECT_EQ(under.client.of(id).body.size(), 2 * once);
  EXPECT_EQ(under.Of(id).status, "0");
}

TEST(GrpcReflection, AnswersWhatCameBeforeAMessageThatIsNone) {
  const std::string list =
      Framed(Message([](ProtobufWriter& writer) { writer.WantedBytes(7, ""); }));
  for (const auto& [wrong, status] : {std::pair<std::string, std::string>{Framed("\x08"), "3"},
                                      {Framed("x", 1), "13"},
                                      {std::string("\0\x7f\0\0\0", 5), "8"}}) {
    GrpcUnderTest under;
    const auto id = under.client.Request(GrpcUnderTest::FieldsFor(kReflection), list + wrong, true);
    under.Exchange();
    EXPECT_EQ(under.Of(id).status, status);
    EXPECT_NE(TextIn(under.Of(id).message, 6).find("weir.v1.Limiter"), std::string::npos) << status;
  }
}

TEST(GrpcReflection, EndsWithTheService) {
  GrpcUnderTest under;
  const auto id = under.client.Request(GrpcUnderTest::FieldsFor(kReflection), "", true);
  under.Exchange();
  under.is_draining = true;
  under.Sweep();
  EXPECT_EQ(under.Of(id).status, "0");
}

}  // namespace
}  // namespace weir
