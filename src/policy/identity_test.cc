// threads
#include <weir/identity.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Headers = std::vector<NamedValue>;

// Proxies are in 10.0.0.0/8; whatever a policy may ask for is asked for.
PolicySpec Spec() {
  PolicySpec spec;
  spec.trusted_proxies = {"10.0.0.0/8"};
  spec.identity["user"] = {.from = "header.x-user-id"};
  spec.identity["api_key"] = {.from = "header.x-api-key", .from_anyone = true};
  spec.identity["org"] = {.from = "cookie.org"};
  spec.identity["tier"] = {.from = "query.tier", .fallback = "free"};
  return spec;
}

Identity Make(const PolicySpec& spec, IdentityOptions options = {}) {
  Result<Identity> identity = Identity::Make(spec, std::move(options));
  EXPECT_TRUE(identity.has_value()) << identity.error().message;
  return *std::move(identity);
}

std::string IdentityProblem(const PolicySpec& spec) {
  const Result<Identity> identity = Identity::Make(spec);
  return identity ? "none" : identity.error().message;
}

std::string WrittenPairs(std::span<const NamedValue> pairs) {
  std::string text;
  for (const NamedValue& pair : pairs) {
    text += std::string(pair.name) + "=" + std::string(pair.value) + "|";
  }
  return text;
}

struct IdentityRow {
  std::string_view name;
  std::string_view peer;
  Headers headers;
  std::string_view path = "/";
  // What must be found.
  std::string_view user = "";
  std::string_view api_key = "";
  std::string_view org = "";
  std::string_view tier = "free";
};

const std::vector<IdentityRow>& Rows() {
  static const std::vector<IdentityRow> rows = {
      {.name = "nothing is said", .peer = "10.0.0.1", .headers = {}},
      {.name = "a proxy says who it is",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", "ann"}},
       .user = "ann"},
      {.name = "everything at once",
       .peer = "10.0.0.1",
       .headers = {{"x-user-id", "ann"}, {"X-API-KEY", "k1"}, {"Cookie", "a=b; org=acme"}},
       .path = "/a?tier=pro",
       .user = "ann",
       .api_key = "k1",
       .org = "acme",
       .tier = "pro"},
      {.name = "forged by one who is not trusted",
       .peer = "203.0.113.9",
       .headers = {{"X-User-Id", "admin"}, {"Cookie", "org=acme"}},
       .path = "/?tier=pro"},
      {.name = "believed from anyone",
       .peer = "203.0.113.9",
       .headers = {{"X-Api-Key", "k1"}, {"X-User-Id", "admin"}},
       .api_key = "k1"},
      {.name = "forged with a forwarding header",
       .peer = "203.0.113.9",
       .headers = {{"X-Forwarded-For", "10.0.0.1"}, {"X-User-Id", "admin"}}},
      {.name = "mapped peer is the proxy",
       .peer = "::ffff:10.0.0.1",
       .headers = {{"X-User-Id", "ann"}},
       .user = "ann"},
      {.name = "unix socket", .peer = "", .headers = {{"X-User-Id", "ann"}}, .user = "ann"},
      {.name = "peer that is no address", .peer = "proxy", .headers = {{"X-User-Id", "ann"}}},
      {.name = "peer with a port",
       .peer = "10.0.0.1:4711",
       .headers = {{"X-User-Id", "ann"}},
       .user = "ann"},
      {.name = "two values: the client's and the proxy's",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", "admin"}, {"X-User-Id", "ann"}}},
      {.name = "two values, names in another case, others between them",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", "admin"}, {"Host", "a"}, {"x-user-id", "ann"}}},
      {.name = "two values and the first again",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", "ann"}, {"X-User-Id", "bob"}, {"X-User-Id", "ann"}}},
      {.name = "the proxy knows nobody and says so, behind what was forged",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", "admin"}, {"X-User-Id", ""}}},
      {.name = "the same, the other way round",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", ""}, {"X-User-Id", "admin"}}},
      {.name = "the same value twice",
       .peer = "10.0.0.1",
       .headers = {{"X-User-Id", "ann"}, {"X-User-Id", " ann\t"}},
       .user = "ann"},
      {.name = "two values from anyone",
       .peer = "203.0.113.9",
       .headers = {{"X-Api-Key", "k1"}, {"X-Api-Key", "k2"}}},
      {.name = "blanks only", .peer = "10.0.0.1", .headers = {{"X-User-Id", " \t"}}},
      {.name = "a name that is nearly it",
       .peer = "10.0.0.1",
       .headers = {{"X-User", "ann"}, {"X_User_Id", "ann"}, {"X-User-Id2", "ann"}}},
      {.name = "names of cookies and of a query depend on case",
       .peer = "10.0.0.1",
       .headers = {{"Cookie", "Org=acme"}},
       .path = "/?Tier=pro"},
      {.name = "cookie in quotes",
       .peer = "10.0.0.1",
       .headers = {{"Cookie", "org=\"acme\""}},
       .org = "acme"},
      {.name = "cookie on the second line",
       .peer = "10.0.0.1",
       .headers = {{"Cookie", "a=b"}, {"cookie", "org=acme"}},
       .org = "acme"},
      {.name = "cookie twice",
       .peer = "10.0.0.1",
       .headers = {{"Cookie", "org=acme; org=initech"}}},
      {.name = "encoded in the query",
       .peer = "10.0.0.1",
       .headers = {},
       .path = "/?%74ier=p%72o",
       .tier = "pro"},
      {.name = "default for two values",
       .peer = "10.0.0.1",
       .headers = {},
       .path = "/?tier=pro&tier=max"},
      {.name = "default for an empty value", .peer = "10.0.0.1", .headers = {}, .path = "/?tier="},
  };
  return rows;
}

TEST(Identity, IsBelievedOnlyFromThoseWhoMaySayIt) {
  EXPECT_GE(Rows().size(), 25u);
  const Identity identity = Make(Spec());
  IdentityStorage storage;
  for (const IdentityRow& row : Rows()) {
    const Request request =
        identity.Identify({.peer = row.peer, .path = row.path, .headers = row.headers}, storage);
    EXPECT_EQ(request.user, row.user) << row.name;
    EXPECT_EQ(request.api_key, row.api_key) << row.name;
    EXPECT_EQ(request.org, row.org) << row.name;
    EXPECT_EQ(request.tier, row.tier) << row.name;
  }
}

TEST(Identity, FindsTheClientBehindProxies) {
  const Identity identity = Make(Spec());
  IdentityStorage storage;
  const Headers headers = {{"X-Forwarded-For", "6.6.6.6, 2001:DB8:0:0::1, 10.0.0.2"}};
  Request request = identity.Identify({.peer = "10.0.0.1", .headers = headers}, storage);
  EXPECT_EQ(request.ip, "2001:db8::1");
  EXPECT_TRUE(request.trusted);

  request = identity.Identify({.peer = "::ffff:203.0.113.9", .headers = headers}, storage);
  EXPECT_EQ(request.ip, "203.0.113.9");
  EXPECT_FALSE(request.trusted);

  request = identity.Identify({.peer = "", .headers = {}}, storage);
  EXPECT_EQ(request.ip, "");
  EXPECT_TRUE(request.trusted);

  request = identity.Identify({.peer = "nonsense", .headers = headers}, storage);
  EXPECT_EQ(request.ip, "");
  EXPECT_FALSE(request.trusted);
}

TEST(Identity, SaysBeforehandWhomItTrusts) {
  const Identity identity = Make(Spec());
  for (const char* proxy : {"10.0.0.1", "::ffff:10.0.0.1", ""}) {
    EXPECT_TRUE(identity.Trusts(proxy)) << proxy;
  }
  for (const char* other : {"203.0.113.9", "nonsense", "2001:db8::1"}) {
    EXPECT_FALSE(identity.Trusts(other)) << other;
  }
  const Identity without = Make(PolicySpec{});
  EXPECT_FALSE(without.Trusts("10.0.0.1"));
  EXPECT_FALSE(without.Trusts(""));
}

TEST(Identity, TrustsEverybodyWhereProxiesAreCounted) {
  PolicySpec spec = Spec();
  spec.trusted_proxies.clear();
  spec.client_ip.hops = 1;
  const Identity identity = Make(spec);
  IdentityStorage storage;
  const Headers headers = {{"X-Forwarded-For", "6.6.6.6, 203.0.113.9"}, {"X-User-Id", "ann"}};
  const Request request = identity.Identify({.peer = "198.51.100.1", .headers = headers}, storage);
  EXPECT_EQ(request.ip, "203.0.113.9");
  EXPECT_EQ(request.user, "ann");
  EXPECT_TRUE(request.trusted);
  EXPECT_TRUE(identity.Trusts("198.51.100.1"));
}

TEST(Identity, ReadsTheHeaderThatThePolicyNames) {
  PolicySpec spec = Spec();
  spec.client_ip.header = ForwardingHeader::kForwarded;
  const Identity identity = Make(spec);
  IdentityStorage storage;
  const Headers headers = {{"X-Forwarded-For", "6.6.6.6"}, {"Forwarded", "for=203.0.113.9"}};
  EXPECT_EQ(identity.Identify({.peer = "10.0.0.1", .headers = headers}, storage).ip, "203.0.113.9");
}

TEST(Identity, HandsOnTheRestOfTheRequest) {
  const Identity identity = Make({});
  IdentityStorage storage;
  const Headers headers = {{"Host", "example.com"}, {"Cookie", "a=1; b=2; a=3"}};
  const Request request = identity.Identify({.peer = "203.0.113.9",
                                             .method = "POST",
                                             .path = "/a/b?x=1&y=a%20b&x=2",
                                             .host = "example.com:80",
                                             .headers = headers},
                                            storage);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/a/b?x=1&y=a%20b&x=2");
  EXPECT_EQ(request.host, "example.com:80");
  EXPECT_EQ(request.headers.data(), headers.data());
  EXPECT_EQ(request.headers.size(), 2u);
  EXPECT_EQ(WrittenPairs(request.cookies), "a=1|b=2|a=3|");
  EXPECT_EQ(WrittenPairs(request.query), "x=1|y=a b|x=2|");
  EXPECT_EQ(request.user, "");
  EXPECT_EQ(request.tier, "");
}

TEST(Identity, KeepsSoManyPairsAndFindsIdentityBehindThemToo) {
  std::string query = "/?";
  std::string cookies;
  for (std::size_t i = 0; i < Identity::kMostPairs + 100; ++i) {
    query += "n" + std::to_string(i) + "=%31&";
    cookies += "n" + std::to_string(i) + "=1; ";
  }
  query += "tier=pro";
  cookies += "org=acme";
  const Headers headers = {{"Cookie", cookies}};
  const Identity identity = Make(Spec());
  IdentityStorage storage;
  const Request request =
      identity.Identify({.peer = "10.0.0.1", .path = query, .headers = headers}, storage);
  EXPECT_EQ(request.query.size(), Identity::kMostPairs);
  EXPECT_EQ(request.cookies.size(), Identity::kMostPairs);
  EXPECT_EQ(request.query.back().name, "n" + std::to_string(Identity::kMostPairs - 1));
  EXPECT_EQ(request.tier, "pro");
  EXPECT_EQ(request.org, "acme");
}

TEST(Identity, UsesTheMemoryOfItsStorageAgain) {
  const Identity identity = Make(Spec());
  IdentityStorage storage;
  const Headers headers = {{"Cookie", "a=1; b=2"}};
  const Incoming longer = {.peer = "10.0.0.1", .path = "/?a=%41%42%43&b=2", .headers = headers};
  const Incoming shorter = {.peer = "10.0.0.1", .path = "/?a=%44", .headers = {}};
  const Request first = identity.Identify(longer, storage);
  const NamedValue* const query = first.query.data();
  const NamedValue* const cookies = first.cookies.data();
  const char* const decoded = first.query[0].value.data();
  EXPECT_EQ(WrittenPairs(identity.Identify(shorter, storage).query), "a=D|");
  const Request again = identity.Identify(longer, storage);
  EXPECT_EQ(WrittenPairs(again.query), "a=ABC|b=2|");
  EXPECT_EQ(again.query.data(), query);
  EXPECT_EQ(again.cookies.data(), cookies);
  EXPECT_EQ(again.query[0].value.data(), decoded);
}

TEST(Identity, GivesADefaultWithoutASource) {
  PolicySpec spec;
  spec.identity["tier"] = {.fallback = "free"};
  const Identity identity = Make(spec);
  IdentityStorage storage;
  EXPECT_EQ(identity.Identify({.peer = "203.0.113.9"}, storage).tier, "free");
}

TEST(Identity, RefusesWhatMakesNoSense) {
  PolicySpec spec;
  spec.trusted_proxies = {"10.0.0.0/8", "10.0.0.1/8"};
  EXPECT_THAT(IdentityProblem(spec),
              AllOf(HasSubstr("trusted_proxies"), HasSubstr("\"10.0.0.1/8\"")));
  spec.trusted_proxies = {"10.0.0.0/8"};
  spec.client_ip.hops = 1;
  EXPECT_THAT(IdentityProblem(spec),
              AllOf(HasSubstr("client_ip.hops"), HasSubstr("trusted_proxies")));
  spec.trusted_proxies.clear();
  EXPECT_EQ(IdentityProblem(spec), "none");
  spec.client_ip.hops = 64;
  EXPECT_EQ(IdentityProblem(spec), "none");
  spec.client_ip.hops = 65;
  EXPECT_THAT(IdentityProblem(spec), HasSubstr("0 to 64"));
  spec.client_ip.hops = -1;
  EXPECT_THAT(IdentityProblem(spec), HasSubstr("0 to 64"));
  spec.client_ip.hops = 0;
  spec.identity["ip"] = {.from = "header.x-real-ip"};
  EXPECT_THAT(IdentityProblem(spec),
              AllOf(HasSubstr("\"ip\""), HasSubstr("user, api_key, org and tier")));
  for (const char* from : {"", "x-user", "ip", "path", "descriptor.user", "header.", "path.id"}) {
    spec.identity = {{"user", {.from = from}}};
    EXPECT_THAT(IdentityProblem(spec), AllOf(HasSubstr("identity.user"), HasSubstr("header.NAME")))
        << from;
  }
}

TEST(Identity, WarnsOnceOfAProxyThatNobodyKnows) {
  std::vector<std::string> warnings;
  const IdentityOptions options = {
      .warn = [&](std::string_view text) { warnings.emplace_back(text); }};
  const Identity identity = Make({}, options);
  const Identity copy = identity;  // NOLINT(performance-unnecessary-copy-initialization): the point
  IdentityStorage storage;
  const Headers headers = {{"x-forwarded-for", "203.0.113.9"}};
  EXPECT_EQ(identity.Identify({.peer = "::ffff:10.0.0.1"}, storage).ip, "10.0.0.1");
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(identity.Identify({.peer = "::ffff:10.0.0.1", .headers = headers}, storage).ip,
            "10.0.0.1");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0],
              AllOf(HasSubstr("X-Forwarded-For"), HasSubstr("trusted_proxies: [10.0.0.1]"),
                    HasSubstr("address of the peer"), testing::Not(HasSubstr("203.0.113.9"))));
  identity.Identify({.peer = "10.0.0.2", .headers = headers}, storage);
  copy.Identify({.peer = "10.0.0.2", .headers = headers}, storage);
  EXPECT_EQ(warnings.size(), 1u);

  // The other header, and a unix socket.
  const Headers rfc = {{"Forwarded", "for=203.0.113.9"}};
  Make({}, options).Identify({.peer = "", .headers = rfc}, storage);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[1], AllOf(HasSubstr("a unix socket"), HasSubstr("carries Forwarded"),
                                 HasSubstr("client_ip: {header: forwarded}")));
}

TEST(Identity, DoesNotWarnWhereProxiesAreKnown) {
  int warnings = 0;
  PolicySpec counted;
  counted.client_ip.hops = 1;
  IdentityStorage storage;
  const Headers headers = {{"X-Forwarded-For", "6.6.6.6"}, {"Forwarded", "for=6.6.6.6"}};
  for (const PolicySpec& spec : {Spec(), counted}) {
    const Identity identity = Make(spec, {.warn = [&](std::string_view) { ++warnings; }});
    identity.Identify({.peer = "203.0.113.9", .headers = headers}, storage);
    identity.Identify({.peer = "10.0.0.1", .headers = headers}, storage);
  }
  EXPECT_EQ(warnings, 0);
  Make({}).Identify({.peer = "10.0.0.1", .headers = headers}, storage);  // Nobody to tell.
}

TEST(Identity, MayBeAskedFromManyThreads) {
  std::atomic<int> warnings = 0;
  PolicySpec spec = Spec();
  spec.trusted_proxies.clear();
  const Identity identity = Make(spec, {.warn = [&](std::string_view) { ++warnings; }});
  const Headers headers = {{"X-Forwarded-For", "6.6.6.6"}, {"X-Api-Key", "k1"}};
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      IdentityStorage storage;
      for (int round = 0; round < 1000; ++round) {
        const Request request = identity.Identify(
            {.peer = "203.0.113.9", .path = "/?a=%41", .headers = headers}, storage);
        right +=
            request.ip == "203.0.113.9" && request.api_key == "k1" && request.query[0].value == "A";
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 4000);
  EXPECT_EQ(warnings, 1);
}

}  // namespace
}  // namespace weir
