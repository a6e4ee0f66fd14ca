#include "frontend/metrics.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(ReplyCodes, AreFoundByTheirText) {
  EXPECT_EQ(ReplyCodeNumber("200"), kReplyOk);
  EXPECT_EQ(ReplyCodeNumber("429"), kReplyLimited);
  EXPECT_EQ(ReplyCodeNumber("OK"), kReplyRespOk);
  for (std::size_t i = 0; i < kReplyCodes.size(); ++i)
    EXPECT_EQ(ReplyCodeNumber(kReplyCodes[i]), i);
}

TEST(ReplyCodes, ThatNobodyThoughtOfAreCountedTogether) {
  EXPECT_EQ(kReplyCodes[ReplyCodeNumber("418")], "other");
  EXPECT_EQ(kReplyCodes[ReplyCodeNumber("")], "other");
}

TEST(OwnCounter, GoesUpAndDown) {
  OwnCounter counter;
  counter.Add();
  counter.Add(5);
  counter.Subtract(2);
  EXPECT_EQ(counter.Value(), 4U);
}

}  // namespace
}  // namespace weir
