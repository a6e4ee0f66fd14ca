// That an engine allocates nothing for an ordinary request: the C++ heap is replaced by one that
// counts.
//
// Sanitizers bring a heap of their own, which must not be replaced; there every test is skipped.
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/counting_heap.h"
#include "engine/engine_under_test.h"

namespace weir {
namespace {

constexpr std::string_view kPolicy = R"(
trusted_proxies: [127.0.0.0/8]
identity:
  user: { header: x-user-id }
  tier: { header: x-tier, default: free }
unidentified: skip
allow: { ip: 10.0.0.0/8 }
deny: { header.user-agent: "*badbot*" }
tiers:
  free: { requests: 10/min burst 50 }
  pro: { requests: 100/s burst 200 }
rules:
  - { name: per-ip, key: ip, limit: 200/min, algorithm: sliding_window }
  - { name: per-user, key: user, limit: { tier: requests }, overrides: { acme: 5/s } }
  - { name: visitor, key: [fingerprint, path], limit: 30/min }
  - { name: daily, key: user, limit: 1000/day, algorithm: fixed_window, align: calendar,
      zone: America/Argentina/Buenos_Aires }
  - { name: item, match: { path: "/shops/{shop}/**" }, key: path.shop, limit: 1000/h }
  - { name: search, match: { path: /search/** }, key: { api_key: { hash: true } }, limit: 100/min,
      cost: { header: x-query-cost, default: 1, max: 50 } }
  - { name: login, match: { path: /auth/*, method: POST }, key: ip, limit: 5/min,
      algorithm: sliding_log, block: { after: 10 denials in 1min, for: 10min, growing: 2x up to 1day } }
  - { name: trial, key: { first_of: [api_key, user, ip] }, limit: 10/min, mode: shadow }
)";

class EngineAllocation : public testing::Test {
 protected:
  void SetUp() override {
#ifdef WEIR_SANITIZER_HEAP
    GTEST_SKIP() << "the sanitizer's own heap must not be replaced";
#endif
    ASSERT_GT(AllocationsOf([] { std::vector<int>(100).shrink_to_fit(); }), 0U)
        << "the counting heap is not in use";
  }

  const std::array<NamedValue, 4> headers_ = {{{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"},
                                               {"X-User-Id", "a-user-with-quite-a-long-name"},
                                               {"X-Query-Cost", "7"},
                                               {"X-Tier", "pro"}}};
  const std::array<Request, 5> requests_ = {
      {{.ip = "203.0.113.9", .path = "/"},
       {.ip = "2001:db8::1",
        .user = "acme",
        .tier = "free",
        .method = "GET",
        .path = "/shops/wonderful-things/items/1?colour=red",
        .host = "Example.COM:8080",
        .headers = headers_},
       {.ip = "203.0.113.9", .api_key = "k", .path = "/search/%7Eall", .headers = headers_},
       {.ip = "203.0.113.9", .method = "post", .path = "/auth/login"},
       {.ip = "10.1.2.3", .path = "/"}}};
  EngineUnderTest under_test_{kPolicy};
};

TEST_F(EngineAllocation, IsNotDoneByChecksAndDenials) {
  int denied = 0;
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 100; ++i) {
                for (const Request& request : requests_) {
                  if (!under_test_.engine.Check(request).decision.allowed) ++denied;
                }
              }
            }),
            0U);
  EXPECT_GT(denied, 100);
  EXPECT_EQ(under_test_.Peek(requests_[3]).reason, Reason::kBanned);
}

TEST_F(EngineAllocation, IsNotDoneByTheOtherVerbs) {
  EXPECT_EQ(AllocationsOf([&] {
              for (const Request& request : requests_) {
                under_test_.engine.Peek(request);
                under_test_.engine.Penalize(request, {.cost = 3});
                under_test_.engine.Refund(request);
                under_test_.engine.Reset(request);
              }
            }),
            0U);
}

TEST_F(EngineAllocation, IsNotDoneByRequestsAsTheyComeInOnceTheirStorageHasGrown) {
  IdentityStorage storage;
  const Incoming incoming{.peer = "127.0.0.1",
                          .method = "GET",
                          .path = "/shops/wonderful-things/items/1?colour=red&size=4",
                          .host = "example.com",
                          .headers = headers_};
  under_test_.engine.Check(incoming, storage);
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 100; ++i) under_test_.engine.Check(incoming, storage);
            }),
            0U);
}

TEST_F(EngineAllocation, IsNotDoneByChecksAfterThePolicyHasChanged) {
  for (const Request& request : requests_) under_test_.engine.Check(request);
  std::string changed(kPolicy);
  changed.replace(changed.find("200/min"), 7, "300/min");
  changed.replace(changed.find("burst 200"), 9, "burst 300");
  under_test_.Apply(changed);
  EXPECT_EQ(AllocationsOf([&] {
              for (const Request& request : requests_) under_test_.engine.Check(request);
            }),
            0U);
}

TEST_F(EngineAllocation, IsDoneForATierThatNobodyKnowsOnlyTheFirstTime) {
  const Request request{.user = "u", .tier = "no-such-tier", .path = "/"};
  under_test_.engine.Check(request);
  EXPECT_EQ(AllocationsOf([&] { under_test_.engine.Check(request); }), 0U);
}

}  // namespace
}  // namespace weir
