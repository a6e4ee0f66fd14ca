#include "server/log_options.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(LogOptions, BecomeSettings) {
  const Result<lab::LogSettings> settings = SettingsOf({.files = {"a", "-"},
                                                        .format = "csv",
                                                        .columns = {"user=who", "time=a=b"},
                                                        .horizon = "10min",
                                                        .threads = 3});
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->files, (std::vector<std::string>{"a", "-"}));
  EXPECT_EQ(settings->format, "csv");
  EXPECT_EQ(settings->horizon, std::chrono::minutes(10));
  EXPECT_EQ(settings->threads, 3);
  ASSERT_EQ(settings->columns.size(), 2U);
  EXPECT_EQ(settings->columns[0].second, "who");
  EXPECT_EQ(settings->columns[1].second, "a=b");
  EXPECT_EQ(SettingsOf({.horizon = "0"})->horizon, Duration(0));
}

TEST(LogOptions, ThatCannotBeReadAreNamed) {
  EXPECT_NE(SettingsOf({.horizon = "soon"}).error().message.find("--horizon"), std::string::npos);
  for (const char* const column : {"user", "=x", "user="}) {
    EXPECT_NE(SettingsOf({.columns = {column}}).error().message.find("--column"),
              std::string::npos);
  }
}

TEST(Percentages, AreReadAsPeopleWriteThem) {
  EXPECT_DOUBLE_EQ(*ParsePercent("--x", "0.1%"), 0.001);
  EXPECT_DOUBLE_EQ(*ParsePercent("--x", "0.1 %"), 0.001);
  EXPECT_DOUBLE_EQ(*ParsePercent("--x", "0%"), 0);
  EXPECT_DOUBLE_EQ(*ParsePercent("--x", "100%"), 1);
  for (const char* const text : {"", "%", "0.1", "-1%", "101%", "x%", "1%%", "nan%", "1e1%"}) {
    const Result<double> share = ParsePercent("--x", text);
    ASSERT_FALSE(share.has_value()) << text;
    EXPECT_NE(share.error().message.find("--x"), std::string::npos);
  }
}

TEST(LogOptions, KnowWhichColumnsThereCanBe) {
  EXPECT_TRUE(SettingsOf({.columns = {"header.x-tenant=Who", "cookie.id=c"}}));
  EXPECT_FALSE(SettingsOf({.columns = {"foo=zz"}}));
  EXPECT_FALSE(SettingsOf({.columns = {"header.=zz"}}));
}

}  // namespace
}  // namespace weir
