// That an ordinary check over HTTP allocates nothing, from its bytes to those of its reply.
//
// Sanitizers bring a heap of their own, which must not be replaced; there every test is skipped.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/counting_heap.h"
#include "frontend/http/http_under_test.h"

namespace weir {
namespace {

class HttpAllocation : public testing::Test {
 protected:
  void SetUp() override {
#ifdef WEIR_SANITIZER_HEAP
    GTEST_SKIP() << "the sanitizer's own heap must not be replaced";
#endif
    ASSERT_GT(AllocationsOf([] { std::vector<int>(100).shrink_to_fit(); }), 0U)
        << "the counting heap is not in use";
  }

  // Of a request that is like one before it.
  std::size_t AllocationsFor(const std::string& requests) {
    for (int i = 0; i < 5; ++i) http_.Send(requests);
    std::string text = requests;
    return AllocationsOf([&] {
      http_.protocol().OnInput(text);
      http_.replies().ready().Clear();
    });
  }

  HttpUnderTest http_;
};

constexpr const char* kBody =
    R"({"ip":"203.0.113.9","user":"ann","path":"/orders","headers":{"x-a":"b"}})";

TEST_F(HttpAllocation, IsNotNeededForAChecksReply) {
  EXPECT_EQ(AllocationsFor(Post("/v1/check", kBody)), 0U);
}

TEST_F(HttpAllocation, IsNotNeededForManyAtOnce) {
  std::string requests;
  for (int i = 0; i < 10; ++i) requests += Post("/v1/check", kBody);
  EXPECT_EQ(AllocationsFor(requests), 0U);
}

TEST_F(HttpAllocation, IsNotNeededForADenial) {
  const std::string login = R"({"ip":"203.0.113.9","path":"/login"})";
  EXPECT_EQ(AllocationsFor(Post("/v1/check", login)), 0U);
  EXPECT_EQ(AllocationsFor(Post("/v1/check", login, "Accept: application/problem+json\r\n")), 0U);
}

TEST_F(HttpAllocation, IsNotNeededForForwardAuth) {
  const std::string headers =
      "X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-Method: GET\r\nCookie: a=b; c=d\r\n"
      "X-Forwarded-Uri: /orders?page=2&name=a%20b\r\nX-Forwarded-Host: shop.example\r\n";
  const auto auth = [&](const std::string& below) { return Get("/v1/auth" + below, headers); };
  EXPECT_EQ(AllocationsFor(auth("?deny_status=403")), 0U);
  EXPECT_EQ(AllocationsFor(Get("/v1/auth/login?a=b", "User-Agent: curl\r\n")), 0U);
  EXPECT_EQ(AllocationsFor(Get("/v1/auth?a=b", "User-Agent: curl\r\n")), 0U);
}

TEST_F(HttpAllocation, IsNotNeededForAPeek) {
  EXPECT_EQ(AllocationsFor(Post("/v1/peek", kBody)), 0U);
}

}  // namespace
}  // namespace weir
