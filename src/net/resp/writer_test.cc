#include "net/resp/writer.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace weir::resp {
namespace {

std::string Written(std::int64_t number) {
  std::array<char, kMostIntegerBytes> room;
  return {room.data(), PutInteger(room.data(), number)};
}

TEST(PutInteger, WritesEveryNumberOfDigits) {
  std::int64_t power = 1;
  for (int digits = 1; digits <= 19; ++digits) {
    for (const std::int64_t number : {power - 1, power, power + 1, power / 9 * 8 + 7}) {
      EXPECT_EQ(Written(number), std::to_string(number));
      EXPECT_EQ(Written(-number), std::to_string(-number));
    }
    if (digits < 19) power *= 10;
  }
  for (const std::int64_t number :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(Written(number), std::to_string(number));
  }
}

TEST(PutInteger, WritesEverySmallNumber) {
  for (std::int64_t number = -20'000; number <= 120'000; ++number) {
    ASSERT_EQ(Written(number), std::to_string(number));
  }
}

RC_GTEST_PROP(PutInteger, WritesAnyNumber, (std::int64_t number)) {
  for (int bits = 0; bits < 64; ++bits) {
    RC_ASSERT(Written(number >> bits) == std::to_string(number >> bits));
  }
}

}  // namespace
}  // namespace weir::resp
