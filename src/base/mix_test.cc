#include "base/mix.h"

#include <bit>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Mix, IsTheFinisherOfSplitmix64) {
  EXPECT_EQ(Mix(0), 0xe220a8397b1dcdafU);  // The first word that splitmix64 makes of seed 0.
}

TEST(Mix, SpreadsEveryBitOverTheWord) {
  for (int bit = 0; bit < 64; ++bit) {
    const int changed = std::popcount(Mix(0) ^ Mix(std::uint64_t{1} << bit));
    EXPECT_GT(changed, 16) << bit;
    EXPECT_LT(changed, 48) << bit;
  }
}

TEST(Mix, IsNotLinear) { EXPECT_NE(Mix(1) ^ Mix(2), Mix(1 ^ 2) ^ Mix(0)); }

}  // namespace
}  // namespace weir
