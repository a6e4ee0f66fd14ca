#include "frontend/http/forward_auth.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

// What a proxy asks about, as text: METHOD host path, or what is wrong.
class ForwardAuth : public testing::Test {
 protected:
  std::string Original(const std::vector<NamedValue>& headers, std::string_view below = "",
                       bool trusted = true) {
    HttpHead head;
    head.method = "GET";
    head.host = "weir";
    for (const NamedValue& header : headers) head.fields[head.field_count++] = header;
    const Result<Incoming> original = OriginalRequest(
        {.head = head, .below = below, .peer = "10.0.0.1", .trusted = trusted}, buffer_);
    if (!original) return "error";
    EXPECT_EQ(original->peer, "10.0.0.1");
    EXPECT_EQ(original->headers.size(), headers.size());
    return std::string(original->method) + " " + std::string(original->host) + " " +
           std::string(original->path);
  }

  std::string buffer_;
};

TEST_F(ForwardAuth, TakesTheRequestFromTheHeadersOfTraefikAndCaddy) {
  EXPECT_EQ(Original({{"X-Forwarded-Method", "POST"},
                      {"X-Forwarded-Host", "shop.example"},
                      {"X-Forwarded-Uri", "/orders?page=2"}}),
            "POST shop.example /orders?page=2");
}

TEST_F(ForwardAuth, TakesTheRequestFromTheHeadersOfNginx) {
  EXPECT_EQ(Original({{"X-Original-Method", "PUT"}, {"X-Original-URI", "/orders?page=2"}}),
            "PUT weir /orders?page=2");
  EXPECT_EQ(Original({{"x-original-url", "https://shop.example:8443/orders?u=http://b/c"}}),
            "GET shop.example:8443 /orders?u=http://b/c");
}

TEST_F(ForwardAuth, TakesTheRequestFromWhatStandsBelowForEnvoy) {
  EXPECT_EQ(Original({}, "/orders?page=2"), "GET weir /orders?page=2");
  EXPECT_EQ(Original({}, ""), "GET weir /");
  EXPECT_EQ(Original({}, "/"), "GET weir /");
  EXPECT_EQ(Original({}, "?page=2"), "GET weir /?page=2");
}

TEST_F(ForwardAuth, BelievesTheHeadersRatherThanWhatStandsBelow) {
  EXPECT_EQ(Original({{"X-Forwarded-Uri", "/orders"}}, "/cheap?deny_status=403"),
            "GET weir /orders");
}

TEST_F(ForwardAuth, IgnoresTheHeadersOfThoseItDoesNotTrust) {
  EXPECT_EQ(Original({{"X-Forwarded-Method", "POST"},
                      {"X-Original-Method", "DELETE"},
                      {"X-Forwarded-Host", "shop.example"},
                      {"X-Forwarded-Uri", "/a"},
                      {"X-Original-URI", "/b"},
                      {"X-Original-URL", "http://other/c"}},
                     "/below", false),
            "GET weir /below");
}

TEST_F(ForwardAuth, RefusesHeadersThatContradictEachOther) {
  EXPECT_EQ(Original({{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Uri", "/b"}}), "error");
  EXPECT_EQ(Original({{"X-Forwarded-Uri", "/a"}, {"X-Original-URI", "/b"}}), "error");
  EXPECT_EQ(Original({{"X-Original-URL", "http://h/a"}, {"X-Original-URI", "/b"}}), "error");
  EXPECT_EQ(Original({{"X-Original-URL", "http://h"}, {"X-Original-URI", "/b"}}), "error");
  EXPECT_EQ(Original({{"X-Forwarded-Method", "GET"}, {"X-Forwarded-Method", "POST"}}), "error");
  EXPECT_EQ(Original({{"X-Original-Method", "GET"}, {"X-Forwarded-Method", "POST"}}), "error");
  EXPECT_EQ(Original({{"X-Forwarded-Host", "a"}, {"X-Forwarded-Host", "b"}}), "error");
  EXPECT_EQ(Original({{"X-Original-URL", "http://a/"}, {"X-Original-URL", "http://b/"}}), "error");
}

TEST_F(ForwardAuth, TakesHeadersThatSayTheSame) {
  EXPECT_EQ(Original({{"X-Forwarded-Uri", "/a"},
                      {"X-Forwarded-Uri", "/a"},
                      {"X-Original-URI", "/a"},
                      {"X-Original-URL", "http://shop.example/a"},
                      {"X-Original-Method", "POST"},
                      {"X-Forwarded-Method", "POST"}}),
            "POST shop.example /a");
}

TEST_F(ForwardAuth, TakesEmptyHeadersForNone) {
  EXPECT_EQ(Original({{"X-Forwarded-Method", ""},
                      {"X-Forwarded-Host", ""},
                      {"X-Forwarded-Uri", ""},
                      {"X-Original-URI", "/b"}},
                     "/below"),
            "GET weir /b");
}

TEST_F(ForwardAuth, TakesTheHostThatTheLastProxySaw) {
  EXPECT_EQ(Original({{"X-Forwarded-Host", "forged.example, shop.example"}}), "GET shop.example /");
  EXPECT_EQ(Original({{"X-Forwarded-Host", "forged.example,"}}), "GET weir /");
  EXPECT_EQ(Original({{"X-Forwarded-Host", "a"}, {"X-Original-URL", "http://b/c"}}), "GET a /c");
}

TEST_F(ForwardAuth, ReadsUrisAsTheyAre) {
  const auto path_of = [&](std::string_view uri) { return Original({{"X-Forwarded-Uri", uri}}); };
  EXPECT_EQ(path_of("//evil/orders"), "GET weir //evil/orders");
  EXPECT_EQ(path_of("orders"), "GET weir orders");
  EXPECT_EQ(path_of("*"), "GET weir *");
  EXPECT_EQ(path_of("/a?u=http://b/c"), "GET weir /a?u=http://b/c");
  EXPECT_EQ(path_of("a?u=http://b/c"), "GET weir a?u=http://b/c");
  EXPECT_EQ(path_of("://b/c"), "GET weir ://b/c");
  EXPECT_EQ(path_of("/a%0d%0aX-Forwarded-Uri:%20/b"), "GET weir /a%0d%0aX-Forwarded-Uri:%20/b");
  EXPECT_EQ(path_of("http://name:word@h:80/a"), "GET h:80 /a");
  EXPECT_EQ(path_of("http://h"), "GET h /");
  EXPECT_EQ(path_of("http://h?a=b"), "GET h /?a=b");
  EXPECT_EQ(path_of("http://h#a"), "GET h /#a");
  EXPECT_EQ(path_of("http://"), "GET weir /");
  EXPECT_EQ(path_of("http://@/a"), "GET weir /a");
}

TEST_F(ForwardAuth, RefusesWhatIsNoMethod) {
  EXPECT_EQ(Original({{"X-Forwarded-Method", "GET, POST"}}), "error");
  EXPECT_EQ(Original({{"X-Original-Method", "GET\x80"}}), "error");
  EXPECT_EQ(Original({{"X-Forwarded-Method", "PURGE"}}), "PURGE weir /");
}

TEST(ForwardAuthDenialStatus, IsOneOfTwo) {
  EXPECT_TRUE(WantsDenialsBy403("deny_status=403"));
  EXPECT_TRUE(WantsDenialsBy403("a=b&deny_status=403&c"));
  EXPECT_FALSE(WantsDenialsBy403(""));
  EXPECT_FALSE(WantsDenialsBy403("deny_status=429"));
  for (const char* other : {"200", "", "0403", "403 ", "4030", "40%33", "-1", "500"}) {
    EXPECT_FALSE(WantsDenialsBy403(std::string("deny_status=") + other)) << other;
  }
  EXPECT_FALSE(WantsDenialsBy403("xdeny_status=403"));
  EXPECT_FALSE(WantsDenialsBy403("DENY_STATUS=403"));
}

// So that one who adds to the query of a proxy's own URL changes nothing.
TEST(ForwardAuthDenialStatus, IsTheFirstThatCounts) {
  EXPECT_TRUE(WantsDenialsBy403("deny_status=403&deny_status=429"));
  EXPECT_FALSE(WantsDenialsBy403("deny_status=429&deny_status=403"));
  EXPECT_TRUE(WantsDenialsBy403("deny_status=200&deny_status=403"));
}

}  // namespace
}  // namespace weir
