#include "frontend/access.h"

#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Access, IsForAllToUseWithoutAToken) {
  const Access access;
  EXPECT_EQ(access.WithoutToken(), Right::kUse);
  EXPECT_EQ(access.WithToken(""), Right::kNone);
  EXPECT_EQ(access.WithToken("guess"), Right::kNone);
}

TEST(Access, LetsEverybodyManageWhereThatIsOpen) {
  EXPECT_EQ(Access{.manage_open = true}.WithoutToken(), Right::kManage);
  const Access access{.token = "use", .manage_token = "rule", .manage_open = true};
  EXPECT_EQ(access.WithoutToken(), Right::kNone);
  EXPECT_EQ(access.WithToken("use"), Right::kManage);
}

TEST(Access, LetsTheOneTokenThereIsManage) {
  const Access access{.token = "secret"};
  EXPECT_EQ(access.WithoutToken(), Right::kNone);
  EXPECT_EQ(access.WithToken("secret"), Right::kManage);
  EXPECT_EQ(access.WithToken("Secret"), Right::kNone);
  EXPECT_EQ(access.WithToken(""), Right::kNone);
}

TEST(Access, KeepsManagingApartWhereItHasATokenOfItsOwn) {
  const Access access{.token = "use", .manage_token = "rule"};
  EXPECT_EQ(access.WithToken("use"), Right::kUse);
  EXPECT_EQ(access.WithToken("rule"), Right::kManage);
  EXPECT_EQ(access.WithToken("ruler"), Right::kNone);
}

TEST(Access, AsksForATokenToManageThoughNoneIsNeededToUse) {
  const Access access{.manage_token = "rule"};
  EXPECT_EQ(access.WithoutToken(), Right::kUse);
  EXPECT_EQ(access.WithToken("rule"), Right::kManage);
  EXPECT_EQ(access.WithToken(""), Right::kNone);
}

TEST(SameSecret, IsTheSameByteForByte) {
  EXPECT_TRUE(IsSameSecret("", ""));
  EXPECT_FALSE(IsSameSecret("", "a"));
  EXPECT_FALSE(IsSameSecret("a", ""));
  EXPECT_FALSE(IsSameSecret("ab", "abab"));  // The secret over and over is not the secret.
  EXPECT_FALSE(IsSameSecret("abab", "ab"));
  const std::string secret("k\0y\xff", 4);
  EXPECT_TRUE(IsSameSecret(secret, secret));
  for (std::size_t i = 0; i < secret.size(); ++i) {
    std::string other = secret;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(IsSameSecret(secret, other)) << i;
  }
}

}  // namespace
}  // namespace weir
