#include "engine/owned_request.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

// Its texts live on the heap, so that a sanitizer sees whoever goes on reading them.
struct Original {
  std::vector<std::unique_ptr<std::string>> texts{};
  std::vector<NamedValue> headers{}, cookies{}, query{}, descriptors{};
  std::vector<std::string_view> rules{};
  Request request{};

  std::string_view Text(std::string text) {
    return *texts.emplace_back(std::make_unique<std::string>(std::move(text)));
  }
};

std::unique_ptr<Original> MakeOriginal() {
  auto original = std::make_unique<Original>();
  Original& it = *original;
  it.headers = {{it.Text("User-Agent"), it.Text("curl/8")}, {it.Text("X-Empty"), it.Text("")}};
  it.cookies = {{it.Text("theme"), it.Text("dark")}};
  it.query = {{it.Text("page"), it.Text("3")}, {it.Text("page"), it.Text("4")}};
  it.descriptors = {{it.Text("generic_key"), it.Text("slow")}};
  it.rules = {it.Text("wide"), it.Text("narrow")};
  it.request = {.ip = it.Text("192.0.2.1"),
                .user = it.Text("ann"),
                .api_key = it.Text("k-1"),
                .org = it.Text("acme"),
                .tier = it.Text("pro"),
                .method = it.Text("GET"),
                .path = it.Text("/a/b?c=d"),
                .host = it.Text("example.org"),
                .headers = it.headers,
                .cookies = it.cookies,
                .query = it.query,
                .domain = it.Text("edge"),
                .descriptors = it.descriptors,
                .trusted = false,
                .rules = it.rules};
  return original;
}

void ExpectPairs(std::span<const NamedValue> pairs,
                 const std::vector<std::pair<std::string, std::string>>& expected) {
  ASSERT_EQ(pairs.size(), expected.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(pairs[i].name, expected[i].first);
    EXPECT_EQ(pairs[i].value, expected[i].second);
  }
}

TEST(OwnedRequest, SaysTheSameWhenTheOriginalIsGone) {
  std::unique_ptr<Original> original = MakeOriginal();
  OwnedRequest first(original->request);
  original.reset();
  const OwnedRequest owned = std::move(first);
  const Request& request = owned.view();
  EXPECT_EQ(request.ip, "192.0.2.1");
  EXPECT_EQ(request.user, "ann");
  EXPECT_EQ(request.api_key, "k-1");
  EXPECT_EQ(request.org, "acme");
  EXPECT_EQ(request.tier, "pro");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a/b?c=d");
  EXPECT_EQ(request.host, "example.org");
  EXPECT_EQ(request.domain, "edge");
  EXPECT_FALSE(request.trusted);
  ExpectPairs(request.headers, {{"User-Agent", "curl/8"}, {"X-Empty", ""}});
  ExpectPairs(request.cookies, {{"theme", "dark"}});
  ExpectPairs(request.query, {{"page", "3"}, {"page", "4"}});
  ExpectPairs(request.descriptors, {{"generic_key", "slow"}});
  ASSERT_EQ(request.rules.size(), 2U);
  EXPECT_EQ(request.rules[0], "wide");
  EXPECT_EQ(request.rules[1], "narrow");
}

TEST(OwnedRequest, MayBeEmpty) {
  const OwnedRequest owned(Request{});
  EXPECT_EQ(owned.view().path, "");
  EXPECT_TRUE(owned.view().headers.empty());
  EXPECT_TRUE(owned.view().rules.empty());
  EXPECT_TRUE(owned.view().trusted);
}

}  // namespace
}  // namespace weir
