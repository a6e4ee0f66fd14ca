#include "store/guard/member_count.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using std::chrono::seconds;

TEST(MemberCount, IsZeroBeforeAnybodyCounted) { EXPECT_EQ(MemberCount().value(), 0); }

TEST(MemberCount, BelievesInMoreAtOnce) {
  MemberCount members;
  members.Note(1, SteadyTime{seconds(10)});
  EXPECT_EQ(members.value(), 1);
  members.Note(3, SteadyTime{seconds(10)});
  EXPECT_EQ(members.value(), 3);
}

TEST(MemberCount, BelievesInFewerOnlyAfterAWhile) {
  MemberCount members;
  members.Note(5, SteadyTime{seconds(10)});
  members.Note(1, SteadyTime{seconds(11)});  // A store that was restarted.
  members.Note(4, SteadyTime{seconds(12)});
  members.Note(3, SteadyTime{seconds(14)});
  EXPECT_EQ(members.value(), 5);
  members.Note(3, SteadyTime{seconds(15)});
  EXPECT_EQ(members.value(), 4);
  members.Note(3, SteadyTime{seconds(20)});
  EXPECT_EQ(members.value(), 3);
}

TEST(MemberCount, CountsAtLeastItself) {
  MemberCount members;
  members.Note(0, SteadyTime{seconds(10)});
  EXPECT_EQ(members.value(), 1);
}

TEST(MemberCount, IsNotStuckWhenTheClockIsSetBack) {
  MemberCount members;
  members.Note(5, SteadyTime{seconds(1'000)});
  members.Note(2, SteadyTime{seconds(10)});
  EXPECT_EQ(members.value(), 2);
}

}  // namespace
}  // namespace weir
