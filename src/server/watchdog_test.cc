// threads: watchdog.cc
#include "server/watchdog.h"

#include <latch>

#include <gtest/gtest.h>

#include "net/loop_under_test.h"
#include "server/loop_witness.h"

namespace weir {
namespace {

TEST(Watchdog, LooksAgainAndAgain) {
  std::latch looked(3);
  int looks = 0;
  const Watchdog watchdog(std::chrono::milliseconds(1), [&] {
    if (++looks <= 3) looked.count_down();
  });
  looked.wait();
}

TEST(Watchdog, EndsAtOnceHoweverLongUntilItsNextLook) {
  std::latch looked(1);
  const Watchdog watchdog(std::chrono::hours(24), [&] { looked.count_down(); });
  looked.wait();
}

TEST(LoopWitness, SaysThatALoopTurnsOnlyIfItDoes) {
  LoopUnderTest loop;
  LoopWitness witness(loop);
  EXPECT_TRUE(witness.HasTurned()) << "there is nothing to go by yet";
  EXPECT_FALSE(witness.HasTurned());
  EXPECT_FALSE(witness.HasTurned()) << "it hangs for as long as it hangs";
  loop.Turn();
  EXPECT_TRUE(witness.HasTurned());
  EXPECT_FALSE(witness.HasTurned()) << "each look is for the time since the last";
  loop.Turn();
  EXPECT_TRUE(witness.HasTurned());
}

TEST(LoopWitness, MayGoBeforeTheLoopHasTurned) {
  LoopUnderTest loop;
  {
    LoopWitness witness(loop);
    EXPECT_TRUE(witness.HasTurned());
  }
  loop.Turn();
}

}  // namespace
}  // namespace weir
