#include "base/inline_vector.h"

#include <memory>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(InlineVector, HoldsWhatWasPutInInOrder) {
  InlineVector<int, 4> numbers;
  EXPECT_TRUE(numbers.empty());
  numbers.emplace_back(3);
  numbers.emplace_back(5) += 2;
  EXPECT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers[0], 3);
  EXPECT_EQ(numbers.back(), 7);
  int sum = 0;
  for (const int number : numbers) sum += number;
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(numbers.span().size(), 2U);
}

TEST(InlineVector, TakesBackTheLast) {
  const auto counted = std::make_shared<int>(1);
  InlineVector<std::shared_ptr<int>, 2> owners;
  owners.emplace_back(counted);
  owners.emplace_back(counted);
  owners.pop_back();
  EXPECT_EQ(owners.size(), 1U);
  EXPECT_EQ(counted.use_count(), 2);
}

TEST(InlineVector, DestroysOnlyWhatItMade) {
  const auto counted = std::make_shared<int>(1);
  {
    InlineVector<std::shared_ptr<int>, 8> owners;
    owners.emplace_back(counted);
    owners.emplace_back(counted);
    EXPECT_EQ(counted.use_count(), 3);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(InlineVector, MakesRoomForWhatIsWrittenLater) {
  InlineVector<int, 3> numbers;
  numbers.emplace_back(1);
  numbers.emplace_back_unset() = 2;
  EXPECT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers[1], 2);
}

}  // namespace
}  // namespace weir
