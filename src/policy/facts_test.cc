#include "policy/facts.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

Attribute Parsed(std::string_view text) { return ParseAttribute(text).value(); }

std::string HostOf(std::string_view host) {
  const Request request{.host = host};
  return std::string(Facts(request).host());
}

TEST(Facts, HaveTheHostInLowerCaseWithoutItsPort) {
  EXPECT_EQ(HostOf("example.org"), "example.org");
  EXPECT_EQ(HostOf("Example.ORG:8080"), "example.org");
  EXPECT_EQ(HostOf("example.org."), "example.org");
  EXPECT_EQ(HostOf("example.org.:80"), "example.org");
  EXPECT_EQ(HostOf("example.org:"), "example.org");
  EXPECT_EQ(HostOf("[2001:DB8::1]:443"), "[2001:db8::1]");
  EXPECT_EQ(HostOf("[2001:db8::1"), "[2001:db8::1");
  EXPECT_EQ(HostOf("2001:DB8::1"), "2001:db8::1");
  EXPECT_EQ(HostOf(":80"), "");
  EXPECT_EQ(HostOf(""), "");
}

TEST(Facts, HaveTheMethodInUpperCase) {
  const Request request{.method = "pAtch"};
  EXPECT_EQ(Facts(request).method(), "PATCH");
}

TEST(Facts, HaveThePathInItsNormalForm) {
  const Request request{.path = "//auth/./%6cogin/?x=1"};
  const Facts facts(request);
  EXPECT_EQ(facts.path(), "/auth/login");
  EXPECT_EQ(facts.Get(Parsed("path")), "/auth/login");
}

TEST(Facts, DoNotTouchWhatHasItsFormAlready) {
  const Request request{.method = "GET", .path = "/a/b?c", .host = "example.org:80"};
  const Facts facts(request);
  EXPECT_EQ(facts.method().data(), request.method.data());
  EXPECT_EQ(facts.path().data(), request.path.data());
  EXPECT_EQ(facts.host().data(), request.host.data());
}

TEST(Facts, TakeTextsOfAnyLength) {
  for (const std::size_t size : {1u, 15u, 16u, 17u, 127u, 128u, 129u, 510u, 511u, 512u, 5'000u}) {
    const std::string lower(size, 'a');
    const std::string upper(size, 'A');
    const std::string path = "//" + lower;
    const Request request{.method = lower, .path = path, .host = upper};
    const Facts facts(request);
    EXPECT_EQ(facts.method(), upper);
    EXPECT_EQ(facts.host(), lower);
    EXPECT_EQ(facts.path(), "/" + lower);
  }
  const std::string query = "?" + std::string(1'000, 'x');
  const Request request{.path = query};
  EXPECT_EQ(Facts(request).path(), "/");
}

TEST(Facts, KnowAnAddressOnlyIfItIsOne) {
  const Request good{.ip = "192.0.2.1"};
  const Request bad{.ip = "192.0.2.1, 192.0.2.2"};
  const Request none{};
  EXPECT_EQ(Facts(good).ip()->ToString(), "192.0.2.1");
  EXPECT_FALSE(Facts(bad).ip().has_value());
  EXPECT_FALSE(Facts(none).ip().has_value());
  EXPECT_TRUE(Facts(good).Has(Parsed("ip")));
  EXPECT_FALSE(Facts(bad).Has(Parsed("ip")));
  EXPECT_TRUE(Facts(good).Has(Parsed("fingerprint")));
  EXPECT_FALSE(Facts(none).Has(Parsed("fingerprint")));
}

TEST(Facts, FindHeadersInAnyCaseAndOtherNamesExactly) {
  const std::array<NamedValue, 3> values = {{{"X-Plan", "a"}, {"x-plan", "b"}, {"other", "c"}}};
  const Request request{
      .headers = values, .cookies = values, .query = values, .descriptors = values};
  const Facts facts(request);
  EXPECT_EQ(facts.Get(Parsed("header.X-PLAN")), "a");
  for (const std::string kind : {"cookie.", "query.", "descriptor."}) {
    EXPECT_EQ(facts.Get(Parsed(kind + "X-Plan")), "a");
    EXPECT_EQ(facts.Get(Parsed(kind + "x-plan")), "b");
    EXPECT_EQ(facts.Get(Parsed(kind + "X-PLAN")), "");
  }
}

TEST(Facts, TakeTheFirstOfANameThatIsNotEmpty) {
  const std::array<NamedValue, 2> headers = {{{"x-plan", ""}, {"x-plan", "b"}}};
  const Request request{.headers = headers};
  EXPECT_EQ(Facts(request).Get(Parsed("header.x-plan")), "b");
}

TEST(Facts, HaveEveryPlainAttribute) {
  const Request request{.user = "u",
                        .api_key = "k",
                        .org = "o",
                        .tier = "t",
                        .method = "M",
                        .path = "/p",
                        .host = "h",
                        .domain = "d"};
  const Facts facts(request);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"user", "u"},   {"api_key", "k"}, {"org", "o"},  {"tier", "t"},
      {"method", "M"}, {"path", "/p"},   {"host", "h"}, {"domain", "d"}};
  const Request empty{};
  for (const auto& [name, value] : expected) {
    EXPECT_EQ(facts.Get(Parsed(name)), value);
    EXPECT_TRUE(facts.Has(Parsed(name)));
    EXPECT_FALSE(Facts(empty).Has(Parsed(name))) << name;
  }
  EXPECT_FALSE(facts.Has(Parsed("path.id")));
}

}  // namespace
}  // namespace weir
