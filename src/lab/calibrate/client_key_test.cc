#include "lab/calibrate/client_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

ClientKey KeyOf(std::string_view text) {
  Result<ClientKey> key = ClientKey::Parse(text, {});
  EXPECT_TRUE(key) << key.error().message;
  return *std::move(key);
}

TEST(ClientKey, CountsAddressesAsRulesDo) {
  const ClientKey key = KeyOf("ip");
  const auto same = [&](std::string_view a, std::string_view b) {
    return key.HashOf({.ip = a}) == key.HashOf({.ip = b});
  };
  EXPECT_TRUE(same("203.0.113.9", "::ffff:203.0.113.9"));
  EXPECT_FALSE(same("203.0.113.9", "203.0.113.10"));
  EXPECT_TRUE(same("2001:db8:0:1::5", "2001:db8:0:1:ffff::"));
  EXPECT_FALSE(same("2001:db8:0:1::5", "2001:db8:0:2::5"));
  EXPECT_EQ(key.NameOf({.ip = "::ffff:203.0.113.9"}), "203.0.113.9");
  EXPECT_EQ(key.NameOf({.ip = "2001:db8:0:1::5"}), "2001:db8:0:1::/64");
}

TEST(ClientKey, IsThereOnlyIfAllOfItIs) {
  EXPECT_FALSE(KeyOf("ip").HashOf({.ip = "unknown"}));
  EXPECT_FALSE(KeyOf("user").HashOf({.ip = "203.0.113.9"}));
  EXPECT_FALSE(KeyOf("ip+user").HashOf({.ip = "203.0.113.9"}));
  EXPECT_TRUE(KeyOf("ip+user").HashOf({.ip = "203.0.113.9", .user = "ann"}));
}

TEST(ClientKey, TakesPathsWithoutTheirQueryInOneForm) {
  const ClientKey key = KeyOf("ip+path");
  const auto hash = [&](std::string_view path) {
    return key.HashOf({.ip = "203.0.113.9", .path = path});
  };
  EXPECT_EQ(hash("/search?q=tea"), hash("/search"));
  EXPECT_EQ(hash("//search/"), hash("/search"));
  EXPECT_NE(hash("/search"), hash("/items"));
  EXPECT_EQ(key.chosen_part(), "path");
  EXPECT_EQ(key.rule_name(), "per-ip-path");
}

TEST(ClientKey, ReadsAColumnAsUserAndASecondOneAsOrg) {
  EXPECT_THAT(KeyOf("account_id").columns(), ElementsAre(Pair("user", "account_id")));
  EXPECT_THAT(KeyOf("account_id").must_be_present(), ElementsAre("user"));
  EXPECT_THAT(KeyOf("user+team").columns(), ElementsAre(Pair("org", "team")));
  EXPECT_THAT(ClientKey::Parse("team", {{"user", "account_id"}})->columns(),
              ElementsAre(Pair("org", "team")));
  EXPECT_THAT(ClientKey::Parse("a+b+c", {}).error().message, HasSubstr("\"c\""));
}

TEST(ClientKey, IsRefusedIfItSaysNothing) {
  for (const char* text : {"", "ip+", "ip+ip", "path+host", "a+b+c+d+e"}) {
    EXPECT_FALSE(ClientKey::Parse(text, {})) << text;
  }
}

TEST(ClientKey, TellsNobodysApiKey) {
  const std::string name = KeyOf("api_key").NameOf({.api_key = "sk_live_0123456789"});
  EXPECT_EQ(name, "sk...");
}

}  // namespace
}  // namespace weir::lab
