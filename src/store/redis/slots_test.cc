#include "store/redis/slots.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(Slots, AreThoseOfRedisCluster) {
  // As CLUSTER KEYSLOT has them.
  EXPECT_EQ(SlotOfKey("123456789"), 0x31c3);
  EXPECT_EQ(SlotOfKey("foo"), 12182);
  EXPECT_EQ(SlotOfKey("bar"), 5061);
  EXPECT_EQ(SlotOfKey(""), 0);
  EXPECT_EQ(SlotOfKey("{user1000}.following"), SlotOfKey("{user1000}.followers"));
  EXPECT_EQ(SlotOfKey("{user1000}.following"), SlotOfTag("user1000"));
  EXPECT_EQ(SlotOfKey("foo{}{bar}"), SlotOfTag("foo{}{bar}"));
  EXPECT_EQ(SlotOfKey("foo{{bar}}zap"), SlotOfTag("{bar"));
  EXPECT_EQ(SlotOfKey("foo{bar"), SlotOfTag("foo{bar"));
}

TEST(Slots, HaveATagEach) {
  std::set<std::string_view> tags;
  for (std::uint16_t slot = 0; slot < kSlots; ++slot) {
    const std::string_view tag = TagOfSlot(slot);
    ASSERT_EQ(SlotOfTag(tag), slot);
    ASSERT_LE(tag.size(), 4U);
    tags.insert(tag);
  }
  EXPECT_EQ(tags.size(), kSlots);
}

}  // namespace
}  // namespace weir::redis
