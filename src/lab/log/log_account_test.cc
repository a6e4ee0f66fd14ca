#include "lab/log/log_account.h"

#include <gtest/gtest.h>

namespace weir::lab {
namespace {

TEST(LogAccount, HasNothingToWarnOfIfAllWasUsed) {
  const LogAccount account =
      AccountOf({{.file = "a", .format = "csv", .lines = 11, .requests = 10, .blank = 1}},
                std::chrono::seconds(60));
  EXPECT_TRUE(account.warnings.empty());
  EXPECT_EQ(account.left_out_share, 0);
  EXPECT_EQ(account.sections.size(), 1U);
}

TEST(LogAccount, SaysWhatWasLeftOutOfThoseThatAreNotBlank) {
  const LogAccount account = AccountOf({{.file = "a",
                                         .lines = 101,
                                         .requests = 90,
                                         .blank = 1,
                                         .unparsed = 4,
                                         .too_long = 1,
                                         .late = 5,
                                         .examples = {{.line = 7, .why = "no time", .text = "x"}}},
                                        {.file = "b",
                                         .lines = 100,
                                         .requests = 100,
                                         .cut_short = "it is damaged",
                                         .whole_seconds = false}},
                                       std::chrono::seconds(60));
  EXPECT_EQ(account.left_out, 10U);
  EXPECT_DOUBLE_EQ(account.left_out_share, 0.05);
  EXPECT_TRUE(account.is_cut_short);
  EXPECT_FALSE(account.whole_seconds);
  ASSERT_EQ(account.warnings.size(), 2U);
  EXPECT_NE(account.warnings[0].find("not all of b: it is damaged"), std::string::npos);
  EXPECT_NE(account.warnings[1].find("--horizon"), std::string::npos);
  EXPECT_EQ(account.sections.size(), 2U);
}

}  // namespace
}  // namespace weir::lab
