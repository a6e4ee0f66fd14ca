// Envoy's rate limit service, from the bytes of a call to those of its answer.
#include <string>

#include <gtest/gtest.h>

#include "frontend/grpc/grpc_call.h"
#include "frontend/grpc/grpc_under_test.h"
#include "frontend/grpc/rls_parts.h"

namespace weir {
namespace {

constexpr std::uint64_t kOk = 1;
constexpr std::uint64_t kOverLimit = 2;

std::uint64_t CodeOf(const GrpcUnderTest::Reply& reply) { return NumberIn(reply.message, 1); }
std::string StatusIn(const GrpcUnderTest::Reply& reply, std::size_t number) {
  const auto statuses = TextsIn(reply.message, 2);
  return number < statuses.size() ? statuses[number] : "";
}
std::uint64_t LeftIn(const GrpcUnderTest::Reply& reply, std::size_t number) {
  return NumberIn(StatusIn(reply, number), 3);
}
std::string HeaderIn(const GrpcUnderTest::Reply& reply, std::string_view name) {
  for (const std::string& header : TextsIn(reply.message, 3)) {
    if (TextIn(header, 1) == name) return TextIn(header, 2);
  }
  return "absent";
}
std::string Hits(std::string_view key, std::string_view value, std::uint64_t hits,
                 bool negative = false) {
  return DescriptorOf(key, value, [&](ProtobufWriter& writer) {
    const auto wrapped = writer.Begin(3);
    writer.Number(1, hits);
    writer.End(wrapped);
    writer.Number(4, negative ? 1 : 0);
  });
}
std::string Override(std::string_view value, std::uint64_t requests, std::uint64_t unit) {
  return DescriptorOf("user", value, [&](ProtobufWriter& writer) {
    const auto limit = writer.Begin(2);
    writer.Number(1, requests);
    writer.Number(2, unit);
    writer.End(limit);
  });
}

const std::string kAnn = DescriptorOf("user", "ann");
const std::string kOrders = DescriptorOf("path", "/orders");

// Of a store in this process, and of one that takes a while.
class GrpcRls : public testing::TestWithParam<bool> {
 protected:
  GrpcRls() : under_({.late = GetParam()}) { under_.late.at_once = GetParam(); }
  GrpcUnderTest under_;
};
INSTANTIATE_TEST_SUITE_P(Store, GrpcRls, testing::Values(false, true),
                         [](const auto& at) { return at.param ? "Late" : "AtOnce"; });

TEST_P(GrpcRls, CountsADescriptorUnderItsDomain) {
  const auto first = under_.Rls({kAnn});
  EXPECT_EQ(first.http, "200");
  EXPECT_EQ(first.status, "0");
  EXPECT_EQ(CodeOf(first), kOk);
  const std::string limit = TextIn(StatusIn(first, 0), 2);
  EXPECT_EQ(NumberIn(limit, 1), 2U);
  EXPECT_EQ(NumberIn(limit, 2), 2U) << "MINUTE";
  EXPECT_EQ(TextIn(limit, 3), "by-user");
  EXPECT_EQ(LeftIn(first, 0), 1U);
  EXPECT_EQ(NumberIn(TextIn(StatusIn(first, 0), 4), 1), 30U) << "until it is fresh";
  under_.Rls({kAnn});
  const auto third = under_.Rls({kAnn});
  EXPECT_EQ(CodeOf(third), kOverLimit);
  EXPECT_EQ(NumberIn(StatusIn(third, 0), 1), kOverLimit);
  EXPECT_EQ(NumberIn(TextIn(StatusIn(third, 0), 4), 1), 30U) << "until it passes";
}

TEST_P(GrpcRls, TellsHeadersAndABody) {
  const auto first = under_.Rls({kAnn});
  EXPECT_EQ(HeaderIn(first, "x-ratelimit-limit"), "2");
  EXPECT_EQ(HeaderIn(first, "x-ratelimit-remaining"), "1");
  EXPECT_EQ(HeaderIn(first, "ratelimit"), "\"by-user\";r=1;t=30");
  EXPECT_EQ(HeaderIn(first, "ratelimit-policy"), "\"by-user\";q=2;w=60");
  EXPECT_EQ(HeaderIn(first, "retry-after"), "absent");
  EXPECT_EQ(TextIn(first.message, 5), "");
  under_.Rls({kAnn});
  const auto denied = under_.Rls({kAnn});
  EXPECT_GE(std::stoi(HeaderIn(denied, "retry-after")), 30);
  EXPECT_EQ(HeaderIn(denied, "content-type"), "application/json");
  EXPECT_NE(TextIn(denied.message, 5).find("\"message\":\"slow down\""), std::string::npos);
}

TEST_P(GrpcRls, SaysNothingOfALimitWhereThereIsNone) {
  const auto other = under_.Rls({DescriptorOf("color", "red")});
  EXPECT_EQ(CodeOf(other), kOk);
  EXPECT_EQ(StatusIn(other, 0), "\x08\x01") << "OK, and nothing else";
  EXPECT_EQ(TextsIn(other.message, 3).size(), 0U);
  EXPECT_EQ(CodeOf(under_.Ask(GrpcUnderTest::kRls, RlsRequestOf("elsewhere", {kAnn}))), kOk);
  EXPECT_EQ(LeftIn(under_.Rls({kAnn}), 0), 1U) << "another domain is another count";
}

TEST_P(GrpcRls, ChargesAllDescriptorsOrNone) {
  const auto both = under_.Rls({kOrders, kAnn});
  EXPECT_EQ(LeftIn(both, 0), 9U);
  EXPECT_EQ(LeftIn(both, 1), 1U);
  under_.Rls({kAnn});
  const auto denied = under_.Rls({kOrders, kAnn});
  EXPECT_EQ(CodeOf(denied), kOverLimit);
  EXPECT_EQ(NumberIn(StatusIn(denied, 0), 1), kOk);
  EXPECT_EQ(NumberIn(StatusIn(denied, 1), 1), kOverLimit);
  EXPECT_EQ(LeftIn(under_.Rls({kOrders}), 0), 8U);
}

TEST_P(GrpcRls, TakesHitsFromTheRequestOrTheDescriptor) {
  EXPECT_EQ(LeftIn(under_.Rls({kOrders}, 3), 0), 7U);
  EXPECT_EQ(LeftIn(under_.Rls({Hits("path", "/orders", 2)}, 5), 0), 5U);
  EXPECT_EQ(LeftIn(under_.Rls({Hits("path", "/orders", 0)}, 5), 0), 5U) << "asks only";
}

TEST_P(GrpcRls, GivesBackNegativeHits) {
  under_.Rls({kOrders}, 6);
  const auto refund = under_.Rls({Hits("path", "/orders", 4, true)});
  EXPECT_EQ(CodeOf(refund), kOk);
  EXPECT_EQ(LeftIn(refund, 0), 8U);
  const auto mixed = under_.Rls({kAnn, Hits("path", "/orders", 1, true)});
  EXPECT_EQ(CodeOf(mixed), kOk);
  EXPECT_EQ(LeftIn(mixed, 0), 1U);
  EXPECT_EQ(LeftIn(mixed, 1), 9U);
  under_.Rls({kAnn});
  EXPECT_EQ(CodeOf(under_.Rls({kAnn, Hits("path", "/orders", 1, true)})), kOverLimit);
  EXPECT_EQ(LeftIn(under_.Rls({Hits("path", "/orders", 0)}), 0), 9U) << "nothing was given back";
}

TEST_P(GrpcRls, CountsByALimitThatComesWithTheDescriptor) {
  const auto first = under_.Rls({Override("ann", 3, 2)});
  EXPECT_EQ(LeftIn(first, 0), 2U);
  EXPECT_EQ(NumberIn(TextIn(StatusIn(first, 0), 2), 2), 2U) << "MINUTE";
  EXPECT_EQ(LeftIn(under_.Rls({kAnn}), 0), 1U) << "the rule has not counted it";
  EXPECT_EQ(LeftIn(under_.Rls({Override("bob", 3, 2)}), 0), 2U) << "nor another's";
  EXPECT_EQ(CodeOf(under_.Rls({Override("ann", 0, 2)})), kOverLimit) << "0 is deny";
}

TEST_P(GrpcRls, RefusesWhatIsNoQuestion) {
  const auto refused = [&](const std::string& message, const std::string& why) {
    const auto reply = under_.Ask(GrpcUnderTest::kRls, message);
    EXPECT_EQ(reply.status, "3") << why;
    EXPECT_NE(reply.details.find(why), std::string::npos) << reply.details;
    EXPECT_EQ(reply.message, "");
  };
  refused("", "domain");
  refused(RlsRequestOf("edge", {}), "descriptors");
  refused(RlsRequestOf("edge", {""}), "descriptors[0].entries");
  refused(RlsRequestOf("edge", {DescriptorOf("", "x")}), "key must not be empty");
  refused(RlsRequestOf("edge", {kAnn, Override("ann", 1, 0)}), "descriptors[1].limit.unit");
  refused(RlsRequestOf("edge", {Override("ann", 1, 7)}), "unit");
  refused(RlsRequestOf("edge", {Override("ann", 4'000'000'000, 1)}), "limit");
  refused(RlsRequestOf("\xff", {kAnn}), "UTF-8");
  refused(RlsRequestOf("edge", {DescriptorOf("user", "\xff")}), "descriptors");
  refused("\x08", "RateLimitRequest");
  refused(RlsRequestOf("edge", std::vector<std::string>(65, kAnn)), "at most 64");
  EXPECT_EQ(LeftIn(under_.Rls({kAnn}), 0), 1U) << "none of them was counted";
}

TEST(GrpcRlsRights, NegativeHitsNeedTheRightToManage) {
  GrpcUnderTest under({.access = {.token = "use", .manage_token = "manage"}});
  const std::string message = RlsRequestOf("edge", {Hits("user", "ann", 1, true)});
  EXPECT_EQ(under.Ask(GrpcUnderTest::kRls, message).status, "16");
  EXPECT_EQ(under.Ask(GrpcUnderTest::kRls, message, {{"authorization", "Bearer use"}}).status, "7");
  EXPECT_EQ(under.Ask(GrpcUnderTest::kRls, message, {{"authorization", "Bearer manage"}}).status,
            "0");
}

TEST(GrpcRlsQueues, HoldsAnswersForAsLongAsThePolicySays) {
  const std::string shaped = R"(
rules:
  - name: shaped
    match: {domain: edge}
    key: descriptor.user
    limit: 1/s burst 5
    algorithm: leaky_bucket
    queue: true
)";
  GrpcUnderTest refusing({}, shaped);
  EXPECT_EQ(CodeOf(refusing.Rls({kAnn})), kOk);
  EXPECT_EQ(CodeOf(refusing.Rls({kAnn})), kOverLimit) << "nobody can tell Envoy to wait";
  GrpcUnderTest holding({}, shaped + "queue_hold: 2s\n");
  const auto id = holding.Begin(GrpcUnderTest::kRls, RlsRequestOf("edge", {kAnn}));
  holding.Exchange();
  ASSERT_EQ(holding.waits.size(), 1U);
  EXPECT_EQ(holding.waits[0].patience, std::chrono::seconds(2));
  holding.Decide(holding.waits[0], {.decision = {.allowed = true, .rule = "shaped"}});
  holding.Exchange();
  EXPECT_EQ(CodeOf(holding.Of(id)), kOk);
  holding.waits.clear();
  holding.Begin(GrpcUnderTest::kRls, RlsRequestOf("edge", {kAnn}), {{"grpc-timeout", "20m"}});
  holding.Exchange();
  ASSERT_EQ(holding.waits.size(), 1U);
  EXPECT_EQ(holding.waits[0].patience, std::chrono::milliseconds(20)) << "no longer than Envoy";
}

// --- Memory, which is kept from call to call. ---

TEST(GrpcRlsMemory, IsLittleHoweverLongADescriptorIs) {
  const std::string value(300'000, '\x01');
  LimitCache limits;
  RlsParts parts;
  EXPECT_FALSE(parts.Read(RlsRequestOf("edge", {Override(value, 1, 1)}), limits));
  EXPECT_LE(parts.checks()[0].key.size(), 96U);
  const std::string key(parts.checks()[0].key);
  EXPECT_FALSE(parts.Read(RlsRequestOf("edge", {Override(value + "x", 1, 1)}), limits));
  EXPECT_NE(parts.checks()[0].key, key);

  const std::string entries = Message([](ProtobufWriter& writer) {
    for (int i = 0; i < 100'000; ++i) writer.WantedBytes(1, "");
  });
  RlsRequest request;
  const auto error = ReadRlsRequest(RlsRequestOf("edge", {entries}), request);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("at most 128 entries"), std::string::npos) << error->message;
  EXPECT_LE(request.entries.capacity(), 512U);
}

TEST(GrpcRlsMemory, OfPartsThatAreUnderWayIsCounted) {
  GrpcUnderTest under({.late = true});
  under.Exchange();
  const std::size_t before = under.protocol().held_bytes();
  const auto id =
      under.Begin(GrpcUnderTest::kRls, RlsRequestOf("edge", std::vector<std::string>(64, kOrders)));
  under.Exchange();
  EXPECT_GT(under.protocol().held_bytes(), before + 64 * 5'000);
  under.late.AnswerAll();
  under.Exchange();
  EXPECT_EQ(under.Of(id).status, "0");
  EXPECT_LT(under.protocol().held_bytes(), before + 10'000);
  // It takes no less if nobody waits for it any more.
  under.client.Reset(
      under.Begin(GrpcUnderTest::kRls, RlsRequestOf("edge", {kOrders, kOrders, kOrders, kOrders})));
  const auto other = under.Begin(GrpcUnderTest::kRls, RlsRequestOf("edge", {kOrders, kOrders}));
  under.Exchange();
  under.client.Reset(other);
  under.Exchange();
  EXPECT_GT(under.protocol().held_bytes(), before + 2 * 5'000);
  under.late.AnswerAll();
  EXPECT_LT(under.protocol().held_bytes(), before + 10'000);
}

TEST(GrpcRlsMemory, OfACallIsGivenBackWhenItEnds) {
  GrpcCall call;
  call.out.Append(std::string(100'000, 'x'));
  call.in.Append(std::string(100'000, 'x'));
  call.path.assign(100'000, 'x');
  call.decisions.resize(1'000);
  call.GiveBack();
  EXPECT_EQ(call.out.capacity() + call.in.capacity() + call.decisions.capacity(), 0U);
  EXPECT_LT(call.path.capacity(), 100U);
}

}  // namespace
}  // namespace weir
