#include "frontend/replies.h"

#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Replies, AreReadyAtOnceWhenNothingIsHeld) {
  Replies replies({.bytes = 100, .held = 10});
  replies.next().Append("one");
  replies.next().Append("two");
  EXPECT_EQ(replies.ready().view(), "onetwo");
}

TEST(Replies, BehindAHeldOneWaitForIt) {
  Replies replies({.bytes = 100, .held = 10});
  replies.next().Append("1");
  const Replies::Ticket second = replies.Hold();
  replies.next().Append("3");
  const Replies::Ticket fourth = replies.Hold();
  replies.next().Append("5");
  EXPECT_EQ(replies.ready().view(), "1");
  EXPECT_EQ(replies.held(), 2U);
  replies.Fill(fourth, "4");
  EXPECT_EQ(replies.ready().view(), "1");
  replies.Fill(second, "2");
  EXPECT_EQ(replies.ready().view(), "12345");
  EXPECT_EQ(replies.held(), 0U);
  replies.next().Append("6");
  EXPECT_EQ(replies.ready().view(), "123456");
}

TEST(Replies, TakeAPlaceOnlyOnce) {
  Replies replies({.bytes = 100, .held = 10});
  const Replies::Ticket first = replies.Hold();
  const Replies::Ticket second = replies.Hold();
  replies.Fill(second, "b");
  replies.Fill(second, "again");
  replies.Fill(first, "a");
  replies.Fill(first, "again");
  EXPECT_EQ(replies.ready().view(), "ab");
}

TEST(Replies, AreFullByBytesHeldOnesIncluded) {
  Replies replies({.bytes = 10, .held = 10});
  replies.next().Append("12345");
  EXPECT_FALSE(replies.IsFull());
  replies.Hold();
  replies.next().Append("67890");
  EXPECT_TRUE(replies.IsFull());
}

TEST(Replies, AreFullByTheNumberOfThoseHeld) {
  Replies replies({.bytes = 1000, .held = 2});
  const Replies::Ticket first = replies.Hold();
  EXPECT_FALSE(replies.IsFull());
  replies.Hold();
  EXPECT_TRUE(replies.IsFull());
  replies.Fill(first, "x");
  EXPECT_FALSE(replies.IsFull());
}

TEST(Replies, CountByTheirWeight) {
  Replies replies({.bytes = 1000, .held = 10});
  const Replies::Ticket heavy = replies.Hold(9);
  EXPECT_FALSE(replies.IsFull());
  const Replies::Ticket light = replies.Hold();
  EXPECT_TRUE(replies.IsFull());
  replies.Fill(light, "x");
  EXPECT_TRUE(replies.IsFull()) << "it cannot leave";
  replies.Fill(heavy, "y");
  EXPECT_FALSE(replies.IsFull());
  EXPECT_EQ(replies.ready().view(), "yx");
  EXPECT_EQ(replies.held_bytes(), 0U);
}

}  // namespace
}  // namespace weir
