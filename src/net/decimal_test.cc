#include "net/decimal.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir {
namespace {

std::string Decimal(std::int64_t number) {
  std::array<char, kMostDecimalBytes> room;
  return {room.data(), PutDecimal(room.data(), number)};
}

TEST(Decimal, IsRightAroundEveryPowerOfTen) {
  std::int64_t power = 1;
  for (int digits = 0; digits < 18; ++digits, power *= 10) {
    for (const std::int64_t number : {power - 1, power, power + 1}) {
      EXPECT_EQ(Decimal(number), std::to_string(number));
      EXPECT_EQ(Decimal(-number), std::to_string(-number));
    }
  }
  EXPECT_EQ(Decimal(power), "1000000000000000000");
  EXPECT_EQ(Decimal(std::numeric_limits<std::int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(Decimal(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(Decimal, IsRightForEverySmallNumber) {
  for (std::int64_t number = -2'000; number <= 120'000; ++number) {
    ASSERT_EQ(Decimal(number), std::to_string(number));
  }
}

TEST(Decimal, IsRightAroundEveryPowerOfTwo) {
  for (int bits = 0; bits < 63; ++bits) {
    const std::int64_t power = std::int64_t{1} << bits;
    for (const std::int64_t number : {power - 1, power, power + 1}) {
      EXPECT_EQ(Decimal(number), std::to_string(number));
    }
  }
}

RC_GTEST_PROP(Decimal, IsThatOfTheLibrary, (std::int64_t number, std::uint8_t shift)) {
  const std::int64_t shifted = number >> (shift % 64);
  RC_ASSERT(Decimal(shifted) == std::to_string(shifted));
}

}  // namespace
}  // namespace weir
