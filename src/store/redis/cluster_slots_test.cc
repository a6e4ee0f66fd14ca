#include "store/redis/cluster_slots.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

// None if it makes no sense.
std::optional<std::vector<SlotRange>> Read(std::string_view reply) {
  resp::ReplyReader reader;
  ClusterSlots slots;
  while (!reply.empty()) {
    const resp::ReplyReading reading = reader.Read(reply);
    if (reading.kind != resp::ReplyReading::Kind::kItem) return std::nullopt;
    if (!slots.Take(reading.item)) return std::nullopt;
    reply.remove_prefix(reading.used);
  }
  return slots.ranges();
}

TEST(ClusterSlots, HasTheMasterOfEachRange) {
  const auto ranges = Read(
      "*2\r\n"
      "*4\r\n:0\r\n:5460\r\n"
      "*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$1\r\na\r\n*2\r\n$8\r\nhostname\r\n$1\r\nh\r\n"
      "*3\r\n$9\r\n127.0.0.1\r\n:7003\r\n$1\r\nb\r\n"
      "*3\r\n:5461\r\n:16383\r\n*2\r\n$0\r\n\r\n:7001\r\n");
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2U);
  EXPECT_EQ((*ranges)[0].first, 0);
  EXPECT_EQ((*ranges)[0].last, 5460);
  EXPECT_EQ((*ranges)[0].master.ToString(), "127.0.0.1:7000");
  EXPECT_EQ((*ranges)[1].master.host, "");
  EXPECT_EQ((*ranges)[1].master.port, 7001);
}

TEST(ClusterSlots, KnowsWhenNobodyKnowsTheHost) {
  const auto null = Read("*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$-1\r\n:7001\r\n");
  ASSERT_TRUE(null);
  EXPECT_EQ(null->front().master.host, "");
  const auto unknown = Read("*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\n?\r\n:7001\r\n");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->front().master.port, 0);
}

TEST(ClusterSlots, RefusesWhatMakesNoSense) {
  for (const char* reply :
       {"+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:5\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\na\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n+x\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n", "*1\r\n*3\r\n$1\r\n0\r\n:1\r\n*0\r\n"}) {
    EXPECT_FALSE(Read(reply)) << reply;
  }
}

}  // namespace
}  // namespace weir::redis
