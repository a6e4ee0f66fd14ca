#include "policy/store_address.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;
using AddressKind = StoreAddress::Kind;

StoreAddress Good(std::string_view text) {
  Result<StoreAddress> address = StoreAddress::Parse(text);
  if (!address) ADD_FAILURE() << text << ": " << address.error().message;
  return address.value_or(StoreAddress());
}

std::string ComplaintAbout(std::string_view text) {
  const Result<StoreAddress> address = StoreAddress::Parse(text);
  EXPECT_FALSE(address) << text;
  return address ? "" : address.error().message;
}

TEST(StoreAddress, OfOneServerHasDefaults) {
  EXPECT_EQ(Good("redis://cache"), (StoreAddress{.hosts = {{"cache", 6379}}}));
  EXPECT_EQ(Good("redis://cache:7000/3"),
            (StoreAddress{.hosts = {{"cache", 7000}}, .database = 3}));
  EXPECT_EQ(Good("redis://[::1]:7000/"), (StoreAddress{.hosts = {{"::1", 7000}}}));
  EXPECT_EQ(Good("redis://[2001:db8::1]").hosts.front().port, 6379);
}

TEST(StoreAddress, NamesWhoIsAsking) {
  EXPECT_EQ(Good("redis://ann:pass@cache").login, (StoreLogin{.user = "ann", .password = "pass"}));
  EXPECT_EQ(Good("redis://:pass@cache").login, (StoreLogin{.password = "pass"}));
  // What means something in an address is written in another way.
  EXPECT_EQ(Good("redis://a%3Ab:p%40%2f%3A%25@cache").login,
            (StoreLogin{.user = "a:b", .password = "p@/:%"}));
  // Only the first colon and the last at sign do.
  EXPECT_EQ(Good("redis://ann:p:a@s@cache").login.password, "p:a@s");
}

TEST(StoreAddress, SaysWhereAPasswordIs) {
  EXPECT_EQ(Good("redis://ann:env:REDIS_PASSWORD@cache").login,
            (StoreLogin{.user = "ann", .password = "env:REDIS_PASSWORD", .by_reference = true}));
  const StoreAddress address = Good("redis://:file:/run/secrets/redis@cache:1/2");
  EXPECT_EQ(address.login,
            (StoreLogin{.password = "file:/run/secrets/redis", .by_reference = true}));
  EXPECT_EQ(address.hosts.front(), (StoreHost{"cache", 1}));
  EXPECT_EQ(address.database, 2);
  // A password that merely looks like that.
  EXPECT_EQ(Good("redis://:env%3AX@cache").login, (StoreLogin{.password = "env:X"}));
}

TEST(StoreAddress, OfAUnixSocketIsAPath) {
  EXPECT_EQ(Good("redis+unix:///run/redis.sock?db=2"),
            (StoreAddress{.kind = AddressKind::kUnix, .path = "/run/redis.sock", .database = 2}));
  EXPECT_EQ(Good("unix:///run/a@b").path, "/run/a@b");
  EXPECT_EQ(Good("redis+unix://ann:pw@/run/x").login.user, "ann");
  EXPECT_THAT(ComplaintAbout("redis+unix://run/x"), HasSubstr("absolute path"));
  EXPECT_THAT(ComplaintAbout("redis+unix:///" + std::string(107, 'x')),
              HasSubstr("at most 107 bytes"));
}

TEST(StoreAddress, OfAClusterNamesSomeOfItsNodes) {
  const StoreAddress address = Good("rediss+cluster://u:p@a:1,b:2,[::1]?ca=/ca.pem&verify=no");
  EXPECT_EQ(address.kind, AddressKind::kCluster);
  EXPECT_EQ(address.hosts, (std::vector<StoreHost>{{"a", 1}, {"b", 2}, {"::1", 6379}}));
  EXPECT_TRUE(address.tls);
  EXPECT_FALSE(address.verify);
  EXPECT_EQ(address.ca_file, "/ca.pem");
  EXPECT_THAT(ComplaintAbout("redis+cluster://a/1"), HasSubstr("no databases"));
  EXPECT_THAT(ComplaintAbout("redis+cluster://a,a:6379"), HasSubstr("named twice"));
}

TEST(StoreAddress, OfSentinelsNamesWhatTheyWatch) {
  const StoreAddress address =
      Good("redis+sentinel://u:p@a,b:1/mymaster/4?sentinel_user=s&sentinel_password=env:S");
  EXPECT_EQ(address.hosts, (std::vector<StoreHost>{{"a", 26379}, {"b", 1}}));
  EXPECT_EQ(address.master_name, "mymaster");
  EXPECT_EQ(address.database, 4);
  EXPECT_EQ(address.login, (StoreLogin{.user = "u", .password = "p"}));
  EXPECT_EQ(address.sentinel_login,
            (StoreLogin{.user = "s", .password = "env:S", .by_reference = true}));
  EXPECT_THAT(ComplaintAbout("redis+sentinel://a"), HasSubstr("/mymaster"));
}

TEST(StoreAddress, KnowsTheFilesThatItNames) {
  EXPECT_THAT(Good("redis://u:p@a").Files(), testing::IsEmpty());
  EXPECT_THAT(Good("redis://u:env:P@a").Files(), testing::IsEmpty());
  EXPECT_THAT(
      Good("rediss+sentinel://u:file:p@a/m?ca=c&cert=d&key=e&sentinel_password=file:s").Files(),
      testing::ElementsAre("p", "s", "c", "d", "e"));
}

TEST(StoreAddress, TellsWhetherWhatIsCountedIsKnown) {
  const auto same = [](std::vector<std::string> a, std::vector<std::string> b) {
    EXPECT_EQ(KeepSameState(a, b), KeepSameState(b, a));
    return KeepSameState(a, b);
  };
  EXPECT_TRUE(same({"memory"}, {"memory"}));
  EXPECT_FALSE(same({"memory"}, {"redis://a"}));
  EXPECT_TRUE(same({"redis://u:p@a"}, {"redis://:env:X@a:6379/0"}));
  EXPECT_TRUE(same({"redis://a"}, {"rediss://a:6379?verify=no"}));
  EXPECT_FALSE(same({"redis://a"}, {"redis://b"}));
  EXPECT_FALSE(same({"redis://a"}, {"redis://a/1"}));
  EXPECT_FALSE(same({"redis://a"}, {"redis://a", "redis://b"}));
  EXPECT_TRUE(same({"redis://b", "redis://a"}, {"redis://a", "redis://b"}));
  EXPECT_TRUE(same({"redis+cluster://a,b"}, {"redis+cluster://b,c"}));
  EXPECT_FALSE(same({"redis+cluster://a,b"}, {"redis+cluster://c"}));
  EXPECT_FALSE(same({"redis+sentinel://a/m"}, {"redis+sentinel://a/n"}));
}

TEST(StoreAddress, OverTlsNamesFiles) {
  const StoreAddress address =
      Good("rediss://cache?ca=ca.pem&cert=c.pem&key=k.pem&server_name=redis.example");
  EXPECT_EQ(address.certificate, "c.pem");
  EXPECT_EQ(address.key, "k.pem");
  EXPECT_EQ(address.server_name, "redis.example");
  EXPECT_TRUE(address.verify);
  EXPECT_THAT(ComplaintAbout("rediss://cache?cert=c.pem"), HasSubstr("cert and key go together"));
  EXPECT_THAT(ComplaintAbout("rediss://cache?verify=maybe"), HasSubstr("yes or no"));
  EXPECT_THAT(ComplaintAbout("redis://cache?ca=ca.pem"), HasSubstr("write rediss"));
}

TEST(StoreAddress, ThatIsWrongIsToldByItsPart) {
  EXPECT_THAT(ComplaintAbout("redis://"), HasSubstr("is no store"));
  EXPECT_THAT(ComplaintAbout("redis"), HasSubstr("is no store"));
  EXPECT_THAT(ComplaintAbout("mysql://u:s3cret@x"), HasSubstr("\"mysql://\" is no store"));
  EXPECT_THAT(ComplaintAbout("redis://a,b"), HasSubstr("a list of shards"));
  EXPECT_THAT(ComplaintAbout("redis://a:99999"), HasSubstr("is no port"));
  EXPECT_THAT(ComplaintAbout("redis://a b"), HasSubstr("for a host is none"));
  // A password that lost its @ is still one.
  EXPECT_THAT(ComplaintAbout("redis://user:s3cret"), testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(ComplaintAbout("redis://:s3cret:6379"), testing::Not(HasSubstr("s3cret")));
  EXPECT_THAT(ComplaintAbout("redis://a/x"), HasSubstr("\"x\" is no database"));
  EXPECT_THAT(ComplaintAbout("redis://a/-1"), HasSubstr("is no database"));
  EXPECT_THAT(ComplaintAbout("redis://a?timeout=1"), HasSubstr("\"timeout\" is no setting"));
  EXPECT_THAT(ComplaintAbout("redis://ann@a"), HasSubstr("no password"));
  EXPECT_THAT(ComplaintAbout("redis://:%zz@a"), HasSubstr("%25"));
  EXPECT_THAT(ComplaintAbout("redis://:a%00b@a"), HasSubstr("%25"));
  EXPECT_THAT(ComplaintAbout("redis://u:s3c?ret@host"),
              AllOf(HasSubstr("%3F"), testing::Not(HasSubstr("s3c"))));
}

TEST(StoreAddress, ShowsNoSecret) {
  for (const std::string_view text :
       {"redis://u:s3cret@h:1/2", "redis+unix://u:s3cret@/p?db=1", "redis+cluster://u:s3cret@a,b",
        "rediss+sentinel://u:s3cret@a/m/3?sentinel_password=s3cret"}) {
    EXPECT_THAT(Good(text).ToString(), testing::Not(HasSubstr("s3cret"))) << text;
  }
  EXPECT_EQ(Good("rediss+sentinel://u:p@a,[::1]:2/m/3").ToString(),
            "rediss+sentinel://a:26379,[::1]:2/m/3");
  EXPECT_EQ(Good("unix://u:p@/p?db=1").ToString(), "redis+unix:///p?db=1");
}

// Whatever stands there: it is read or refused, what is read is read again from what is shown, and
// a password is in nothing that people see.
RC_GTEST_PROP(StoreAddress, MakesSenseOrIsRefusedWithoutShowingThePassword, ()) {
  const auto piece = [] {
    return *rc::gen::element<std::string>("redis", "rediss", "+unix", "+cluster", "+sentinel",
                                          "://", "/", "@", ":", ",", "?", "&", "=", "%", "%41", "[",
                                          "]", "::1", "host", "1", "99999", "db", "ca", "verify",
                                          "no", "env:", "file:", " ", "\xff");
  };
  std::string text = *rc::gen::element<std::string>("redis://", "rediss+sentinel://",
                                                    "redis+cluster://", "redis+unix://", "");
  if (*rc::gen::arbitrary<bool>()) text += "u:s3cret@";
  const auto pieces = *rc::gen::inRange(0, 12);
  for (int i = 0; i < pieces; ++i) text += piece();
  const Result<StoreAddress> address = StoreAddress::Parse(text);
  if (!address) {
    // Behind another at sign it is part of a password still; before one it may be a host.
    RC_ASSERT(address.error().message.find("s3cret") == std::string::npos);
    return;
  }
  RC_ASSERT(address->ToString().find("s3cret") == std::string::npos);
  const Result<StoreAddress> again = StoreAddress::Parse(address->ToString());
  // A name that needs encoding is shown as it is.
  if (address->master_name.find_first_of("%/?@") != std::string::npos) return;
  if (address->path.find_first_of("%?") != std::string::npos) return;
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->hosts == address->hosts);
  RC_ASSERT(again->path == address->path);
  RC_ASSERT(again->database == address->database);
}

}  // namespace
}  // namespace weir
